package request

import (
	"mime"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// This file reads signs of an operation in a request, before it is read as one.

// Carries reports whether a request carries a key in the profile's carrier (the place of its keys). A body is read only if it is JSON, or a form, as
// the carrier wants, and its length is known and within Bodies.Max. Use same instead of req afterwards, as with CarriesKey.
func (r *Reader) Carries(req *http.Request, p *profile.Profile) (carries bool, same *http.Request) {
	switch {
	case len(carriedKeys(req, p)) > 0:
		return true, req
	case !inBody(p) || req.Body == nil || req.Body == http.NoBody:
		return false, req
	case req.ContentLength <= 0 || req.ContentLength > r.Bodies.Max || !mayHold(req.Header, p.Carrier.Place):
		return false, req
	}
	return r.carriesInBody(req, p)
}

// CarriesKey reports whether a request carries a key, or the call names one. It is an operation then, whatever its method. If
// the profile's keys travel in the body, CarriesKey has to read the body, up to Bodies.Max. Use same instead of req
// afterwards: it gives the same body again. An unreadable body counts as one with a key, and gives the same error to Read.
func (r *Reader) CarriesKey(req *http.Request, p *profile.Profile, given Given) (carries bool, same *http.Request) {
	if len(given.Keys) > 0 || len(carriedKeys(req, p)) > 0 || len(strangeKeyHeaders(req.Header, p)) > 0 {
		return true, req
	}
	if !inBody(p) || req.Body == nil || req.Body == http.NoBody {
		return false, req
	}
	return r.carriesInBody(req, p)
}

// carriesInBody reports whether the body of a request carries a key. It reads the body, and returns a copy of the request with a body to be read again. A body that
// cannot be read counts as one with a key, and the body of the copy gives the error of its read.
func (r *Reader) carriesInBody(req *http.Request, p *profile.Profile) (carries bool, same *http.Request) {
	same = req.WithContext(req.Context())
	var body []byte
	var err error
	defer func() { r.Bodies.close(req, err) }()
	body, err = r.Bodies.read(req, false)
	if err != nil {
		same.Body, same.GetBody, same.ContentLength = failedBody{err}, nil, -1
		return true, same
	}
	return len(keysInBody(req.Header, body, p.Carrier)) > 0, WithBody(req, body)
}

// WithBody returns a copy of req with body, the bytes read from req.
func WithBody(req *http.Request, body []byte) *http.Request {
	same := req.WithContext(req.Context())
	same.Body, same.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		same.Body = bytesBody(body)
	}
	return same
}

// mayHold reports whether a body with these headers may have a key at this place, a field of a form or a member of JSON. A body without a Content-Type, or of
// text/plain, may be JSON, too: some clients send it so.
func mayHold(h http.Header, place profile.Place) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if place == profile.Form {
		return kind == formType
	}
	return kind == "" || kind == "text/plain" || IsJSON(kind)
}

const formType = "application/x-www-form-urlencoded"

// IsJSON reports whether a media type is JSON, by its name.
func IsJSON(kind string) bool {
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

// UnusedKeyHeader returns the name of a header of the request used for keys by other APIs, but not by this profile; empty if
// there is none.
func UnusedKeyHeader(req *http.Request, p *profile.Profile) string {
	if names := strangeKeyHeaders(req.Header, p); len(names) > 0 {
		return http.CanonicalHeaderKey(names[0])
	}
	return ""
}
