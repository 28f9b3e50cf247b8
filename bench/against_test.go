package main

import "testing"

// The noise counts both ways: a second run that was a quarter faster shows as much
// as one that was a fifth slower.
func TestNoiseFloor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ratios samples
		want   float64
	}{
		{samples{1, 1}, 1}, {samples{1.25, 1.1}, 0.8}, {samples{0.9, 1.05}, 0.9}, {nil, 1},
	} {
		if got := noiseFloor(c.ratios); got != c.want {
			t.Errorf("%v: %v, want %v", c.ratios, got, c.want)
		}
	}
}

// -against measures nothing else, so that what belongs to other sections is refused.
func TestAgainstStandsAlone(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-against", "x", "-only", "layer"}, {"-against", "x", "-doc", "y"}, {"-against", "x", "-charts", "y"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	o, err := parse([]string{"-against", "x", "-rounds", "2"})
	if err != nil || len(o.chosen()) != 1 || o.chosen()[0].name != "against" {
		t.Errorf("%v, %v", o.chosen(), err)
	}
}
