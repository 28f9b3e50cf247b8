package keylayer

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/oncehttp/oncehttp/profile"
)

// References is what an API without keys goes by: values in the body that name the order, such as its number, of which
// each is taken once. It also answers the lookup for them. It is safe for concurrent use.
type References struct {
	p      *profile.Profile
	lookup *regexp.Regexp // of a GET's target, one group for each value
	fields []string       // the values' pointers in a request; "" stands for its path

	mu   sync.Mutex
	made map[string]*Answer // the resources, by the values
}

// NewReferences returns nil where the profile has no such lookup.
func NewReferences(p *profile.Profile) *References {
	if p.Reference == nil || len(p.Duplicate) == 0 {
		return nil
	}
	t := &References{p: p, made: map[string]*Answer{}}
	parts := strings.Split(p.Reference.Path, "{")
	pattern := "^" + regexp.QuoteMeta(parts[0])
	for _, part := range parts[1:] {
		name, rest, _ := strings.Cut(part, "}")
		group := "([^/?&]*)"
		if name == "path" {
			name, group = "", "([^?]*)"
		}
		t.fields = append(t.fields, name)
		pattern += group + regexp.QuoteMeta(rest)
	}
	t.lookup = regexp.MustCompile(pattern + "$")
	return t
}

// named is the order that a request names; false if it lacks a value, so that it is like no other.
func (t *References) named(r *http.Request, body []byte) (string, bool) {
	values := make([]string, len(t.fields))
	for i, pointer := range t.fields {
		if values[i] = r.URL.Path; pointer != "" {
			values[i], _ = LookupText(AsJSON(r, body), pointer)
		}
		if values[i] == "" {
			return "", false
		}
	}
	return strings.Join(values, "\x00"), true
}

// Take runs create unless there is a resource that the request's order has already; then it answers as the profile says.
// What create made shows the values that the lookup compares.
func (t *References) Take(r *http.Request, body []byte, create func() *Answer) *Answer {
	name, is := t.named(r, body)
	if !is {
		return create()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made[name] != nil {
		return spelled(t.p, t.p.Duplicate[0], http.StatusConflict, "this reference was used before", "")
	}
	a := create()
	if a.Status >= 300 {
		return a
	}
	var document any
	if json.Unmarshal(a.Body, &document) != nil {
		return a
	}
	for _, same := range t.p.Reference.Same {
		if value, found := Lookup(AsJSON(r, body), same.Request); found {
			document = plant(document, pointerTokens(same.Resource), value)
		}
	}
	resource := JSONAnswer(a.Status, JSONType, document)
	resource.Header = a.Header
	t.made[name] = JSONAnswer(http.StatusOK, JSONType, document)
	return resource
}

// Find answers a lookup; nil: the request is none.
func (t *References) Find(r *http.Request) *Answer {
	groups := t.lookup.FindStringSubmatch(r.URL.RequestURI())
	if r.Method != http.MethodGet || groups == nil {
		return nil
	}
	values := make([]string, len(t.fields))
	for i, text := range groups[1:] {
		plain, err := url.QueryUnescape(text)
		if err != nil {
			return nil
		}
		values[i] = plain
	}
	t.mu.Lock()
	found := t.made[strings.Join(values, "\x00")]
	t.mu.Unlock()
	if t.p.Reference.List == "" {
		return found // nil: 404, or what else is at this path
	}
	list := []any{}
	if found != nil {
		list = append(list, json.RawMessage(found.Body))
	}
	return JSONAnswer(http.StatusOK, JSONType, plant(nil, pointerTokens(t.p.Reference.List), list))
}

// Reset forgets all orders.
func (t *References) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.made)
}
