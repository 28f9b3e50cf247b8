package request

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestRecipeNamesSecrets: a recipe names what a configuration adds to the credentials, in one spelling, and says whether it keeps some; one that
// says more is of a later version.
func TestRecipeNamesSecrets(t *testing.T) {
	t.Parallel()
	keep := func(string) bool { return true }
	for want, s := range map[string]Secrets{
		"v1 Content-Type":                       {},
		"v1:pin,token Content-Type":             {Parameters: []string{"Token", "pin", "PIN"}},
		"v1::x-code,x-passcode Content-Type":    {Headers: []string{"X-Passcode", "x-code", "X-Code"}},
		"v1:::kept Content-Type":                {KeepHeader: keep},
		"v1:a%3Ab:x-passcode:kept Content-Type": {Parameters: []string{"a:b"}, Headers: []string{"X-Passcode"}, KeepHeader: keep},
		"v1:pin:content-type":                   {Parameters: []string{"pin"}, Headers: []string{"Content-Type"}},
	} {
		got := recipe(&s, &profile.Profile{})
		rules, known := parseRecipe(got)
		if got != want || !known || rules.kept != (s.KeepHeader != nil) || len(rules.parameters) > len(s.Parameters) || len(rules.secret) > len(s.Headers) {
			t.Errorf("%q, want %q; read as %+v", got, want, rules)
		}
	}
	for _, later := range []string{"v2", "v1:::other", "v1:::kept:more"} {
		if _, known := parseRecipe(later + " Content-Type"); known {
			t.Errorf("%q is known", later)
		}
	}
}

// TestKeptBy: what a record says is a credential is left out of an answer, by names and by words; the rest is shared.
func TestKeptBy(t *testing.T) {
	t.Parallel()
	h := http.Header{"X-Passcode": {"p"}, "X-Left-Out": {"l"}, "X-Session-Note": {"n"}, "Location": {"/p?pin=1&a=2"}, "Date": {"d"}}
	for recipe, want := range map[string]http.Header{
		"v1":                       {"X-Passcode": {"p"}, "Location": {"/p?pin=1&a=2"}, "Date": {"d"}},
		"v1:pin:x-passcode":        {"Location": {"/p?a=2"}, "Date": {"d"}},
		"v1:pin:x-passcode:kept":   {"X-Session-Note": {"n"}, "Location": {"/p?a=2"}, "Date": {"d"}},
		"v9 which nobody can read": h,
	} {
		if got := KeptBy(&persist.Record{Recipe: recipe, Omitted: []string{"X-Left-Out"}}, h); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", recipe, got, want)
		}
	}
}
