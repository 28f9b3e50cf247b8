package rekey_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// TestRekeyAfterALostProcess: an operation that a process lost its lease of is begun under another key once nothing of that process can be on its way, and
// not before. (Invariants 31 and 54.)
func TestRekeyAfterALostProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, j := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.OneAttempt)
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		clienttest.Absent(t, c, "k")
		rec := clienttest.Lookup(t, c, "k")
		rec.DesertedUntil = time.Now().Add(time.Minute)
		if _, err := j.Amend(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if err := c.Rekey(t.Context(), "k", "k2", "a new try", oncehttp.AsSeen(rec)); !errors.Is(err, oncehttp.ErrInFlight) {
			t.Errorf("%v, want ErrInFlight", err)
		}
		time.Sleep(2 * time.Minute)
		if err := c.Rekey(t.Context(), "k", "k2", "a new try", oncehttp.AsSeen(rec)); err != nil {
			t.Errorf("later: %v", err)
		}
	})
}

// TestUndoAfterALostProcess: what a process may still be sending is not undone: that send might take effect after the undo. (Invariant 61.)
func TestUndoAfterALostProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: `{}`}}}
		c, j := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Retry.MaxAttempts = servertest.Square(t), 1 })
		if _, err := c.DoKey(servertest.SquarePay(t), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		rec := clienttest.Lookup(t, c, "k")
		rec.DesertedUntil = time.Now().Add(time.Minute)
		if _, err := j.Update(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if err := c.Abandon(t.Context(), "k", oncehttp.Undo()); !errors.Is(err, oncehttp.ErrInFlight) || w.Count() != 1 {
			t.Errorf("%v after %d requests, want ErrInFlight and none for the undo", err, w.Count())
		}
		time.Sleep(2 * time.Minute)
		if err := c.Abandon(t.Context(), "k", oncehttp.Undo()); err != nil || w.Count() != 2 {
			t.Errorf("later: %v after %d requests", err, w.Count())
		}
	})
}
