package request

import (
	"mime"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// This file reads signs of an operation in a request, for a caller of plain HTTP.

// Carries reports whether a request carries a key in the profile's carrier. A body is read only if it is JSON, or a form, as
// the carrier wants, and its length is known and within MaxBodyBytes. Use same instead of req afterwards, as with CarriesKey.
func (r *Reader) Carries(req *http.Request, p *profile.Profile) (carries bool, same *http.Request) {
	switch {
	case len(carriedKeys(req, p)) > 0:
		return true, req
	case !inBody(p) || req.Body == nil || req.Body == http.NoBody:
		return false, req
	case req.ContentLength <= 0 || req.ContentLength > r.MaxBodyBytes || !mayHold(req.Header, p.Carrier.Place):
		return false, req
	}
	return r.carriesInBody(req, p)
}

// mayHold reports whether a body with these headers may have a key at this place, a field of a form or a member of JSON.
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

// AtEndpoint reports whether the request goes to an endpoint at which the API honours keys, by the profile's list of endpoints and by
// Config.KeyHonoured. It is false if neither says anything.
func (r *Reader) AtEndpoint(req *http.Request, p *profile.Profile) bool {
	if len(p.Endpoints) == 0 && len(r.KeyHonoured) == 0 || p.Carrier.Place == profile.Nowhere || !isHTTP(req.URL) {
		return false
	}
	path := r.ownPath(req.URL.RequestURI())
	return Listed(r.KeyHonoured, Method(req), path) || Listed(p.Endpoints, Method(req), path)
}

// ownPath returns the path of a target without BasePath.
func (r *Reader) ownPath(target string) string {
	path := Path(target)
	if below, cut := strings.CutPrefix(path, r.BasePath); cut && strings.HasPrefix(below, "/") {
		return below
	}
	return path
}

// UnusedKeyHeader returns the name of a header of the request used for keys by other APIs, but not by this profile; empty if
// there is none.
func UnusedKeyHeader(req *http.Request, p *profile.Profile) string {
	if names := strangeKeyHeaders(req.Header, p); len(names) > 0 {
		return http.CanonicalHeaderKey(names[0])
	}
	return ""
}
