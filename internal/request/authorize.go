package request

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// ErrChanged is the error of a function for adding credentials if it changed the request named by the key.
var ErrChanged = errors.New("Authorize changed what it must not")

// Authorize lets sign add credentials to req, a request of New for rec under profile p. sign gets a copy with the context ctx,
// without a trace: a token fetched with ctx must not pass for the request. sign may set headers, and the query parameters named
// by rec.Omitted. Everything else of the query must stay byte for byte. Then these are taken over into req.
//
// If the error matches ErrChanged, req must not be sent. Authorize returns it if method, URL, Host, body, the key, or a header
// of the fingerprint or of the account differ afterwards. The same holds if another key header was added, or a header refused
// by checkHeader.
func Authorize(ctx context.Context, req *http.Request, rec *persist.Record, p *profile.Profile, sign func(*http.Request) error) error {
	shown := req.Clone(ctx)
	spelled := carrierSpelling(rec)
	respell(shown.Header, spelled, http.CanonicalHeaderKey(spelled)) // for a signer's Get
	if req.Body != nil {
		recorded := rec.Body // sign may keep GetBody longer than rec stays as it is
		shown.Body = bytesBody(recorded)
		shown.GetBody = func() (io.ReadCloser, error) { return bytesBody(recorded), nil }
	}
	body := shown.Body
	if err := sign(shown); err != nil {
		return fmt.Errorf("from Authorize: %w", sanitize.Error(err))
	}
	if !sameBody(body, shown.Body, rec.Body) {
		return fmt.Errorf("%w: the body", ErrChanged)
	}
	if err := unchanged(req, shown, rec, p); err != nil {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	respell(shown.Header, http.CanonicalHeaderKey(spelled), spelled)
	u := *shown.URL
	req.Header, req.URL = shown.Header, &u
	return nil
}

// unchanged compares a request before and after the program's Config.Authorize, which may only add credentials. An error names the first forbidden
// change, such as "the key".
func unchanged(req, shown *http.Request, rec *persist.Record, p *profile.Profile) error {
	switch {
	case shown.Method != req.Method:
		return errors.New("the method")
	case shown.URL == nil || withoutOmitted(shown.URL, rec) != withoutOmitted(req.URL, rec):
		return errors.New("the URL")
	case shown.Host != req.Host:
		return errors.New("the host")
	case len(shown.Trailer) > 0:
		return errors.New("the trailers")
	case rec.Carrier == string(profile.Header) && !isOnly(lines(shown.Header, rec.CarrierName), rec.KeyOnWire()):
		return errors.New("the key")
	}
	if err := unchangedHeader(req, shown, rec, p); err != nil {
		return err
	}
	if name := otherAccount(shown.Header, rec); name != "" {
		return fmt.Errorf("the header %s, which selects the account", name)
	}
	return checkHeader(shown.Header)
}

// unchangedHeader returns an error with the name of a header of the recorded request that Authorize has changed, or of another key's that it has added.
// p.FirstSent is the header for the time of the first send. A recipe names the headers that count for the fingerprint; those left out of the record as
// credentials (Omitted) may change.
func unchangedHeader(req, shown *http.Request, rec *persist.Record, p *profile.Profile) error {
	carrier := &profile.Profile{Carrier: profile.Carrier{Place: profile.Place(rec.Carrier), Name: rec.CarrierName}}
	for _, name := range strangeKeyHeaders(shown.Header, carrier) {
		if len(lines(req.Header, name)) == 0 {
			return fmt.Errorf("the key header %s", name)
		}
	}
	if p.FirstSent != "" && joinedLines(shown.Header, p.FirstSent) != joinedLines(req.Header, p.FirstSent) {
		return fmt.Errorf("the header %s", p.FirstSent)
	}
	recorded, _ := parseRecipe(rec.Recipe)
	for _, name := range recorded.headers {
		if !contains(rec.Omitted, name) && joinedLines(shown.Header, name) != joinedLines(req.Header, name) {
			return fmt.Errorf("the header %s", name)
		}
	}
	return nil
}

// otherAccount returns the name of the first header with another value than the record's scopes (headers that select an account) have; "" if there is none.
// Such a value selects another account. The scopes hold digests, so a header with credentials is compared, too, although the record does not have its value.
func otherAccount(h http.Header, rec *persist.Record) string {
	for _, scope := range rec.Scopes {
		if !intent.SameScope(joinedLines(h, scope.Name), scope.Value) {
			return scope.Name
		}
	}
	return ""
}

// isOnly reports whether a header has exactly this one line.
func isOnly(lines []string, line string) bool { return len(lines) == 1 && lines[0] == line }

// withoutOmitted spells a URL without the query parameters in the record's Omitted: credentials, which no record has.
func withoutOmitted(u *url.URL, rec *persist.Record) string {
	rest := *u
	rest.RawQuery, _ = dropParameters(u.RawQuery, func(name string) bool { return contains(rec.Omitted, omittedParameter+name) })
	return rest.String()
}

// respell moves a header to another spelling of its name in the map, such as from idempotency-key to Idempotency-Key: Get finds only the second, and net/http writes
// the name as the map has it. It does nothing if the header is not there.
func respell(h http.Header, from, to string) {
	if values, ok := h[from]; ok && from != to {
		delete(h, from)
		h[to] = values
	}
}

// sameBody reports whether the body left behind by sign is the recorded one. A signer may read its given body, and may put
// another reader in its place, but not other bytes.
func sameBody(given, now io.ReadCloser, want []byte) bool {
	if now == given {
		return true
	}
	if now == nil || now == http.NoBody {
		return len(want) == 0
	}
	got, err := io.ReadAll(io.LimitReader(now, int64(len(want))+1))
	return err == nil && bytes.Equal(got, want)
}
