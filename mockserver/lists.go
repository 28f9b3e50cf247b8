package mockserver

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/profile"
)

// The lists of what was made, of the APIs whose lists package reconcile asks. A list has the caller's own resources only,
// the newest first, and each with the members of the request that made it.

// listLimitMax is how many resources a page may have: of Stripe (https://docs.stripe.com/api/pagination) and of Increase
// (github.com/Increase/increase-go, parameter limit of each list).
const listLimitMax = 100

// listStyle is how an API spells its lists.
type listStyle struct {
	limit  int    // resources of a page where the query sets no limit
	after  string // the query parameter with the id of the last resource of the page before
	filter string // the query parameter that selects resources

	selects func(value string) (func(*listed) bool, error)                   // what the filter's value selects
	stamp   func(shown map[string]any, made *listed)                         // adds what the API itself says of a resource
	answer  func(path string, resources []any, lastID string) map[string]any // a page; lastID is empty on the last one
}

// listStyleOf returns how the profile's API lists what was made; false: the mock does not play its lists.
func listStyleOf(p *profile.Profile) (listStyle, bool) {
	switch p.Name {
	case profile.StripeV1().Name:
		return listStyle{
			limit: 10, after: "starting_after", filter: "created[gte]", selects: madeSince,
			stamp: func(shown map[string]any, made *listed) { shown["created"] = made.at.Unix() },
			answer: func(path string, resources []any, lastID string) map[string]any {
				return map[string]any{"object": "list", "url": path, "data": resources, "has_more": lastID != ""}
			},
		}, true
	case "increase":
		return listStyle{
			limit: listLimitMax, after: "cursor", filter: "idempotency_key", selects: madeByKey,
			stamp: func(shown map[string]any, made *listed) {
				shown["created_at"], shown["idempotency_key"] = made.at.UTC().Format(time.RFC3339), orNull(made.key)
			},
			answer: func(_ string, resources []any, lastID string) map[string]any {
				return map[string]any{"data": resources, "next_cursor": orNull(lastID)}
			},
		}, true
	}
	return listStyle{}, false
}

// madeSince selects what was made at the time or later; value is in seconds since 1970.
func madeSince(value string) (func(*listed) bool, error) {
	since, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return nil, errors.New("created[gte] is not a number of seconds since 1970")
	}
	return func(made *listed) bool { return made.at.Unix() >= since }, nil
}

// madeByKey selects what was made under the key.
func madeByKey(value string) (func(*listed) bool, error) {
	return func(made *listed) bool { return made.key == value }, nil
}

// orNull is JSON's null where the text is empty.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// listed is a resource as its list knows it.
type listed struct {
	collection, id string
	owner          keylayer.Digest // whose it is
	key            string          // under which it was made; empty: none
	at             time.Time       // when it was made
}

// lists is what was made, in that order. The service's lock guards made.
type lists struct {
	listStyle
	profile *profile.Profile
	owner   func(*http.Request) keylayer.Digest // whose resources a request makes and sees

	made []listed
}

// newLists returns nil where the mock plays no list of the profile's API.
func newLists(p *profile.Profile, owner func(*http.Request) keylayer.Digest) *lists {
	style, known := listStyleOf(p)
	if !known {
		return nil
	}
	return &lists{listStyle: style, profile: p, owner: owner}
}

// add makes the resource, which has its id, part of the list of its collection, and adds to it what the list shows. A whole
// number in a form is a number there, as it is at Stripe, except below another member, such as metadata.
func (l *lists) add(r *http.Request, body []byte, made listed, resource map[string]any) {
	if l == nil {
		return
	}
	made.owner, made.key, made.at = l.owner(r), keylayer.ReadKey(l.profile, r, body).Key, time.Now()
	text := keylayer.AsJSON(r, body)
	document, _ := keylayer.Lookup(text, "")
	members, _ := document.(map[string]any)
	isForm := len(body) > 0 && string(text) != string(body)
	for name, value := range members {
		if _, own := resource[name]; own {
			continue
		}
		if field, isText := value.(string); isText && isForm {
			if n, err := strconv.ParseInt(field, 10, 64); err == nil && strconv.FormatInt(n, 10) == field {
				value = n
			}
		}
		resource[name] = value
	}
	l.stamp(resource, &made)
	l.made = append(l.made, made)
}

// asks reports whether the query is one of a list. The error says what of it cannot be answered.
func (l *lists) asks(query url.Values) (is bool, err error) {
	for name := range query {
		switch name {
		case l.after, l.filter, "limit":
			is = true
		case "sleep": // of the mock itself
		default:
			err = errors.New("the mock's lists do not take the parameter " + strconv.Quote(name))
		}
	}
	return is, err
}

// listQuery is what of a collection is asked for.
type listQuery struct {
	limit  int
	after  string             // empty: from the newest on
	wanted func(*listed) bool // what the filter selects
}

// read reads the query of a list.
func (l *lists) read(query url.Values) (q listQuery, err error) {
	q = listQuery{limit: l.limit, after: query.Get(l.after), wanted: func(*listed) bool { return true }}
	if text := query.Get("limit"); text != "" {
		q.limit, err = strconv.Atoi(text)
		if err != nil || q.limit < 1 || q.limit > listLimitMax {
			return q, errors.New("limit is not a number in 1..100")
		}
	}
	if query.Has(l.filter) {
		q.wanted, err = l.selects(query.Get(l.filter))
	}
	return q, err
}

// list answers a GET for what was made in a collection; nil: it asks for something else. A path is a collection if something
// was made there, or if the query is one of a list. What the mock cannot select by is refused: an answer without regard to it
// would name resources that were not asked for.
func (v *service) list(r *http.Request) *keylayer.Answer {
	if v.lists == nil || v.has(r.URL.Path) {
		return nil
	}
	path, owner := "/"+strings.Trim(r.URL.Path, "/"), v.lists.owner(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	asks, err := v.lists.asks(r.URL.Query())
	if !asks && !slices.ContainsFunc(v.lists.made, func(made listed) bool { return made.collection == path }) {
		return nil
	}
	query, invalid := v.lists.read(r.URL.Query())
	if err = errors.Join(err, invalid); err != nil {
		return keylayer.Problem(v.lists.profile, http.StatusBadRequest, err.Error(), "")
	}
	resources, lastID, found := v.page(path, owner, query)
	if !found {
		return keylayer.Problem(v.lists.profile, http.StatusBadRequest, "no such resource: "+v.lists.after, "")
	}
	return keylayer.JSONAnswer(http.StatusOK, keylayer.JSONType, v.lists.answer(path, resources, lastID))
}

// page is one page of a collection. lastID is the id of its last resource where more follow. found is false if the resource
// after which it begins is not there. The lock is held.
func (v *service) page(path string, owner keylayer.Digest, q listQuery) (resources []any, lastID string, found bool) {
	resources, found = []any{}, q.after == ""
	last := ""
	for i := range slices.Backward(v.lists.made) {
		made := &v.lists.made[i]
		resource, exists := v.resources[made.collection+"/"+made.id]
		switch {
		case !exists || made.collection != path || made.owner != owner:
		case !found:
			found = made.id == q.after
		case !q.wanted(made):
		case len(resources) == q.limit:
			return resources, last, true
		default:
			resources, last = append(resources, resource), made.id
		}
	}
	return resources, "", found
}
