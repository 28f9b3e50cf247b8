package request

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Keys are the rules of a client for the keys of requests: who makes one, and whether it is put into the request. They are immutable and safe
// for concurrent use.
type Keys struct {
	// Required: a request without a key is an error, and New is not asked.
	Required bool
	// New is the program's Config.NewKey: it makes the key of a request without one. It gets a copy without Body, but with GetBody. If business is
	// true, the same request always gets this key; its record counts as one of a key chosen by the caller.
	New func(*http.Request) (key string, business bool, err error)
	// Insert: a key named by the call is put into the body, form or query if the profile has keys there and the request has
	// none. MakesBusiness: all keys of New are the business's own.
	Insert, MakesBusiness bool
}

// MayMake reports whether New, the program's Config.NewKey, may be asked for requests under a profile. Into a body, a form or a query only a key made
// of business data is put: with another key each time, the same request would be another one. With Required, a request without a key is refused instead.
func (k *Keys) MayMake(p *profile.Profile) bool {
	return !k.Required && (!inRequest(p) || k.inserts(p) && k.MakesBusiness)
}

// inserts reports whether keys are put into requests under a profile.
func (k *Keys) inserts(p *profile.Profile) bool { return k.Insert && inRequest(p) }

// inRequest reports whether a key travels in the body, form or query made by the caller.
func inRequest(p *profile.Profile) bool {
	return inBody(p) || p.Carrier.Place == profile.Query
}

// inBody reports whether a key travels in the body. The body has to be read for it.
func inBody(p *profile.Profile) bool {
	return p.Carrier.Place == profile.Body || p.Carrier.Place == profile.Form
}

// Made is the answer of NewKey for one request.
type Made struct {
	Key      string // empty beside an error
	Business bool   // the same request always gets this key
	Err      error  // of type *Error
}

// ask calls New, the program's Config.NewKey, for the key of a request. shown is the request as Bodies.Shown gives it. An empty key is an error.
func (k *Keys) ask(shown *http.Request) *Made {
	key, business, err := k.New(shown)
	switch {
	case err != nil:
		return &Made{Err: &Error{InvalidKey, fmt.Errorf("from NewKey: %w", sanitize.Error(err))}}
	case key == "":
		return &Made{Err: &Error{InvalidKey, errors.New("an empty key from NewKey")}}
	}
	return &Made{Key: key, Business: business}
}

// one returns the one key of a request and its spelling on the wire: the key that the call names, or the one in the request, else the generated one.
// Two different keys are an error, and so is one that the profile does not allow. With a token of the server (p.Token) wire is "": that travels in place of
// the key.
func (k *Keys) one(req *http.Request, p *profile.Profile, named Named, body []byte, given Given, generated string) (key, wire string, err error) {
	key, wire, err = findKey(req, p, named, body, given)
	if err == nil && key == "" {
		key = generated
	}
	if err == nil {
		err = k.checkOne(p, key, wire, given)
	}
	if err == nil && wire == "" && p.Token == nil {
		wire, err = encodeKey(p.Encoding, key)
	}
	if err != nil {
		return "", "", &Error{InvalidKey, err}
	}
	return key, wire, nil
}

// checkOne checks the key of a request by the profile's rule. wire is its spelling in the request, empty if the request does not carry it. The error
// says what is missing or wrong.
func (k *Keys) checkOne(p *profile.Profile, key, wire string, given Given) error {
	switch {
	case key == "" && k.Required:
		return errors.New("the request has no key, and RequireKey is set")
	case wire == "" && inRequest(p) && (key == "" || !k.Insert): // Insert: the client puts a named key into the request
		return k.lacksKey(p, key)
	case key == "" && !given.Generate:
		return errors.New("the request has no key")
	case p.Token != nil && wire != "":
		return fmt.Errorf("the request has a header %s; leave it out, since the server's token travels there", p.Carrier.Name)
	case p.Token != nil:
		return checkKey(&profile.Profile{Name: p.Name}, key) // the API's own rule is for the token
	}
	return checkKey(p, key)
}

// lacksKey returns the error for a request without a key in its body, form or query. The error says how to put one there.
func (k *Keys) lacksKey(p *profile.Profile, key string) error {
	how := "put it there, or set InsertKey"
	switch {
	case k.Insert:
		how = "name it (DoKey, ContextWithKey or KeyFromJSON), and InsertKey puts it there; a key that is made up for the call would make another request of it each time"
	case key == "":
		how = "put it there, or name it (DoKey, ContextWithKey) and set InsertKey"
	}
	return fmt.Errorf("profile %q wants the key in %s: %s", p.Name, place(p), how)
}

