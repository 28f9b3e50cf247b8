package oncehttp

import (
	"context"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/profile"
)

type inheritedKey struct{}

// InheritKey is middleware that takes the key of an inbound request, binds it to
// its caller, and puts it into the request's context, where [InheritedKey] finds
// it. principal says who the caller is; it must come from authentication, never
// from the key. Without a key, with more than one, or with an empty principal,
// the context stays without.
//
// The inbound key itself never goes on the wire again: another hop gets a child
// of it (see Key.Derive), so that the operation stays idempotent at every hop
// and no caller can name another's keys. The key is read from the header
// Idempotency-Key; [InheritKeyBy] reads it as a profile says.
func InheritKey(principal func(*http.Request) string) func(http.Handler) http.Handler {
	return InheritKeyBy(profile.Draft07(), principal)
}

// InheritKeyBy is [InheritKey] for an API whose callers send keys as p says: in
// the header that p names, spelled as p has it. A key that is not spelled so is
// none, and so is one that p carries elsewhere than in a header.
func InheritKeyBy(p *profile.Profile, principal func(*http.Request) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inbound, who := request.InboundKey(r.Header, p), principal(r)
			if inbound != "" && who != "" {
				key := NewScope("in").Key(who, inbound).UUID()
				r = r.WithContext(context.WithValue(r.Context(), inheritedKey{}, key))
			}
			next.ServeHTTP(w, r)
		})
	}
}

// InheritedKey is the parent key that [InheritKey] or [InheritKeyBy] put into ctx, to Derive children
// from; "" if there is none. Do never uses it by itself.
func InheritedKey(ctx context.Context) Key {
	key, _ := ctx.Value(inheritedKey{}).(Key)
	return key
}
