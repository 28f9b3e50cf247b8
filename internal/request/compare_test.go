package request

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// snapshot reads a request to /p with this query and these headers, X-A and X-B of which count.
func snapshot(t *testing.T, secrets Secrets, query string, header http.Header) *Snapshot {
	t.Helper()
	r, p := reader(), profile.Draft07()
	r.Secrets, p.Fingerprint = secrets, []string{"X-A", "X-B"}
	req := post(t, "{}")
	req.URL.RawQuery, req.Header = query, header
	s, _, err := r.Read(req, p, Given{Keys: []string{"k"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCompareAcrossSecrets: what the rules of one of two clients leave out as a credential is never taken for the same, and never
// for another; what neither leaves out still tells them apart, and what neither request has changes nothing.
func TestCompareAcrossSecrets(t *testing.T) {
	t.Parallel()
	parameters := func(names ...string) Secrets { return Secrets{Parameters: names} }
	headers := func(names ...string) Secrets { return Secrets{Headers: names} }
	none := Secrets{}
	a := func(lines ...string) http.Header { return http.Header{"X-A": lines, "X-B": {"b"}} }
	for name, r := range map[string]struct {
		then        Secrets
		query       string
		header      http.Header
		now         Secrets
		nowQuery    string
		nowHeader   http.Header
		want, swept Likeness
	}{
		"the same rules":                   {none, "n=1", a("1"), none, "n=1", a("1"), SameRequest, SameRequest},
		"the same rules, another":          {none, "n=1", a("1"), none, "n=2", a("1"), OtherRequest, OtherRequest},
		"other names that nobody has":      {parameters("x"), "n=1", a("1"), parameters("y"), "n=1", a("1"), SameRequest, CannotTell},
		"those, another request":           {parameters("x"), "n=1", a("1"), parameters("y"), "n=2", a("1"), OtherRequest, OtherRequest},
		"counted then":                     {none, "n=1", a("1"), parameters("n"), "n=1", a("1"), SameRequest, SameRequest},
		"counted then, another value":      {none, "n=1", a("1"), parameters("N"), "n=2", a("1"), CannotTell, CannotTell},
		"counted then, gone now":           {none, "n=1", a("1"), parameters("n"), "", a("1"), CannotTell, CannotTell},
		"counted then, new now":            {none, "", a("1"), parameters("n"), "n=1", a("1"), CannotTell, CannotTell},
		"counted then, and more differs":   {none, "n=1&m=1", a("1"), parameters("n"), "n=1&m=2", a("1"), OtherRequest, CannotTell},
		"left out then":                    {parameters("n"), "n=1", a("1"), none, "n=1", a("1"), CannotTell, CannotTell},
		"left out then, gone now":          {parameters("n"), "n=1", a("1"), none, "", a("1"), CannotTell, CannotTell},
		"left out then, new now":           {parameters("n"), "", a("1"), none, "n=1", a("1"), CannotTell, CannotTell},
		"left out then, another request":   {parameters("n"), "n=1&m=1", a("1"), none, "n=1&m=2", a("1"), OtherRequest, OtherRequest},
		"a comma in a name":                {parameters("n,m"), "n=1", a("1"), parameters("n", "m"), "n=2", a("1"), CannotTell, CannotTell},
		"a header counted then":            {none, "", a("1"), headers("x-a"), "", a("1"), SameRequest, SameRequest},
		"a header, another value":          {none, "", a("1"), headers("X-A"), "", a("2"), CannotTell, CannotTell},
		"a header, and another differs":    {none, "", a("1"), headers("X-A"), "", http.Header{"X-A": {"1"}, "X-B": {"c"}}, OtherRequest, CannotTell},
		"a header left out then":           {headers("X-A"), "", a("1"), none, "", a("1"), CannotTell, CannotTell},
		"a header that nobody has":         {headers("X-A"), "", http.Header{}, none, "", http.Header{}, SameRequest, CannotTell},
		"a header that counts for neither": {headers("X-C"), "", a("1"), none, "", a("1"), SameRequest, SameRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			standing := snapshot(t, r.then, r.query, r.header).Record
			now := snapshot(t, r.now, r.nowQuery, r.nowHeader)
			if !Intact(&standing) {
				t.Error("the record is not intact")
			}
			if got := now.Compare(&standing); got != r.want {
				t.Errorf("%v, want %v", got, r.want)
			}
			sum, known := now.FingerprintBy(standing.Recipe)
			if found := !known || slices.Equal(sum, standing.Fingerprint); !found && r.want != OtherRequest {
				t.Error("an index would not find it")
			}
			standing.Strip()
			if got := now.Compare(&standing); got != r.swept {
				t.Errorf("swept: %v, want %v", got, r.swept)
			}
		})
	}
	later := snapshot(t, none, "", a("1"))
	standing := persist.Record{Recipe: "v9 Content-Type", Fingerprint: later.Record.Fingerprint}
	if _, known := later.FingerprintBy(standing.Recipe); known || later.Compare(&standing) != CannotTell || Intact(&standing) {
		t.Error("a recipe of a later version is known")
	}
}

// TestScopes: whichever headers a client takes for credentials, the scopes of a record are those of the request for each other client, and
// no other request's.
func TestScopes(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.AccountHeaders = []string{"x-a", "X-B", "X-A"}
	headers := []http.Header{{}, {"X-A": {"1"}}, {"X-A": {"2"}}, {"X-A": {"1"}, "X-B": {"2"}}, {"X-A": {strings.Repeat("1", 300)}}}
	for i, theirs := range headers {
		for _, secret := range [][]string{nil, {"X-A"}, {"x-b"}, {"X-A", "X-B"}} {
			r := reader()
			r.Secrets.Headers = secret
			rec := persist.Record{Scopes: recordedScopes(&r.Secrets, scopesOf(theirs, p))}
			for k, mine := range headers {
				scopes := scopesOf(mine, p)
				if len(scopes) != 2 || intent.OtherScope(scopes, &rec) != (i != k) {
					t.Errorf("%v and %v, %v secret: another scope: %t", mine, theirs, secret, i == k)
				}
			}
		}
	}
}

// TestContent: what every version compares is method, origin, path and body, and none of the rest, under the journal's own secret.
func TestContent(t *testing.T) {
	t.Parallel()
	rec := persist.Record{Method: "POST", Origin: "https://a:443", Target: "/p?q=1", Body: []byte("b"), Recipe: "v1"}
	const want = "892ca375:fa9ad8b9ec4743a8ec46cde9c157e02cd888d4772270864b3e8c78843598b898"
	sum := NewContentKey([]byte("secret")).Content(&rec)
	for name, row := range map[string]struct {
		change func(*persist.Record)
		other  bool
	}{
		"method": {func(r *persist.Record) { r.Method = "PUT" }, true}, "origin": {func(r *persist.Record) { r.Origin = "https://b:443" }, true},
		"path": {func(r *persist.Record) { r.Target = "/q?q=1" }, true}, "body": {func(r *persist.Record) { r.Body = []byte("c") }, true},
		"query": {func(r *persist.Record) { r.Target = "/p?q=2" }, false}, "recipe": {func(r *persist.Record) { r.Recipe = "v9" }, false},
		"header": {func(r *persist.Record) { r.Header = http.Header{"X": {"1"}} }, false}, "profile": {func(r *persist.Record) { r.Profile = "x" }, false},
	} {
		one, other := rec, rec
		row.change(&other)
		one.Content, other.Content = sum, NewContentKey([]byte("secret")).Content(&other)
		if otherContent(&one, &other) != row.other || otherContent(&other, &one) != row.other {
			t.Errorf("%s: another request: %t, want %t", name, !row.other, row.other)
		}
	}
	one, other, none := persist.Record{Content: sum}, persist.Record{Content: NewContentKey([]byte("another")).Content(&rec)}, persist.Record{}
	if otherContent(&one, &other) || otherContent(&one, &none) || otherContent(&none, &none) {
		t.Error("digests that cannot be compared tell two requests apart")
	}
	if sum != want { // it must never change: other versions compare it
		t.Errorf("the digest is %s, want %s", sum, want)
	}
}
