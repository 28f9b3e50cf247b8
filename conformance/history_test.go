package conformance_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
)

const forever = -1 // of an event that may take effect at any later time

func ev(call, ret int, fate, name string) conformance.Event {
	e := conformance.Event{Call: time.Duration(call), Ret: time.Duration(ret), Fate: fate, Name: name}
	if ret == forever {
		e.Ret = e.Call - 1
	}
	return e
}

// The judge against histories whose verdict is plain to a person. The checker
// alone gives the same verdict as the checker behind its short cuts.
func TestHistory(t *testing.T) {
	t.Parallel()
	uncounted := -1
	for _, c := range []struct {
		name    string
		history []conformance.Event
		effects int
		legal   bool
	}{
		{"nothing", nil, 0, true},
		{"an effect that nobody asked for", nil, 1, false},
		{"one request", []conformance.Event{ev(0, 10, "outcome", "a")}, 1, true},
		{"one request without its effect", []conformance.Event{ev(0, 10, "outcome", "a")}, 0, false},
		{"a replay", []conformance.Event{ev(0, 10, "outcome", "a"), ev(20, 30, "outcome", "a")}, 1, true},
		{"two outcomes", []conformance.Event{ev(0, 10, "outcome", "a"), ev(20, 30, "outcome", "b")}, uncounted, false},
		{"two outcomes at once", []conformance.Event{ev(0, 10, "outcome", "a"), ev(5, 30, "outcome", "b")}, uncounted, false},
		{"two effects, one outcome", []conformance.Event{ev(0, 10, "outcome", "a"), ev(5, 30, "outcome", "a")}, 2, false},
		{"in progress while it runs", []conformance.Event{ev(0, 100, "outcome", "a"), ev(20, 30, "waiting", "")}, 1, true},
		{"in progress before anything was asked", []conformance.Event{ev(0, 10, "waiting", ""), ev(20, 100, "outcome", "a")}, 1, false},
		{"in progress after the outcome", []conformance.Event{ev(0, 10, "outcome", "a"), ev(20, 30, "waiting", "")}, 1, false},
		{"in progress after it, with a third", []conformance.Event{ev(0, 10, "outcome", "a"), ev(20, 30, "waiting", ""), ev(15, 50, "outcome", "a")}, 1, false},
		{"in progress for ever, and nothing runs", []conformance.Event{ev(0, 10, "waiting", "")}, uncounted, false},
		{"in progress while one runs whose client left", []conformance.Event{ev(0, forever, "maybe", ""), ev(20, 30, "waiting", "")}, uncounted, true},
		{"a lost answer, then the outcome", []conformance.Event{ev(0, forever, "maybe", ""), ev(50, 60, "outcome", "a")}, 1, true},
		{"a lost answer that had no effect", []conformance.Event{ev(0, forever, "maybe", "")}, 0, true},
		{"a lost answer that had one", []conformance.Event{ev(0, forever, "maybe", "")}, 1, true},
		{"a failure, and another go", []conformance.Event{ev(0, 10, "maybe", ""), ev(20, 30, "outcome", "a")}, 1, true},
		{"a failure is over when it is answered", []conformance.Event{ev(0, 10, "maybe", ""), ev(20, 30, "waiting", "")}, uncounted, true}, // it may have left its work behind
		{"an outcome without a name", []conformance.Event{ev(0, 10, "outcome", ""), ev(20, 30, "outcome", "a"), ev(40, 50, "outcome", "a")}, 1, true},
		{"a name, then none, then another", []conformance.Event{ev(0, 10, "outcome", "a"), ev(20, 30, "outcome", ""), ev(40, 50, "outcome", "b")}, uncounted, false},
	} {
		legal, alone := conformance.JudgeHistory(c.history, c.effects)
		if legal != c.legal || alone != c.legal {
			t.Errorf("%s: got %v, and %v by the checker alone, want %v", c.name, legal, alone, c.legal)
		}
	}
}

// What a correct server can answer to 64 at once is legal, and one stray answer
// among them is not, however many there are: the check stays quick.
func TestHistoryWide(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 1))
		history := correctBurst(draw, 64)
		if legal, alone := conformance.JudgeHistory(history, 1); !legal || !alone {
			t.Fatalf("seed %d: got %v and %v for a correct burst, want legal", seed, legal, alone)
		}
		late := append(history, ev(2000, 2010, "waiting", ""))
		if legal, alone := conformance.JudgeHistory(late, 1); legal || alone {
			t.Fatalf("seed %d: got %v and %v with in-progress after the outcome, want illegal", seed, legal, alone)
		}
		stray := append(history, ev(draw.IntN(900), 1500, "outcome", "another"))
		if legal, alone := conformance.JudgeHistory(stray, -1); legal || alone {
			t.Fatalf("seed %d: got %v and %v with a second outcome, want illegal", seed, legal, alone)
		}
	}
}

// A burst of which most requests were reset, as by a server with a short queue, is judged, and a stray answer in it still seen.
func TestHistoryLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		draw := rand.New(rand.NewPCG(seed, 2))
		history := correctBurst(draw, 20)
		for range 44 {
			history = append(history, ev(draw.IntN(1200), forever, "maybe", ""))
		}
		if legal, alone := conformance.JudgeHistory(history, 1); !legal || !alone {
			t.Fatalf("seed %d: got %v and %v for a correct burst, want legal", seed, legal, alone)
		}
		if _, alone := conformance.JudgeHistory(append(history, ev(2000, 2010, "waiting", "")), 1); alone {
			t.Fatalf("seed %d: in-progress after the outcome is legal, want it not to be", seed)
		}
	}
}

// What is left out of a history before it is checked makes no difference.
func TestHistoryReduced(t *testing.T) {
	t.Parallel()
	legals := 0
	for seed := range uint64(500) {
		draw := rand.New(rand.NewPCG(seed, 3))
		var history []conformance.Event
		for range 1 + draw.IntN(5) {
			call := draw.IntN(100)
			ret := call + 1 + draw.IntN(60)
			fate := []string{"outcome", "waiting", "maybe", "maybe"}[draw.IntN(4)]
			if fate == "maybe" && draw.IntN(3) > 0 {
				ret = forever
			}
			name := ""
			if fate == "outcome" {
				name = []string{"", "a", "a", "b"}[draw.IntN(4)]
			}
			history = append(history, ev(call, ret, fate, name))
		}
		effects := draw.IntN(4) - 1
		slices.SortFunc(history, func(a, b conformance.Event) int { return int(a.Call - b.Call) })
		_, got := conformance.JudgeHistory(history, effects)
		want := conformance.LegalAsItStands(history, effects)
		legals += oneIf(want)
		if got != want {
			t.Errorf("seed %d: %v with %d effects: got %v, want %v as for the whole", seed, history, effects, got, want)
		}
	}
	if legals < 60 || legals > 440 {
		t.Errorf("%d of 500 are legal, want some of both", legals)
	}
}

// correctBurst draws the history of n requests that a correct server serves: the
// effect is under way from 100 to 1000.
func correctBurst(draw *rand.Rand, n int) []conformance.Event {
	history := []conformance.Event{ev(0, 1010, "outcome", "a")}
	for range n - 1 {
		call := draw.IntN(1200)
		switch {
		case call < 100, call > 990:
			history = append(history, ev(call, 1011+draw.IntN(500), "outcome", "a"))
		case draw.IntN(3) == 0:
			history = append(history, ev(call, 1011+draw.IntN(500), "outcome", "a")) // it waited
		default:
			history = append(history, ev(call, call+draw.IntN(10), "waiting", ""))
		}
	}
	return history
}
