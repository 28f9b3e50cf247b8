package attempts_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// skewed is a journal whose clock is wrong.
type skewed struct {
	*journaltest.Leasing
	by time.Duration
}

// Now implements [persist.Claimer].
func (s *skewed) Now(context.Context) (time.Time, error) { return time.Now().Add(s.by), nil }

// TestClockSetBackBehindAnAttempt: the key is known for 24 h, is first sent at 0 h, and once more at 20 h. Then the journal's clock is set back by 18 h. Ten hours
// later it says 12 h: nothing is sent, since the attempt at 20 h is on record. After a failover to a clock some minutes behind, all goes on.
func TestClockSetBackBehindAnAttempt(t *testing.T) {
	t.Parallel()
	for back, sends := range map[time.Duration]int{18 * time.Hour: 2, 5 * time.Minute: 3} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503, Body: `{}`}, {Status: 201, Body: `{}`}}}
			j := &skewed{journaltest.NewLeasing(memory.New()).(*journaltest.Leasing), 0}
			call := func() error {
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				defer c.Close()
				resp, err := c.DoKey(clienttest.Post(t, `{}`), "k")
				if err == nil {
					_ = resp.Body.Close()
				}
				return err
			}
			for _, wait := range []time.Duration{20 * time.Hour, 0} {
				if err := call(); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				time.Sleep(wait)
			}
			j.by = -back
			if back > time.Hour {
				time.Sleep(10 * time.Hour)
			}
			err := call()
			if w.Count() != sends || sends == 2 && !errors.Is(err, oncehttp.ErrHeld) || sends == 3 && err != nil {
				t.Errorf("set back by %v: %d sends, want %d; %v", back, w.Count(), sends, err)
			}
			rec, err := j.Get(t.Context(), persist.ID{Key: "k"})
			if err != nil || sends == 2 && rec.HoldReason != persist.HoldExpired {
				t.Errorf("set back by %v: %v %q, %v", back, rec.State, rec.HoldReason, err)
			}
		})
	}
}
