package sqltest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// LateUncertain lets a statement of Begin arrive after that Begin has ended with ErrUncertain, another one has begun the
// record, and it was forgotten: either Forget refuses, or nothing comes back.
func LateUncertain(t *testing.T, e Engine) {
	proxy := NewProxy(t, e.Address)
	direct, j := e.Open(t, e.Address, time.Minute), e.Open(t, proxy.Address(), lateBy)
	for try := range 20 { // in which a busy machine is too slow for what has to come in between
		rec := Record(fmt.Sprintf("late uncertain %d", try), "k")
		if _, _, err := j.Begin(t.Context(), Record("warm", Name())); err != nil {
			continue
		}
		proxy.Arm(LateAfterHole, 0)
		_, _, err := j.Begin(t.Context(), rec)
		proxy.Hole(false)
		if !errors.Is(err, persist.ErrUncertain) {
			t.Fatalf("Begin whose statement was held back: %v, want ErrUncertain", err)
		}
		begun, created, err := j.Begin(t.Context(), rec)
		if err != nil || !created {
			continue
		}
		err = j.Forget(t.Context(), begun)
		time.Sleep(lateByFar)
		proxy.Idle()
		if _, getErr := direct.Get(t.Context(), rec.ID); err == nil && !errors.Is(getErr, persist.ErrNotFound) {
			t.Errorf("Forget has removed the record, and it is there again, error %v", getErr)
		} else if err != nil && !errors.Is(err, persist.ErrUncertain) {
			t.Errorf("Forget: %v", err)
		}
		return
	}
	t.Error("in no try was the record begun before the late statement came")
}
