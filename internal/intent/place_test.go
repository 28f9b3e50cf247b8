package intent

import (
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestMayTakePlace: no second place beside a first one that is to be forgotten.
func TestMayTakePlace(t *testing.T) {
	t.Parallel()
	at := func(account string, keep time.Duration) persist.Record {
		return persist.Record{ID: persist.ID{Account: account}, KeepKey: keep}
	}
	for name, c := range map[string]struct {
		beside []persist.Record
		want   bool
	}{
		"alone":                                       {nil, true},
		"beside a first one that stays":               {[]persist.Record{at("first", 0)}, true},
		"beside a first one that goes":                {[]persist.Record{at("first", time.Hour)}, false},
		"beside another second one that goes":         {[]persist.Record{at("other", time.Hour)}, true},
		"where it stands, beside a first that goes":   {[]persist.Record{at("first", time.Hour), at("second", 0)}, true},
		"where it stands, before a first that goes":   {[]persist.Record{at("second", 0), at("first", time.Hour)}, true},
		"where it stands, and will be forgotten, too": {[]persist.Record{at("second", time.Hour)}, true},
	} {
		if got := MayTakePlace("second", "first", c.beside); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestMayHaveSecondPlace: only a key that others can name, at the first place, with a scope.
func TestMayHaveSecondPlace(t *testing.T) {
	t.Parallel()
	scoped := []persist.Scope{{Name: "X", Value: "1"}}
	for name, c := range map[string]struct {
		rec  persist.Record
		want bool
	}{
		"named":             {persist.Record{ID: persist.ID{Account: "base"}, Scopes: scoped}, true},
		"of the business":   {persist.Record{ID: persist.ID{Account: "base"}, Scopes: scoped, Generated: true, Business: true}, true},
		"random":            {persist.Record{ID: persist.ID{Account: "base"}, Scopes: scoped, Generated: true}, false},
		"without a scope":   {persist.Record{ID: persist.ID{Account: "base"}}, false},
		"at a second place": {persist.Record{ID: persist.ID{Account: "second"}, Scopes: scoped}, false},
	} {
		if got := MayHaveSecondPlace(&c.rec, "base"); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestPlace: an operation is begun at its account; beside a record of another scope, by the rules of both, at a place that names that scope.
func TestPlace(t *testing.T) {
	t.Parallel()
	base := persist.Account("shop")
	scope := func(pairs ...string) (all []persist.Scope) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, persist.Scope{Name: pairs[i], Value: pairs[i+1]})
		}
		return all
	}
	record := func(account string, scopes []persist.Scope) persist.Record {
		return persist.Record{ID: persist.ID{Account: account}, Scopes: scopes}
	}
	second := persist.Account("shop", [2]string{"X", ScopeDigest("2")})
	third := persist.Account("shop", [2]string{"X", ScopeDigest("2")}, [2]string{"Y", ScopeDigest("b")})
	for name, c := range map[string]struct {
		mine   []persist.Scope
		beside []persist.Record
		want   string
	}{
		"alone":                         {scope("X", "1"), nil, base},
		"beside its own":                {scope("X", "1"), []persist.Record{record(base, scope("X", "1"))}, base},
		"beside its own, as a digest":   {scope("X", "1"), []persist.Record{record(base, scope("X", ScopeDigest("1")))}, base},
		"beside another scope":          {scope("X", "2"), []persist.Record{record(base, scope("X", "1"))}, second},
		"beside another, as a digest":   {scope("X", "2"), []persist.Record{record(base, scope("X", ScopeDigest("1")))}, second},
		"beside one of other headers":   {scope("X", "2"), []persist.Record{record(base, scope("Y", "1"))}, base},
		"another scope, somewhere else": {scope("X", "2"), []persist.Record{record(persist.Account("other"), scope("X", "1"))}, base},
		"a record's own, as a digest":   {scope("X", ScopeDigest("2")), []persist.Record{record(base, scope("X", "1"))}, second},
		"a record's own, beside it":     {scope("X", ScopeDigest("1")), []persist.Record{record(base, scope("X", "1"))}, base},
		"of what only it counts":        {scope("X", "2", "Y", "b"), []persist.Record{record(base, scope("X", "1"))}, second},
		"beside two":                    {scope("X", "2", "Y", "b"), []persist.Record{record(base, scope("X", "1")), record(second, scope("Y", "a"))}, third},
	} {
		if got := Place(base, c.mine, c.beside); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPlaceOfADigest: a digest stands in a place as it is; a value that only looks like one has a digest of its own.
func TestPlaceOfADigest(t *testing.T) {
	t.Parallel()
	base := persist.Account("a")
	for value, want := range map[string]string{
		ScopeDigest("2"): ScopeDigest("2"), "sha256:2": ScopeDigest("sha256:2"), strings.Repeat("2", 71): ScopeDigest(strings.Repeat("2", 71)),
	} {
		mine := []persist.Scope{{Name: "X", Value: value}}
		beside := []persist.Record{{ID: persist.ID{Account: base}, Scopes: []persist.Scope{{Name: "X", Value: "1"}}}}
		if got := Place(base, mine, beside); got != persist.Account("a", [2]string{"X", want}) {
			t.Errorf("%q: %q", value, got)
		}
	}
}

// TestSameScope: a digest stands for a value, and an empty value for none.
func TestSameScope(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, recorded string
		want            bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", ScopeDigest("a"), true}, {"a", ScopeDigest("b"), false}, {"", "", true}, {"a", "", false},
		{"", ScopeDigest("a"), false},
	} {
		if got := SameScope(c.value, c.recorded); got != c.want {
			t.Errorf("SameScope(%q, %q) is %t", c.value, c.recorded, got)
		}
	}
	if ScopeDigest("") != "" || ScopeDigest("a") == "" {
		t.Error("no value has a digest, or a value has none")
	}
}

// TestOtherScope: a header that both count, with another value; no other header counts.
func TestOtherScope(t *testing.T) {
	t.Parallel()
	rec := persist.Record{Scopes: []persist.Scope{{Name: "X", Value: "1"}, {Name: "Y", Value: ScopeDigest("2")}}}
	for name, c := range map[string]struct {
		mine []persist.Scope
		want bool
	}{
		"the same":           {[]persist.Scope{{Name: "X", Value: "1"}, {Name: "Y", Value: "2"}}, false},
		"another value":      {[]persist.Scope{{Name: "X", Value: "2"}}, true},
		"another digest":     {[]persist.Scope{{Name: "X", Value: "1"}, {Name: "Y", Value: "1"}}, true},
		"of another header":  {[]persist.Scope{{Name: "Z", Value: "2"}}, false},
		"a record's digest":  {[]persist.Scope{{Name: "X", Value: ScopeDigest("1")}}, false},
		"another record's":   {[]persist.Scope{{Name: "X", Value: ScopeDigest("2")}}, true},
		"without any header": {nil, false},
	} {
		if got := OtherScope(c.mine, &rec); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
