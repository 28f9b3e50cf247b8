package oncehttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/profile"
)

type inheritedKey struct{}

// InheritKey returns middleware for the key of an inbound request. It binds the key to its
// caller, and puts it into the request's context for [InheritedKey]. principal returns the
// caller's name; it must come from authentication, never from the key. A request without a
// key passes unchanged.
//
// A request with a key that cannot be bound is refused, since each repeat would be a new
// operation: 403 for an empty principal, 400 for two keys or a malformed one, each as
// application/problem+json.
//
// Nothing but caller and key is bound: not the method, the path or the body. A caller that
// uses one key for two requests gets one outbound operation for both where the derived
// requests are the same, and ErrKeyReused where they differ. A handler whose outbound request
// does not contain all that tells two inbound requests apart, such as the order in a path,
// names it in Key.Derive.
//
// The inbound key never goes on the wire again. Another hop gets a key made from it (see
// Key.Derive), so that the operation stays idempotent at every hop, and no caller can name
// another's keys. The key is read from the header Idempotency-Key; [InheritKeyBy] reads it by
// a profile. InheritKey panics if principal is nil, and the middleware if its handler is.
func InheritKey(principal func(*http.Request) string) func(http.Handler) http.Handler {
	return InheritKeyBy(profile.Draft07(), principal)
}

// InheritKeyBy is [InheritKey] for an API whose callers send keys by profile p: in its
// header, in its spelling. It panics if p is nil, or carries keys elsewhere than in a header.
func InheritKeyBy(p *profile.Profile, principal func(*http.Request) string) func(http.Handler) http.Handler {
	switch {
	case p == nil:
		panic("oncehttp: InheritKeyBy: no profile; want one, such as profile.Draft07()")
	case p.Carrier.Place != profile.Header:
		panic(fmt.Sprintf("oncehttp: InheritKeyBy: profile %q has the carrier %q; want a header", p.Name, p.Carrier.String()))
	case principal == nil:
		panic("oncehttp: InheritKey: no principal; want a function that names the authenticated caller")
	}
	p = p.Clone()
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("oncehttp: InheritKey: no handler behind it")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inbound, err := request.InboundKey(r.Header, p)
			if err != nil {
				refuseInbound(w, http.StatusBadRequest, fmt.Sprintf("%s: %v", p.Carrier.Name, err))
				return
			}
			if inbound != "" {
				who := principal(r)
				if who == "" {
					refuseInbound(w, http.StatusForbidden, p.Carrier.Name+": a key needs an authenticated caller, to whom it belongs")
					return
				}
				key := NewScope("in").Key(who, inbound).UUID()
				r = r.WithContext(context.WithValue(r.Context(), inheritedKey{}, key))
			}
			next.ServeHTTP(w, r)
		})
	}
}

// refuseInbound answers an incoming request whose idempotency key cannot be used, with a problem in JSON (RFC 9457).
func refuseInbound(w http.ResponseWriter, status int, detail string) {
	body, _ := json.Marshal(map[string]any{"status": status, "title": http.StatusText(status), "detail": detail}) // texts and a number
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may have gone
}

// InheritedKey returns the parent key from [InheritKey] or [InheritKeyBy], for Key.Derive;
// "" if ctx has none. Do never uses it by itself. It panics if ctx is nil.
func InheritedKey(ctx context.Context) Key {
	key, _ := ctx.Value(inheritedKey{}).(Key)
	return key
}
