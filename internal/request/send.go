package request

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// New returns the request of one send to target: the recorded method, headers and bytes, the credentials, the caller's trace
// context, and the key in its carrier (the header for it; elsewhere it is in the recorded bytes). Its context is ctx. Its URL, header map and lines are its
// own. It has no GetBody, so net/http cannot send it again by itself.
func New(ctx context.Context, rec *persist.Record, target *url.URL, credentials Credentials) *http.Request {
	u := *target
	req := (&http.Request{
		Method: rec.Method, URL: &u, Host: u.Host, Header: make(http.Header, len(rec.Header)+len(credentials.Header)+len(credentials.Trace)+1),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Close: credentials.Close,
	}).WithContext(ctx)
	if host := rec.Header["Host"]; len(host) > 0 {
		req.Host = host[0]
	}
	for name, lines := range rec.Header {
		if name != "Host" {
			req.Header[name] = slices.Clone(lines)
		}
	}
	for _, own := range []http.Header{credentials.Header, credentials.Trace} {
		for name, lines := range own {
			req.Header[name] = slices.Clone(lines)
		}
	}
	if rec.Carrier == string(profile.Header) {
		req.Header[carrierSpelling(rec)] = []string{rec.KeyOnWire()}
	}
	BasicAuth(req, credentials.User)
	if len(rec.Body) > 0 {
		req.Body, req.ContentLength = bytesBody(rec.Body), int64(len(rec.Body))
	}
	return req
}

// SetFirstSent sets profile p's header for the time of the key's first send. Every attempt of every process says the recorded
// time. A request without the key, such as a lookup, gets none.
func SetFirstSent(req *http.Request, rec *persist.Record, p *profile.Profile) {
	if p.FirstSent != "" && rec.Carrier == string(profile.Header) {
		req.Header[http.CanonicalHeaderKey(p.FirstSent)] = []string{rec.FirstSent.UTC().Format(http.TimeFormat)}
	}
}

// BasicAuth sets an Authorization header from a URL's userinfo, as net/http's client does, unless there is one.
func BasicAuth(req *http.Request, user *url.Userinfo) {
	if user == nil || len(lines(req.Header, "Authorization")) > 0 {
		return
	}
	password, _ := user.Password()
	req.SetBasicAuth(user.Username(), password)
}

// carrierSpelling returns the spelling of the key's header in the header map. net/http takes Idempotency-Key and
// X-Idempotency-Key as a permission to send again by itself when a kept connection turns out to be dead. With a body, leaving
// out GetBody prevents this. Without a body, a spelling unknown to net/http prevents it. On the wire, case does not matter (RFC
// 9110 section 5.1).
func carrierSpelling(rec *persist.Record) string {
	if len(rec.Body) == 0 {
		return strings.ToLower(rec.CarrierName)
	}
	return http.CanonicalHeaderKey(rec.CarrierName)
}

// keyTravels reports whether the key is still there after a redirect. In a header or a body it is. In a query it depends on the
// server.
func keyTravels(rec *persist.Record, to *url.URL) bool {
	return rec.Carrier != string(profile.Query) || slices.Equal(to.Query()[rec.CarrierName], []string{rec.KeyOnWire()})
}

// lines returns a header's lines, however its name is spelled in the map, in a stable order. They may be h's own.
func lines(h http.Header, name string) []string {
	var all []string
	spellings := 0
	for spelled := range h {
		if strings.EqualFold(spelled, name) {
			all = h[spelled]
			spellings++
		}
	}
	if spellings < 2 {
		return all
	}
	all = nil
	for _, spelled := range slices.Sorted(maps.Keys(h)) {
		if strings.EqualFold(spelled, name) {
			all = append(all, h[spelled]...)
		}
	}
	return all
}

// joinedLines returns a header's lines as one (RFC 9110 section 5.3).
func joinedLines(h http.Header, name string) string { return strings.Join(lines(h, name), ",") }
