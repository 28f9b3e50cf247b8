package request

import (
	"net/http"
	"slices"
	"testing"

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

// TestAccountSpellings: whichever headers a client takes for credentials, one of its spellings of an account is that of another client.
func TestAccountSpellings(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.AccountHeaders = []string{"X-A", "X-B"}
	for _, header := range []http.Header{{}, {"X-A": {"1"}}, {"X-A": {"1"}, "X-B": {"2"}}} {
		var all [][]string
		for _, secret := range [][]string{nil, {"X-A"}, {"x-b"}, {"X-A", "X-B"}} {
			r := reader()
			r.Secrets.Headers = secret
			account, others := r.account(header, p, Given{})
			all = append(all, append([]string{account}, others...))
		}
		for _, spellings := range all[1:] {
			if !slices.Contains(all[0], spellings[0]) || !slices.Contains(spellings, all[0][0]) || len(spellings) != 1<<len(header) {
				t.Errorf("%v: %q and %q", header, all[0], spellings)
			}
		}
	}
}
