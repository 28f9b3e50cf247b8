package redrive_test

import (
	"errors"
	"sync/atomic"
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

// TestNoSuccessIsWithheld: a call has joined a pass that read a 201. The end could not be written, a person settles the operation meanwhile, and that the call is told
// cannot be noted. The call gives the answer all the same. (Invariant 5.)
func TestNoSuccessIsWithheld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		full := errors.New("no space left")
		var failed atomic.Bool
		j := &journaltest.Faulty{Journal: inner}
		j.OnFinish = func() error { failed.Store(true); return full }
		j.OnAmend = func() error { return full }
		j.OnGet = func() error {
			if failed.Swap(false) {
				rec, err := inner.Get(t.Context(), persist.ID{Key: "k"})
				if err != nil {
					return err
				}
				rec.State, rec.Effect, rec.Finished, rec.NextAttempt, rec.LeaseOwner = persist.StateSettled, persist.EffectHappened, time.Now(), time.Time{}, ""
				return inner.Finish(t.Context(), rec)
			}
			return nil
		}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}", Delay: time.Minute}}}, func(cfg *oncehttp.Config) {
			cfg.Journal, cfg.Retry.AttemptTimeout = j, 5*time.Minute
		})
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k"))
		passed := make(chan struct{})
		go func() {
			defer close(passed)
			clienttest.Resume(t, c)
		}()
		time.Sleep(time.Second)
		resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k")
		if err != nil || resp.StatusCode != 201 {
			t.Errorf("%v, want the 201 that was read", err)
		}
		<-passed
	})
}
