package oncehttp

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// operation is a caller's request, read once: the record that it would begin, the profile that it goes by, and the
// credentials that no journal sees. One of a pass has only the record.
type operation struct {
	rec         persist.Record
	prof        *profile.Profile
	credentials request.Credentials
	target      *url.URL // where the caller sends it
	read        *request.Snapshot

	// named is what the call names, as far as it could be read; it is set beside an error of snapshot, too.
	named request.Named
}

// keySource is what a call itself says about the key.
type keySource struct {
	key    Key
	given  bool // the call names the key, which then must not be empty
	chosen bool // a request without any key is an error; none is generated
}

// given is what the call says beside the request.
func (c *Client) given(req *http.Request, key keySource) request.Given {
	g := request.Given{Generate: !key.chosen, Now: c.now()}
	if key.given {
		g.Keys = append(g.Keys, string(key.key))
	}
	if inContext, ok := req.Context().Value(contextKey{}).(Key); ok {
		g.Keys = append(g.Keys, string(inContext))
	}
	return g
}

// snapshot reads the caller's request into op, with its body, which it closes in every case. It never changes the
// request. Beside an error op.named tells what the call names.
func (c *Client) snapshot(op *operation, req *http.Request, key keySource) error {
	s, named, err := c.cfg.reader.Read(req, c.cfg.profileFor(req.URL), c.given(req, key))
	if err != nil {
		op.named = named
		return err
	}
	*op = operation{rec: s.Record, prof: s.Profile, credentials: s.Credentials, target: s.URL, read: s, named: named}
	return nil
}

// requestTrouble is the sentinel that says why a request could not be taken.
func requestTrouble(err error) error {
	var e *request.Error
	if !errors.As(err, &e) {
		return ErrConfig
	}
	return map[request.Trouble]error{
		request.Invalid: ErrConfig, request.InvalidKey: ErrKeyInvalid,
		request.BodyTooLarge: ErrBodyTooLarge, request.HeaderTooLarge: ErrHeaderTooLarge,
		request.Ended: ErrNotSent,
	}[e.Trouble]
}

// journaled reports whether a request is an operation. Use same instead of req afterwards: its body may have been
// read to find a key. A misspelled method counts as an operation, so that snapshot refuses it.
func (c *Client) journaled(req *http.Request) (same *http.Request, journaled bool) {
	method := request.Method(req)
	if request.Safe(method) {
		return req, false
	}
	if c.cfg.journals(method) || request.CheckMethod(method) != nil {
		return req, true
	}
	carries, same := c.cfg.reader.CarriesKey(req, c.cfg.profileFor(req.URL), c.given(req, keySource{}))
	return same, carries
}

// sameRequest reports whether op is the request that a standing record names, by the record's own recipe.
func (op *operation) sameRequest(standing *persist.Record) bool {
	if op.read != nil {
		return op.read.Same(standing)
	}
	return request.Same(&op.rec, standing)
}

// authorize lets Config.Authorize add credentials to req, a request for rec. ctx ends with the attempt.
func (d *drive) authorize(ctx context.Context, rec *persist.Record, req *http.Request) error {
	if d.c.cfg.Authorize == nil {
		return nil
	}
	return request.Authorize(ctx, req, rec, d.prof, d.c.cfg.Authorize)
}

// intact reports whether a record that was read back is still what was hashed.
func intact(rec *persist.Record) bool { return request.Intact(rec) }

// urlOf is the URL that a record is sent to.
func urlOf(rec *persist.Record) (*url.URL, error) { return request.URL(rec) }

// originOf is scheme, host and port of u, normalised.
func originOf(u *url.URL) string { return request.Origin(u) }

// targetOf is a copy of u as it is sent to.
func targetOf(u *url.URL) *url.URL { return request.SentTo(u) }

// pathOf is a target without its query string.
func pathOf(target string) string { return request.Path(target) }

// basicAuth is what net/http's client makes of a URL's userinfo.
func basicAuth(req *http.Request, user *url.Userinfo) { request.BasicAuth(req, user) }

// foreign is an error of another package's code, with a text that may be logged.
func foreign(err error) error { return sanitize.Error(err) }

// memoryBody is bytes as a body.
type memoryBody struct{ bytes.Reader }

func (*memoryBody) Close() error { return nil }
