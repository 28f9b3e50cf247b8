package conformance_test

import (
	"maps"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// Each flawed sample is found by exactly the cases that are named for it, with a
// witness and without one.
func TestFlaws(t *testing.T) {
	t.Parallel()
	type judged struct {
		flaw
		counted bool
		want    string
	}
	var all []judged
	for _, f := range flaws() {
		all = append(all, judged{f, true, f.want}, judged{f, false, f.blind})
	}
	beside(some(all), func(_ int, j judged) {
		rep := j.run(t, j.counted)
		if j.want == "-" {
			j.want = ""
		}
		if got := wrong(rep); !maps.Equal(got, parseVerdicts(j.want)) {
			t.Errorf("%s (%s) counted %v:\n got %v\nwant %v\n%s", j.name, j.about, j.counted, list(got), list(parseVerdicts(j.want)), text(rep))
		}
	})
}

// run judges the flawed sample.
func (f flaw) run(t *testing.T, counted bool) *conformance.Report {
	f.c.updates = true
	_, url := newSample(t, f.c, f.q)
	o := sampleOptions(url)
	o.Profile = f.c.declare()
	if f.change != nil {
		f.change(&o)
	}
	if !counted {
		o.Witness = ""
	}
	return runSure(t, o)
}
