package classify_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
)

type step struct {
	kind        classify.Kind
	again, hold bool
}

// TestHistory: what a sequence of attempts proves together.
func TestHistory(t *testing.T) {
	t.Parallel()
	const (
		unknown, notSent, refused = classify.KindUnknown, classify.KindNotSent, classify.KindRefused
		inFlight, final, mismatch = classify.KindInFlight, classify.KindFinal, classify.KindMismatch
	)
	for name, r := range map[string]struct {
		doubt bool // from before
		steps []step
		want  step
		kept  bool // the last attempt's answer does not count
		left  bool // something stays in doubt
	}{
		"not sent":                          {steps: []step{{kind: notSent, again: true}}, want: step{kind: notSent, again: true}},
		"not sent, from doubt":              {doubt: true, steps: []step{{kind: notSent, again: true}}, want: step{kind: unknown, again: true}, left: true},
		"refused, not sent":                 {steps: []step{{kind: refused}, {kind: notSent, again: true}}, want: step{kind: refused, again: true}, kept: true},
		"refused, lost, not sent":           {steps: []step{{kind: refused}, {kind: unknown}, {kind: notSent}}, want: step{kind: unknown}, left: true},
		"final, not sent":                   {steps: []step{{kind: final, again: true}, {kind: notSent}}, want: step{kind: final}, kept: true},
		"final, refused":                    {steps: []step{{kind: final, again: true}, {kind: refused, again: true}}, want: step{kind: final, again: true}, kept: true},
		"final, final":                      {steps: []step{{kind: final, again: true}, {kind: final}}, want: step{kind: final}},
		"final, lost":                       {steps: []step{{kind: final, again: true}, {kind: unknown, again: true}}, want: step{kind: unknown, again: true}, left: true},
		"final, in flight":                  {steps: []step{{kind: final, again: true}, {kind: inFlight, again: true}}, want: step{kind: inFlight, again: true}, left: true},
		"final, mismatch":                   {steps: []step{{kind: final, again: true}, {kind: mismatch}}, want: step{kind: mismatch, hold: true}, left: true},
		"mismatch":                          {steps: []step{{kind: mismatch}}, want: step{kind: mismatch}},
		"refused, mismatch":                 {steps: []step{{kind: refused, again: true}, {kind: mismatch}}, want: step{kind: mismatch}},
		"lost, final, not sent":             {steps: []step{{kind: unknown}, {kind: final, again: true}, {kind: notSent}}, want: step{kind: final}, kept: true},
		"doubt, final settles it":           {doubt: true, steps: []step{{kind: final}}, want: step{kind: final}},
		"in flight leaves it in doubt":      {steps: []step{{kind: inFlight}, {kind: notSent}}, want: step{kind: unknown}, left: true},
		"final, refused, not sent, refused": {steps: []step{{kind: final, again: true}, {kind: refused}, {kind: notSent}, {kind: refused}}, want: step{kind: final}, kept: true},
	} {
		var h classify.History
		if r.doubt {
			h.Doubt()
		}
		var known classify.Verdict
		var kept bool
		for _, s := range r.steps {
			known, kept = h.Add(classify.Verdict{Kind: s.kind, Again: s.again, Hold: s.hold})
		}
		if got := (step{known.Kind, known.Again, known.Hold}); got != r.want || kept != r.kept || h.InDoubt() != r.left {
			t.Errorf("%s: %+v, kept %v, in doubt %v; want %+v, %v, %v", name, got, kept, h.InDoubt(), r.want, r.kept, r.left)
		}
	}
}

// FuzzHistory: nothing is called not sent once an attempt was handed over, and nothing is called refused or not
// sent while an attempt is in doubt.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{4, 1, 2, 0})
	f.Fuzz(func(t *testing.T, kinds []byte) {
		var h classify.History
		handedOver, doubt := false, false
		for _, b := range kinds {
			v := classify.Verdict{Kind: classify.Kind(b % 6), Again: b&64 != 0}
			if v.Kind == classify.KindRefused && h.InDoubt() {
				v.Kind = classify.KindUnknown // as Classify has it
			}
			known, _ := h.Add(v)
			handedOver = handedOver || v.Kind != classify.KindNotSent
			switch v.Kind {
			case classify.KindUnknown, classify.KindInFlight:
				doubt = true
			case classify.KindFinal:
				doubt = false
			}
			if known.Kind == classify.KindNotSent && handedOver {
				t.Fatalf("%v: not sent", kinds)
			}
			if (known.Kind == classify.KindRefused || known.Kind == classify.KindNotSent) && doubt || doubt && !h.InDoubt() {
				t.Fatalf("%v: %v while in doubt (%v)", kinds, known.Kind, h.InDoubt())
			}
		}
	})
}
