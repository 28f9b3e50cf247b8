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

// The lists of resources of the APIs that package reconcile asks. A list holds the caller's own resources only, newest
// first, each with the members of the request that created it.

// listLimitMax bounds the resources of a page: of Stripe (https://docs.stripe.com/api/pagination) and of Increase
// (github.com/Increase/increase-go, parameter limit of each list).
const listLimitMax = 100

// listStyle is an API's spelling of its lists. All fields are set.
type listStyle struct {
	limit  int    // in 1..listLimitMax
	after  string // the query parameter with the id of the last resource of the page before
	filter string // the query parameter that selects resources

	selects func(value string) (func(*listed) bool, error)                   // returns the filter for a value of the parameter; an error: the value is invalid
	stamp   func(shown map[string]any, made *listed)                         // adds the members that the API itself sets
	answer  func(path string, resources []any, lastID string) map[string]any // the body of a page; lastID is empty on the last page
}

// listStyleOf returns how the API of a profile lists its resources on a GET: the parameters (limit is the default of one), stamp, which adds the
// members that the API sets itself, and the form of the answer; lastID is "" on the last page. after is the parameter for the id behind which a page
// begins; filter is that for a selection, and selects reads its value. It returns false if the mock has no lists for it.
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

// madeSince returns the filter for resources created at value or later; value is in seconds since 1970. An error:
// value is no such number.
func madeSince(value string) (func(*listed) bool, error) {
	since, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return nil, errors.New("created[gte] is not a number of seconds since 1970")
	}
	return func(made *listed) bool { return made.at.Unix() >= since }, nil
}

// madeByKey returns the filter for resources created under the key value. It has no error.
func madeByKey(value string) (func(*listed) bool, error) {
	return func(made *listed) bool { return made.key == value }, nil
}

// orNull returns the text, or nil (JSON's null) for an empty one.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// listed is one resource in its list.
type listed struct {
	collection, id string
	owner          keylayer.Digest // the caller that created it (Layer.Principal)
	key            string          // of the request that created it; empty: none
	at             time.Time       // when it was created
}

// lists holds the resources in the order of their creation. A nil one holds none. The service's lock guards made.
type lists struct {
	listStyle
	profile *profile.Profile
	owner   func(*http.Request) keylayer.Digest // the owner of resources that a request creates and sees

	made []listed
}

// newLists returns the lists of resources for the profile's API; nil if the mock has none.
func newLists(p *profile.Profile, owner func(*http.Request) keylayer.Digest) *lists {
	style, known := listStyleOf(p)
	if !known {
		return nil
	}
	return &lists{listStyle: style, profile: p, owner: owner}
}

// add appends a new resource to the list of its collection, so that a GET shows it, and adds to resource the request's members and those of the API.
// created holds the collection and the id. A top-level whole number of a form becomes a number, as at Stripe. The service's lock is held; a nil l
// does nothing.
func (l *lists) add(r *http.Request, body []byte, created listed, resource map[string]any) {
	if l == nil {
		return
	}
	created.owner, created.key, created.at = l.owner(r), keylayer.ReadKey(l.profile, r, body).Key, time.Now()
	text := keylayer.AsJSON(r, body)
	document, _ := keylayer.Lookup(text, "")
	members, _ := document.(map[string]any)
	isForm := len(body) > 0 && string(text) != string(body) // AsJSON changes forms only
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
	l.stamp(resource, &created)
	l.made = append(l.made, created)
}

// asks reports whether the query has a parameter of the API's lists. Then it asks for a list, even an empty one. The error names a parameter that the
// mock does not know.
func (l *lists) asks(query url.Values) (list bool, err error) {
	for name := range query {
		switch name {
		case l.after, l.filter, "limit":
			list = true
		case "sleep": // of the mock itself
		default:
			err = errors.New("the mock's lists do not take the parameter " + strconv.Quote(name))
		}
	}
	return list, err
}

// listQuery is the query of one page.
type listQuery struct {
	limit  int
	after  string             // the id of the last resource of the page before; empty: begin with the newest
	wanted func(*listed) bool // the filter; never nil
}

// read parses the query of a list. After an error q is not to be used.
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

// list answers a GET for a list; nil: the request asks for something else. A path names a collection if a resource
// was created there, or if the query has a parameter of lists. An unknown parameter is answered 400, since ignoring
// it would name resources that were not asked for.
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

// page returns one page of a collection, newest first. lastID is the id of its last resource if more follow, else empty. The page begins behind the
// resource q.after (empty: at the newest), and q.wanted is the filter. found is false if the owner has no resource q.after in the collection. The
// lock is held.
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
