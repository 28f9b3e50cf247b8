package conformance_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/profile"
)

// Effects are told apart by their ids, and by their Locations where the id is
// lost; a name that another reference had before is that one's effect.
func TestCountNames(t *testing.T) {
	t.Parallel()
	type named = conformance.NamedAnswer
	for _, c := range []struct {
		name    string
		answers []named
		want    int
	}{
		{"nothing", nil, 0},
		{"an answer that names nothing", []named{{Ref: "a"}}, 0},
		{"one id, and its replay", []named{{"a", "1", "/1"}, {"a", "1", "/1"}}, 1},
		{"a replay that has lost its id", []named{{"a", "1", "/1"}, {"a", "", "/1"}}, 1},
		{"a replay that has lost its Location", []named{{"a", "1", "/1"}, {"a", "1", ""}}, 1},
		{"two ids", []named{{"a", "1", "/1"}, {"a", "2", "/2"}}, 2},
		{"two ids at one Location", []named{{"a", "1", "/all"}, {"a", "2", "/all"}}, 2},
		{"two Locations without ids", []named{{"a", "", "/1"}, {"a", "", "/2"}}, 2},
		{"an id, then another Location without one", []named{{"a", "1", "/1"}, {"a", "", "/2"}}, 2},
		{"somebody else's id", []named{{"b", "9", "/9"}, {"a", "9", "/9"}}, 0},
		{"its own and somebody else's", []named{{"b", "9", "/9"}, {"a", "1", "/1"}, {"a", "9", "/9"}}, 1},
		{"what somebody else is given later", []named{{"a", "1", "/1"}, {"b", "1", "/1"}}, 1},
	} {
		if got := conformance.CountNames(c.answers, "a"); got != c.want {
			t.Errorf("%s: got %d effects, want %d", c.name, got, c.want)
		}
	}
}

func TestSameOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b        [2]string
		same, known bool
	}{
		{[2]string{"1", "/1"}, [2]string{"1", "/1"}, true, true},
		{[2]string{"1", "/1"}, [2]string{"2", "/1"}, false, true},
		{[2]string{"1", "/1"}, [2]string{"", "/1"}, true, true},
		{[2]string{"", "/1"}, [2]string{"", "/2"}, false, true},
		{[2]string{"1", ""}, [2]string{"", "/1"}, true, false},
		{[2]string{"", ""}, [2]string{"1", "/1"}, true, false},
	} {
		if same, known := conformance.SameOutcome(c.a, c.b); same != c.same || known != c.known {
			t.Errorf("%q and %q: got %v %v, want %v %v", c.a, c.b, same, known, c.same, c.known)
		}
	}
}

