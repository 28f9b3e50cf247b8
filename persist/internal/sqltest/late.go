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
	direct, j := e.Open(t, e.Address, time.Minute), e.Open(t, proxy.Address(), lateLimit)
	var last error
	for try := range 20 { // in which a busy machine is too slow for what has to come in between
		rec := Record(fmt.Sprintf("late uncertain %d", try), "k")
		if _, _, err := j.Begin(t.Context(), Record("warm", Name())); err != nil {
			continue
		}
		proxy.Arm(LateAfterHole, 0)
		_, _, err := j.Begin(t.Context(), rec)
		proxy.Hole(false)
		if last = err; !proxy.Struck() || !errors.Is(err, persist.ErrUncertain) {
			continue // the connection of the warm-up was too slow, and what was held back was the greeting of another
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
	t.Errorf("in no try was a Begin held back, uncertain, and the record begun before its statement came; the last such Begin: %v", last)
}
