package oncehttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// errAuthorizeChanged: Config.Authorize changed what it must not.
var errAuthorizeChanged = errors.New("the method, URL, key or body of the request was changed by Authorize")

// authorize adds credentials to req: the caller's userinfo, then what
// Config.Authorize sets on a clone. Only headers of that clone are taken over. The
// clone's context ends with the attempt and has no trace: a token that is fetched
// with it must not pass for the request.
func (d *drive) authorize(ctx context.Context, rec *persist.Record, req *http.Request) error {
	basicAuth(req, d.user)
	authorize := d.c.cfg.Authorize
	if authorize == nil {
		return nil
	}
	clone := req.Clone(ctx)
	spelled := carrierSpelling(rec)
	respell(clone.Header, spelled, http.CanonicalHeaderKey(spelled)) // so that a signer's Get finds it
	if req.Body != nil {
		body := rec.Body
		clone.Body = newBody(body)
		clone.GetBody = func() (io.ReadCloser, error) { return newBody(body), nil }
	}
	given := clone.Body
	if err := authorize(clone); err != nil {
		return fmt.Errorf("from Authorize: %w", foreign(err))
	}
	if clone.Method != req.Method || clone.URL == nil || clone.URL.String() != req.URL.String() || clone.Host != req.Host ||
		!sameKey(rec, clone.Header) || !sameBody(given, clone.Body, rec.Body) {
		return errAuthorizeChanged
	}
	respell(clone.Header, http.CanonicalHeaderKey(spelled), spelled)
	req.Header = clone.Header
	return nil
}

// basicAuth is what net/http's client makes of a URL's userinfo.
func basicAuth(req *http.Request, user *url.Userinfo) {
	if _, n := headerLine(req.Header, "Authorization"); user == nil || n > 0 {
		return
	}
	password, _ := user.Password()
	req.SetBasicAuth(user.Username(), password)
}

// respell moves a header to another spelling of its name.
func respell(h http.Header, from, to string) {
	if lines, ok := h[from]; ok && from != to {
		delete(h, from)
		h[to] = lines
	}
}

func sameKey(rec *persist.Record, h http.Header) bool {
	if rec.Carrier != string(profile.Header) {
		return true // it stands in the URL or the body, which are compared whole
	}
	line, n := headerLine(h, rec.CarrierName)
	return n == 1 && line == rec.WireKey
}

// sameBody: a signer may read the body, and may put another reader in its place,
// but not other bytes.
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
