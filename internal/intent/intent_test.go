package intent_test

import (
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
)

// TestLedTo: what replaced an operation led to a key if it is a generation of the same first key, and none above it. So it is in an erased record, which
// has a digest in its place, of the nearest generations.
func TestLedTo(t *testing.T) {
	t.Parallel()
	digest := func(key string) string { return "digest of " + key }
	far := intent.Generation("k", intent.GenerationsMax+3)
	for _, c := range []struct {
		by, key      string
		want, erased bool
	}{
		{"k:gen=2", "k:gen=2", true, true}, {"k:gen=2", "k:gen=3", true, true}, {"k:gen=3", "k:gen=2", false, false}, {"other", "k:gen=2", false, false}, {"other", "other", true, true},
		{"l:gen=2", "k:gen=2", false, false}, {"k", "k:gen=2", true, true}, {"k:gen=3", far, true, true}, {"k:gen=2", far, true, false},
	} {
		keys := []string{"before", c.key}
		if got := intent.LedTo(c.by, keys); got != c.want || intent.LedTo(c.by, keys[:1]) {
			t.Errorf("LedTo(%q, %q) is %t", c.by, keys, got)
		}
		if got := intent.ErasedLedTo(digest(c.by), keys, digest); got != c.erased || intent.ErasedLedTo(digest(c.by), keys[:1], digest) {
			t.Errorf("erased: LedTo(%q, %q) is %t", c.by, keys, got)
		}
	}
}

// TestGenerationSpelling: a key and its number are read from a spelling that Generation makes, and from no other.
func TestGenerationSpelling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, first string
		n          int
	}{
		{"k", "k", 1}, {"k:gen=2", "k", 2}, {"k:gen=10", "k", 10}, {"k:gen=2:gen=3", "k:gen=2", 3},
		{"k:gen=1", "k:gen=1", 1}, {"k:gen=02", "k:gen=02", 1}, {"k:gen=x", "k:gen=x", 1}, {":gen=2", ":gen=2", 1}, {"k:gen=-2", "k:gen=-2", 1},
	} {
		if first, n := intent.Generations(c.key); first != c.first || n != c.n {
			t.Errorf("%q is generation %d of %q", c.key, n, first)
		}
	}
	for _, c := range []struct {
		key  string
		n    int
		want string
	}{{"k", 1, "k"}, {"k", 0, "k"}, {"k", 2, "k:gen=2"}, {"", 3, ""}} {
		if got := intent.Generation(c.key, c.n); got != c.want {
			t.Errorf("generation %d of %q is %q", c.n, c.key, got)
		}
	}
}

// TestGenerationsBeside: the tries before and after a key, the nearest first, within the bounds.
func TestGenerationsBeside(t *testing.T) {
	t.Parallel()
	below := func(key string) []string {
		return intent.GenerationsBelow(&persist.Record{ID: persist.ID{Key: key}})
	}
	if got := below("k:gen=4"); !slices.Equal(got, []string{"k:gen=3", "k:gen=2", "k"}) {
		t.Errorf("before the fourth: %q", got)
	}
	if got := below("k"); len(got) != 0 {
		t.Errorf("before the first: %q", got)
	}
	if got := below("k:gen=100"); len(got) != intent.GenerationsMax || got[0] != "k:gen=99" || got[len(got)-1] != "k:gen=36" {
		t.Errorf("before the hundredth: %q", got)
	}
	if got := intent.GenerationsBelow(&persist.Record{ID: persist.ID{Key: "k:gen=4"}, Generated: true}); len(got) != 0 {
		t.Errorf("before a key of one call: %q", got)
	}
	if got := intent.GenerationsAbove("k:gen=2", false); len(got) != intent.GenerationsAboveMax || got[0] != "k:gen=3" || got[len(got)-1] != "k:gen=18" {
		t.Errorf("after the second: %q", got)
	}
	if got := intent.GenerationsAbove("k", true); !slices.Equal(got, []string{"k:gen=2", "k:gen=3", "k:gen=4", "k:gen=5", "k:gen=6"}) {
		t.Errorf("after the first, of whose end nobody was told: %q", got)
	}
}

// TestRelatives: an operation is of one intent with those that its record names, and with the generations of its key. Of an erased record the names are digests.
func TestRelatives(t *testing.T) {
	t.Parallel()
	rec := persist.Record{ID: persist.ID{Key: "k:gen=2"}, Replaces: "old", ReplacedBy: "new"}
	elders := []intent.Relative{{Key: "old", Named: true}, {Key: "k"}}
	if got := intent.Elders(&rec); !slices.Equal(got, elders) {
		t.Errorf("before it: %v", got)
	}
	all := intent.Family(&rec)
	if len(all) != 3+intent.GenerationsAboveMax || all[0] != (intent.Relative{Key: "new", Named: true}) || !slices.Equal(all[1:3], elders) || all[3].Key != "k:gen=3" || all[3].Named {
		t.Errorf("all of it: %v", all)
	}
	generated := rec.Clone()
	generated.Generated = true
	if got := intent.Family(&generated); !slices.Equal(got, []intent.Relative{{Key: "new", Named: true}, {Key: "old", Named: true}}) {
		t.Errorf("of a key of one call: %v", got)
	}
	generated.Erased = true
	if got := intent.Family(&generated); len(got) != 0 {
		t.Errorf("of an erased record: %v", got)
	}
	if got := intent.Family(&persist.Record{ID: persist.ID{Key: "k"}}); len(got) != intent.GenerationsAboveMax {
		t.Errorf("of a record that names none: %v", got)
	}
}

// TestIsSuccessor: what stands under the next key is the successor only if it names the old operation, and has its request and its scope.
func TestIsSuccessor(t *testing.T) {
	t.Parallel()
	scope := func(value string) []persist.Scope { return []persist.Scope{{Name: "Account", Value: value}} }
	old := persist.Record{ID: persist.ID{Key: "k"}, Fingerprint: []byte("f"), Scopes: scope("a")}
	next := persist.Record{ID: persist.ID{Key: "x"}, Replaces: "k", Fingerprint: []byte("f"), Scopes: scope("a")}
	other := next.Clone()
	other.Fingerprint = []byte("g")
	foreign := next.Clone()
	foreign.Scopes = scope("b")
	stranger := next.Clone()
	stranger.Replaces = "y"
	for name, c := range map[string]struct {
		next persist.Record
		want bool
	}{"its own": {next, true}, "of another request": {other, false}, "of another scope": {foreign, false}, "in another's place": {stranger, false}} {
		if got := intent.IsSuccessor(&old, &c.next); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if got := intent.IsLinked(&old, &c.next); got != c.want {
			t.Errorf("%s, linked: %t", name, got)
		}
	}
	old.ReplacedBy, next.Replaces = "x", ""
	if !intent.IsLinked(&next, &old) || intent.IsLinked(&old, &next) {
		t.Error("the record names the other one, and is not linked; or the other way round")
	}
}
