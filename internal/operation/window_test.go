package operation_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
)

// TestWindowOver: a window is over for everybody from the same moment on.
func TestWindowOver(t *testing.T) {
	t.Parallel()
	for window, over := range map[time.Duration]time.Duration{
		24 * time.Hour: 24*time.Hour - 90*time.Second, time.Hour: time.Hour - 90*time.Second, 5 * time.Minute: 4 * time.Minute, 20 * time.Second: 10 * time.Second,
	} {
		for age, want := range map[time.Duration]bool{0: false, over - 1: false, over: true, window: true, -1: true} {
			if got := operation.WindowOver(age, window); got != want {
				t.Errorf("%v of %v: over %t, want %t", age, window, got, want)
			}
		}
	}
}

// TestClockOf: a clock far behind the latest send counts as past the window.
func TestClockOf(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	client := operation.Client{AttemptTimeout: time.Second, ClockSkew: time.Minute}
	op := operation.Op{Sending: operation.Sending{FirstSent: first, Tried: first.Add(20 * time.Hour), Window: 24 * time.Hour}}
	for at, want := range map[time.Duration]operation.Clock{
		20 * time.Hour: operation.InWindow, 20*time.Hour - 10*time.Minute: operation.InWindow, 20*time.Hour - 10*time.Minute - 1: operation.OutOfWindow, 24 * time.Hour: operation.OutOfWindow,
	} {
		if got := client.ClockOf(&op, first.Add(at)); got != want {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
}
