//go:build !race

package otelonce

import "testing"

// TestAllocations bounds the allocations of an operation of one attempt, with those of OpenTelemetry: the race detector would add its own.
func TestAllocations(t *testing.T) {
	for name, most := range map[string]float64{"nothing": 0, "no-op providers": 8, "sampler off": 12, "sampler off, and metrics": 12, "all recorded": 24} {
		inst := measured(t)[name]
		if got := testing.AllocsPerRun(500, func() { playOne(t.Context(), inst, "idemp:order:uid123:order456") }); got > most {
			t.Errorf("%s: %.0f allocations, want %.0f", name, got, most)
		}
	}
}