// findKey returns the one key that the call names or the request carries, and its spelling in the request, "" if it is not there. Both are empty if there is
// none.
func findKey(req *http.Request, p *profile.Profile, named Named, body []byte, given Given) (key, wire string, err error) {
	if len(named.strange) > 0 {
		return "", "", fmt.Errorf("profile %q does not use the key header %s", p.Name, http.CanonicalHeaderKey(named.strange[0]))
	}
	if p.FirstSent != "" && len(lines(req.Header, p.FirstSent)) > 0 {
		return "", "", fmt.Errorf("the request has a header %s; leave it out, since every attempt says the time that the journal keeps", p.FirstSent)
	}
	key, wire, err = carriedKey(req, p, body)
	if err != nil {
		return "", "", err
	}
	for _, other := range given.Keys {
		switch {
		case other == "":
			return "", "", errors.New("the key is empty")
		case key != "" && key != other:
			return "", "", fmt.Errorf("two keys in one request: %q and %q", key, other)
		}
		key = other
	}
	return key, wire, nil
}

// carriedKey returns the key that a request carries at the place that the profile names, and its spelling there. Both are empty if there is none.
// Several keys are an error.
func carriedKey(req *http.Request, p *profile.Profile, body []byte) (key, wire string, err error) {
	values := carriedKeys(req, p)
	if inBody(p) {
		values = keysInBody(req.Header, body, p.Carrier)
	}
	switch len(values) {
	case 0:
		return "", "", nil
	case 1:
		wire = values[0]
	default:
		return "", "", fmt.Errorf("%d keys in %s; want one", len(values), place(p))
	}
	encoding := p.Encoding
	if p.Carrier.Place != profile.Header {
		encoding = profile.Raw
	}
	key, err = decodeKey(encoding, wire)
	if err != nil {
		return "", "", fmt.Errorf("profile %q: %w", p.Name, err)
	}
	if key == "" { // spelled as an empty string; it never means a fresh key
		return "", "", fmt.Errorf("the key in %s is empty", place(p))
	}
	return key, wire, nil
}

// place returns the place in which the profile's key travels, in words for errors.
func place(p *profile.Profile) string {
	if p.Carrier.Place == profile.Form {
		return fmt.Sprintf("the field %s of a form", p.Carrier.Name)
	}
	return fmt.Sprintf("the %s at %s", p.Carrier.Place, p.Carrier.Name)
}

// carriedKeys returns the values in the profile's carrier (the place of its keys), as spelled. It returns none of a body, since the body would have to
// be read.
func carriedKeys(req *http.Request, p *profile.Profile) []string {
	switch p.Carrier.Place {
	case profile.Header:
		return lines(req.Header, p.Carrier.Name)
	case profile.Query:
		if req.URL != nil {
			return req.URL.Query()[p.Carrier.Name]
		}
	}
	return nil
}

// keysInBody returns the texts at the carrier (the place of the key) in the body of a request with these headers. At a JSON pointer there is more than
// one text only if an object on the way has a name twice. The text of a value other than a string, number or boolean is empty.
// In a form they are the texts of all fields of the carrier's name. A body that is no form, or without the Content-Type of a
// form, has no fields.
func keysInBody(h http.Header, body []byte, c profile.Carrier) []string {
	if c.Place == profile.Form {
		return FieldsOf(h, body).form[c.Name]
	}
	return jsonpointer.Texts(body, c.Name)
}

// queryCarrier returns the name of the query parameter for the key; empty if the key travels elsewhere.
func queryCarrier(p *profile.Profile) string {
	if p.Carrier.Place == profile.Query {
		return p.Carrier.Name
	}
	return ""
}

// recordCarrier returns the name of the query parameter for a record's key; empty if the key travels elsewhere.
func recordCarrier(rec *persist.Record) string {
	if rec.Carrier == string(profile.Query) {
		return rec.CarrierName
	}
	return ""
}

// strangeKeyHeaders returns the names of the key headers not used by the profile, in order. The caller relies on a key there,
// but this API would not see it.
func strangeKeyHeaders(h http.Header, p *profile.Profile) []string {
	var names []string
	for name := range h {
		if isKeyHeader(name) && !(p.Carrier.Place == profile.Header && strings.EqualFold(name, p.Carrier.Name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isKeyHeader reports whether APIs in the field take keys in a header of this name: PayPal-Request-Id, Repeatability-Request-Id
// (OASIS Repeatable Requests 1.0), and idempotency headers. The name of an idempotency header holds "idempotency" or
// "idempotence", and ends in it or in a word for a key. Examples are Cko-Idempotency-Key, X-Payout-Idempotency and
// X-Idempotence-UUID.
func isKeyHeader(name string) bool {
	lower := appendLower(make([]byte, 0, 64), name)
	if !bytes.Contains(lower, []byte("idempoten")) {
		return string(lower) == "paypal-request-id" || string(lower) == "repeatability-request-id"
	}
	switch string(lower[bytes.LastIndexAny(lower, "-_")+1:]) {
	case "key", "uuid", "id", "token", "idempotency", "idempotence":
		return true
	}
	return false
}
