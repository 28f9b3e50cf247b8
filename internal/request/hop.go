package request

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// SameOrigin returns the target of a redirect, whose Location may be relative to from. It is nil if that is no URL, or one at another origin: the key
// goes to no other server.
func SameOrigin(from *url.URL, location string) *url.URL {
	if location == "" {
		return nil
	}
	to, err := from.Parse(location)
	if err != nil || to.Host == "" || Origin(to) != Origin(from) {
		return nil
	}
	next := sentTo(to)
	return &next
}

// Hop returns the target of a redirect if the record's request may be sent on to it: it is at the same origin, and the key
// travels along. Otherwise Hop returns nil.
func Hop(rec *persist.Record, from *url.URL, location string) *url.URL {
	to := SameOrigin(from, location)
	if to == nil || !keyTravels(rec, to) {
		return nil
	}
	return to
}

// ByReference returns the GET, without a key, for the resource made under the business reference of the record's request, and
// its target. The target is nil if the profile has no such lookup, or if the request lacks a value for it.
func ByReference(rec *persist.Record, p *profile.Profile) (get persist.Record, target *url.URL) {
	if p.Reference == nil {
		return get, nil
	}
	path, known := expand(rec, p.Reference.Path)
	if !known {
		return get, nil
	}
	return Get(rec, path)
}

// TokenRequest returns the request to the API for the token of the record's request, and its target. It has neither key nor
// body. The target is nil if the profile does not say how to ask, or if the request lacks a value for it.
func TokenRequest(rec *persist.Record, p *profile.Profile) (ask persist.Record, target *url.URL) {
	if p.Token == nil || p.Token.Path == "" {
		return ask, nil
	}
	path, known := expand(rec, p.Token.Path)
	if !known {
		return ask, nil
	}
	ask, target = Get(rec, path)
	ask.Method = cmp.Or(p.Token.Method, http.MethodPost)
	return ask, target
}

// Token returns the token (a key made by the server) in the answer to a TokenRequest; empty if the answer has none, is no 2xx, or was cut off (whole is
// false).
func Token(p *profile.Profile, status int, body []byte, whole bool) string {
	if status < 200 || status >= 300 || !whole {
		return ""
	}
	text, _ := jsonpointer.Text(jsonpointer.Decode(body), p.Token.Pointer)
	return text
}

// CancelRequest returns the request to the API for undoing the operation under the record's key, and its target. The target is
// nil if the profile does not say how for operations at this path. The body is a JSON object with nothing but the key, at the pointer that the profile names.
func CancelRequest(rec *persist.Record, p *profile.Profile) (ask persist.Record, target *url.URL) {
	if p.Cancel == nil || p.Cancel.For != Path(rec.Target) {
		return ask, nil
	}
	var body any = rec.KeyOnWire()
	names := strings.Split(p.Cancel.Pointer[1:], "/")
	for _, name := range slices.Backward(names) {
		body = map[string]any{strings.NewReplacer("~1", "/", "~0", "~").Replace(name): body}
	}
	ask, target = Get(rec, p.Cancel.Path)
	ask.Method = http.MethodPost
	ask.Body, _ = json.Marshal(body) // of strings
	ask.Header = rec.Header.Clone()
	if ask.Header == nil {
		ask.Header = http.Header{}
	}
	ask.Header["Content-Type"] = []string{"application/json"}
	return ask, target
}

// SpellKey returns the spelling of a key, or of a token, on the wire. It returns an error if the profile does not allow the
// key.
func SpellKey(p *profile.Profile, key string) (wire string, err error) {
	if err := checkKey(p, key); err != nil {
		return "", err
	}
	return encodeKey(p.Encoding, key)
}

// Rekeyed returns the record of the same request under another key. This record was never sent: it has nothing of sends, answers and ends. If there can be no
// such record, Rekeyed returns the reason as an error.
func Rekeyed(rec *persist.Record, p *profile.Profile, key string) (next persist.Record, err error) {
	switch {
	case inRequest(p):
		return next, fmt.Errorf("the key travels in the request itself, in %s; make the request anew with the new key", place(p))
	case rec.RequestGone():
		return next, errors.New("the journal keeps its request no more; make the request anew with the new key")
	case key == rec.Key:
		return next, errors.New("the new key is the old one")
	case rec.ServerToken: // the API never sees the key
		err = checkKey(&profile.Profile{Name: p.Name}, key) // only the bounds for every key
	default:
		next.WireKey, err = SpellKey(p, key)
	}
	if err != nil {
		return next, err
	}
	wire := next.WireKey
	next = persist.Record{
		ID: persist.ID{Account: rec.Account, Key: key}, Replaces: rec.Key, Generated: rec.Generated, Credential: rec.Credential, Region: rec.Region,
		Origin: rec.Origin, Method: rec.Method, Target: rec.Target, Header: rec.Header, Body: rec.Body, Omitted: rec.Omitted, KeptFields: rec.KeptFields,
		Carrier: rec.Carrier, CarrierName: rec.CarrierName, Protected: rec.Protected, Credentials: rec.Credentials, WireKey: wire, ServerToken: rec.ServerToken,
		Profile: rec.Profile, ProfileVersion: rec.ProfileVersion, Window: rec.Window, Pauses: rec.Pauses, Fingerprint: rec.Fingerprint, Recipe: rec.Recipe,
		Business: rec.Business, AskFirst: rec.AskFirst, DropAnswer: rec.DropAnswer, Results: rec.Results, Scopes: rec.Scopes, Facts: rec.Facts, Content: rec.Content, Trace: rec.Trace, KeepRequest: rec.KeepRequest,
	}
	return next, nil
}

// expand replaces {path} and each {pointer} in the path of a profile's lookup or token request by values of the record's request,
// escaped for their place in the path or the query. known is false if a value is missing or is no text.
func expand(rec *persist.Record, template string) (path string, known bool) {
	fields := FieldsOf(rec.Header, rec.Body)
	parts := strings.Split(strings.ReplaceAll(template, "{path}", Path(rec.Target)), "{")
	for i, part := range parts[1:] {
		pointer, rest, _ := strings.Cut(part, "}")
		text, err := fields.Text(pointer)
		if err != nil {
			return "", false
		}
		parts[i+1] = url.QueryEscape(text) + rest
		if !strings.Contains(strings.Join(parts[:i+1], ""), "?") {
			parts[i+1] = url.PathEscape(text) + rest
		}
	}
	return strings.Join(parts, ""), true
}

// Get returns a GET at the record's origin, without key and body, and its URL. The URL is nil if target is not at this origin.
func Get(rec *persist.Record, target string) (get persist.Record, at *url.URL) {
	get = *rec
	get.Method, get.Body, get.Carrier, get.Target = http.MethodGet, nil, "", target
	at, err := URL(&get)
	if err != nil || !strings.HasPrefix(target, "/") || Origin(at) != rec.Origin {
		return get, nil // a profile's path may not lead to another host
	}
	return get, at
}

// Lookup returns the GET, without a key, for the resource named by an already-done answer, and its target. The target is nil if
// the profile has no lookup, or if the answer names no resource. An answer with an incomplete body (whole is false) names none.
func Lookup(rec *persist.Record, p *profile.Profile, body []byte, whole bool) (get persist.Record, target *url.URL) {
	if p.Lookup == nil || !whole {
		return get, nil
	}
	id, found := jsonpointer.Text(jsonpointer.Decode(body), p.Lookup.Pointer)
	if !found || id == "" {
		return get, nil
	}
	return Get(rec, strings.NewReplacer("{path}", Path(rec.Target), "{id}", url.PathEscape(id)).Replace(p.Lookup.Path))
}
