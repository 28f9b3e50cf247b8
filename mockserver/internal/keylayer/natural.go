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

// References plays an API with business references in place of keys: values in a request that name the order, such as its
// number. Each list of values is taken once. It also answers the lookup by them. It is safe for concurrent use.
type References struct {
	p      *profile.Profile
	lookup *regexp.Regexp // matches the target of a lookup, with one group for each value
	fields []string       // the JSON pointers to the values in a request; "" stands for its path

	mu   sync.Mutex
	made map[string]*Answer // the answers to lookups, by the values joined with NUL
}

// NewReferences returns the table of business references that the API takes once only; nil if the profile has no such reference. A reference is made
// of values in a request, such as the number of an order. In the profile's path of a lookup, {path} stands for the path of the request, and
// {/pointer} for the value at this pointer in its body; lookup matches such a path, with a group for each value.
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

// named returns the values of a request that make its business reference, joined. A field is the JSON pointer to a value in the body; "" stands for
// the path of the request. It returns false if one is missing: the request is then like no other.
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

// Take runs create and keeps its answer, if that is below 300, under the business reference in the request, which the API takes once only. If it is
// taken, Take returns the profile's Duplicate and does not run create. create runs under the lock: of concurrent requests one creates. The returned
// resource also shows the values that the profile compares in a lookup.
func (t *References) Take(r *http.Request, body []byte, create func() *Answer) *Answer {
	name, complete := t.named(r, body)
	if !complete {
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
	t.made[name] = JSONAnswer(http.StatusOK, JSONType, document) // as a lookup is answered
	return resource
}

// Find returns the answer to a lookup by business reference. It is nil if the request is no lookup or, for an API that does not answer with a list,
// if nothing is found: then the service answers. The caller must not change the answer. A path that cannot be unescaped is no lookup.
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
		return found // nil: the service answers, perhaps with 404
	}
	list := []any{}
	if found != nil {
		list = append(list, json.RawMessage(found.Body))
	}
	return JSONAnswer(http.StatusOK, JSONType, plant(nil, pointerTokens(t.p.Reference.List), list))
}

// Reset forgets all orders taken so far, so that each business reference counts as new.
func (t *References) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.made)
}
