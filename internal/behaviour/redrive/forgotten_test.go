package redrive_test

import (
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

// TestForgottenWhileAsked: a call may go on with a next generation that stands, although the one before it took effect. If another process forgets that record before the
// Begin of the call, nothing is begun, and nothing is sent. (Invariant 54.)
func TestForgottenWhileAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, j := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Status: 201}}}, &journaltest.Faulty{Journal: memory.New()}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		next := persist.ID{Key: "k:gen=2"}
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(next.Key)))
		clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")
		time.Sleep(time.Second) // else the two have one time, which stops the later one
		j.OnBegin = func() error {
			rec, err := j.Get(t.Context(), next)
			if err == nil {
				err = j.Forget(t.Context(), rec)
			}
			return err
		}
		_, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key(next.Key))
		if !errors.Is(err, oncehttp.ErrInFlight) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 {
			t.Errorf("%v after %d sends, want ErrInFlight after 1", err, w.Count())
		}
		if _, err := j.Get(t.Context(), next); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("its record: %v", err)
		}
	})
}