// A witness may be a number, a list, or a list that is null; anything else counts
// nothing, and says so.
func TestCountOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, pointer string
		want          int
		witness       conformance.Witness
	}{
		{`{"count":3}`, "/count", 3, conformance.WitnessCounted},
		{`7`, "", 7, conformance.WitnessCounted},
		{`{"items":[1,2]}`, "/items", 2, conformance.WitnessListed},
		{`[]`, "", 0, conformance.WitnessListed},
		{`{"items":null}`, "/items", 0, conformance.WitnessListed},
		{`{"count":"3"}`, "/count", 0, conformance.WitnessNone},
		{`{"count":-1}`, "/count", 0, conformance.WitnessNone},
		{`{"count":1.5}`, "/count", 0, conformance.WitnessNone},
		{`{"count":true}`, "/count", 0, conformance.WitnessNone},
		{`{}`, "/count", 0, conformance.WitnessNone},
		{`not JSON`, "/count", 0, conformance.WitnessNone},
	} {
		n, witness, err := conformance.CountOf(c.body, c.pointer)
		if n != c.want || witness != c.witness || (err != nil) != (c.witness == conformance.WitnessNone) {
			t.Errorf("%s at %q: got %d %s %v, want %d %s", c.body, c.pointer, n, witness, err, c.want, c.witness)
		}
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	ms := profile.Draft07()
	ms.RetryAfter = []profile.Hint{{Header: "X-Wait-Ms", Unit: profile.Milliseconds}, {Header: "Retry-After", Unit: profile.HTTPDelay}}
	for _, c := range []struct {
		p           *profile.Profile
		name, value string
		want        time.Duration
		found       bool
	}{
		{profile.Draft07(), "Retry-After", "2", 2 * time.Second, true},
		{profile.Draft07(), "Retry-After", "0", 0, true},
		{profile.Draft07(), "Retry-After", "-1", 0, false},
		{profile.Draft07(), "Retry-After", "soon", 0, false},
		{profile.Draft07(), "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, true}, // it is past
		{profile.Draft07(), "X-Wait-Ms", "250", 0, false},
		{ms, "X-Wait-Ms", "250", 250 * time.Millisecond, true},
		{ms, "Retry-After", "3", 3 * time.Second, true},
	} {
		got, found := conformance.Hint(c.p, http.Header{http.CanonicalHeaderKey(c.name): {c.value}})
		if got != c.want || found != c.found {
			t.Errorf("%s: %s: got %v %v, want %v %v", c.name, c.value, got, found, c.want, c.found)
		}
	}
}

// TestHintInTheBody: a wait in the answer's JSON is read where the profile says so.
func TestHintInTheBody(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	body := `{"error": {"wait": 250}}`
	if got, found := conformance.HintIn(p, body); found {
		t.Errorf("the profile says nothing of bodies: got %v", got)
	}
	p.RetryAfter = append(p.RetryAfter, profile.Hint{Pointer: "/error/wait", Unit: profile.Milliseconds})
	if got, found := conformance.HintIn(p, body); got != 250*time.Millisecond || !found {
		t.Errorf("got %v %v, want 250ms", got, found)
	}
}

// What was seen to be wrong outranks what was not decided, and that what passed.
func TestWorstVerdict(t *testing.T) {
	t.Parallel()
	order := []conformance.Verdict{
		conformance.VerdictSkip, conformance.VerdictPass, conformance.VerdictSeen, conformance.VerdictInconclusive,
		conformance.VerdictWarn, conformance.VerdictError, conformance.VerdictFail,
	}
	for i, low := range order {
		for _, high := range order[i:] {
			if got := conformance.WorstOf(low, high); got != high {
				t.Errorf("the worst of %s and %s: got %s", low, high, got)
			}
			if got := conformance.WorstOf(high, low); got != high {
				t.Errorf("the worst of %s and %s: got %s", high, low, got)
			}
		}
	}
	if got := conformance.WorstOf(); got != conformance.VerdictSkip {
		t.Errorf("of none: got %s, want skip", got)
	}
	if got := conformance.WorstOf("", conformance.VerdictWarn); got != "" {
		t.Errorf("what is no verdict: got %q, want it to outrank a warning", got)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"reference":"r1","amount":100}`:  `{"reference":"r1","amount":101}`,
		`{"a":1,"b":9}`:                    `{"a":2,"b":10}`,
		`{"a": 1 }`:                        `{"a": 2 }`,
		`{"a":"1"}`:                        `{"a":"1"}`,
		`{"a":1.5}`:                        `{"a":1.5}`,
		`{"a":12345678901234567890,"b":1}`: `{"a":12345678901234567890,"b":2}`,
	} {
		if got := conformance.BumpNumbers(body); got != want {
			t.Errorf("BumpNumbers(%s): got %s, want %s", body, got, want)
		}
	}
	for object, want := range map[string]string{
		`{"a":1}`: `{"a":1,"n":null}`, `{}`: `{"n":null}`, `{ }`: `{ "n":null}`, `[1]`: `[1]`,
	} {
		if got := conformance.WithMember(object, "n", "null"); got != want {
			t.Errorf("WithMember(%s): got %s, want %s", object, got, want)
		}
	}
	for key, want := range map[string]string{`abc`: `"abc"`, `a"b`: `"a\"b"`, `a\b`: `"a\\b"`, ``: `""`} {
		if got := conformance.Quote(key); got != want {
			t.Errorf("Quote(%s): got %s, want %s", key, got, want)
		}
	}
}

// A report shows the key as it was sent, and tells an empty one from none.
func TestKeysInEvidence(t *testing.T) {
	t.Parallel()
	rep := only(t, choices{}, quirk{}, nil, "key/empty-not-shared", "key/missing", "key/sf-string-accepted")
	sent := map[string]bool{}
	for _, c := range rep.Cases {
		for _, x := range c.Exchanges {
			switch {
			case !x.KeySent && x.Key == "":
				sent["none"] = true
			case x.KeySent && x.Key == "":
				sent["empty"] = true
			case x.Key == `""`:
				sent["quotes"] = true
			case x.Key[0] == '"' && c.ID == "key/sf-string-accepted":
				sent["quoted"] = true
			}
		}
	}
	for _, what := range []string{"none", "empty", "quotes", "quoted"} {
		if !sent[what] {
			t.Errorf("no exchange shows a key that is %s", what)
		}
	}
}

// Cases on which others depend are sent by themselves: while they are, the server
// sees one case at a time.
func TestGatesAlone(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	_, url := newSample(t, choices{}, quirk{})
	o := sampleOptions(url)
	o.Run = []string{"replay/**", "conflict/**"}
	o.Done = func(c conformance.Result) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, c.ID)
	}
	run(t, o)
	last := slices.Index(order, "conflict/not-silent")
	for _, id := range []string{"replay/status", "conflict/error-shape", "conflict/one-number-differs", "replay/headers"} {
		if at := slices.Index(order, id); at < 0 || at < slices.Index(order, "replay/effects-once") || last < 0 {
			t.Errorf("%s was judged before what it depends on: %v", id, order)
		}
	}
}
