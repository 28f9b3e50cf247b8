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
