package request

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// SameOrigin is where a Location leads from a URL, or nil if that is another origin or no URL.
func SameOrigin(from *url.URL, location string) *url.URL {
	to, err := from.Parse(location)
	if err != nil || location == "" || to.Host == "" || Origin(to) != Origin(from) {
		return nil
	}
	next := sentTo(to)
	return &next
}

// Hop is where the record's request may be sent on to by a redirect: to the same origin, if the key travels along;
// else nil.
func Hop(rec *persist.Record, from *url.URL, location string) *url.URL {
	to := SameOrigin(from, location)
	if to == nil || !keyTravels(rec, to) {
		return nil
	}
	return to
}

// ByReference is the GET, without a key, for what was made under the business reference of the record's request, and its
// target. The target is nil if the profile has no such lookup, or if the request lacks a value that it needs.
func ByReference(rec *persist.Record, p *profile.Profile) (get persist.Record, target *url.URL) {
	if p.Reference == nil {
		return get, nil
	}
	fields := FieldsOf(rec.Header, rec.Body)
	path := strings.ReplaceAll(p.Reference.Path, "{path}", Path(rec.Target))
	parts := strings.Split(path, "{")
	for i, part := range parts[1:] {
		pointer, rest, _ := strings.Cut(part, "}")
		text, err := fields.Text(pointer)
		if err != nil {
			return get, nil
		}
		parts[i+1] = url.QueryEscape(text) + rest
		if !strings.Contains(strings.Join(parts[:i+1], ""), "?") {
			parts[i+1] = url.PathEscape(text) + rest
		}
	}
	return getRequest(rec, strings.Join(parts, ""))
}

// getRequest is a GET at the record's origin, without key and body.
func getRequest(rec *persist.Record, target string) (get persist.Record, at *url.URL) {
	get = *rec
	get.Method, get.Body, get.Carrier, get.Target = http.MethodGet, nil, "", target
	at, err := URL(&get)
	if err != nil || !strings.HasPrefix(target, "/") || Origin(at) != rec.Origin {
		return get, nil // a profile's path may not lead to another host
	}
	return get, at
}

// Lookup is the GET, without a key, for the resource that an already-done answer names, and its target. The target
// is nil if the profile has no lookup, or if the answer, of which body is whole or not, names none.
func Lookup(rec *persist.Record, p *profile.Profile, body []byte, whole bool) (get persist.Record, target *url.URL) {
	if p.Lookup == nil || !whole {
		return get, nil
	}
	id, found := jsonpointer.Text(jsonpointer.Decode(body), p.Lookup.Pointer)
	if !found || id == "" {
		return get, nil
	}
	return getRequest(rec, strings.NewReplacer("{path}", Path(rec.Target), "{id}", url.PathEscape(id)).Replace(p.Lookup.Path))
}
