// Package enqueue_test holds that what was enqueued ends in a final state or stays, and is never sent for the first time too
// late.
package enqueue_test

import (
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestEnqueueIsAPromise: recorded, nothing sent; again the same is nil where it goes on or took place, whatever
// has become of it; other bytes are refused, with how it stands.
func TestEnqueueIsAPromise(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reply wiretest.Reply
		then  func(t *testing.T, c *oncehttp.Client)
		state persist.State
		is    error // of other bytes, beside ErrKeyReused
	}{
		"waiting":   {wiretest.Reply{}, func(*testing.T, *oncehttp.Client) {}, persist.StatePending, oncehttp.ErrOutcomeUnknown},
		"lost":      {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, persist.StatePending, oncehttp.ErrOutcomeUnknown},
		"confirmed": {wiretest.Reply{Status: 201}, func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, persist.StateConfirmed, oncehttp.ErrFinal},
		"declined":  {wiretest.Reply{Status: 402}, func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, persist.StateConfirmed, oncehttp.ErrFinal},
		"held":      {wiretest.Reply{Status: 301}, func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, persist.StateHeld, oncehttp.ErrOutcomeUnknown},
		"swept": {wiretest.Reply{Status: 201}, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Resume(t, c)
			time.Sleep(48 * time.Hour)
			if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
				t.Error(n, err)
			}
		}, persist.StateConfirmed, oncehttp.ErrFinal},
		"abandoned": {wiretest.Reply{}, func(t *testing.T, c *oncehttp.Client) {
			if err := c.Abandon(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		}, persist.StateAbandoned, oncehttp.ErrOutcomeUnknown},
		"settled": {wiretest.Reply{}, func(t *testing.T, c *oncehttp.Client) {
			if err := clienttest.AbsentAsSeen(c, t.Context(), "k"); err != nil {
				t.Error(err)
			}
		}, persist.StateSettled, oncehttp.ErrFinal},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil || w.Count() != 0 {
					t.Fatalf("%v, %d sends", err, w.Count())
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.MaybeSent || !rec.FirstSent.IsZero() || rec.Generated || rec.State != persist.StatePending {
					t.Errorf("enqueued as %+v", rec)
				}
				r.then(t, c)
				sends := w.Count()
				before := clienttest.Lookup(t, c, "k")
				if before.State != r.state {
					t.Fatalf("it is %v, want %v", before.State, r.state)
				}
				again := map[string]error{"declined": oncehttp.ErrFinal, "held": oncehttp.ErrHeld, "abandoned": oncehttp.ErrAbandoned, "settled": oncehttp.ErrSettled}[name]
				if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); !errors.Is(err, again) || (err == nil) != (again == nil) {
					t.Errorf("the same again: %v, want %v", err, again)
				}
				clienttest.Refused(t, c.Enqueue(clienttest.Post(t, `{"other":1}`), "k"), r.state, []error{oncehttp.ErrKeyReused, r.is})
				after := clienttest.Lookup(t, c, "k")
				if name == "declined" || name == "settled" { // whoever takes it up later must know that it was told
					if !after.Told || before.Told {
						t.Errorf("told %t before, and %t after a call that told it", before.Told, after.Told)
					}
					before.Told, before.Revision = true, after.Revision
				}
				if !reflect.DeepEqual(before, after) || w.Count() != sends {
					t.Errorf("it was changed from %+v to %+v, or sent", before, after)
				}
			})
		})
	}
}

// TestPrepare writes nothing, and is what Enqueue begins.
func TestPrepare(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		prepared, err := c.Prepare(clienttest.Post(t, "{}"), "k")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("Prepare wrote it: %v", err)
		}
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		begun := clienttest.Lookup(t, c, "k")
		begun.Seq, begun.Revision = prepared.Seq, prepared.Revision
		if !reflect.DeepEqual(normal(begun), normal(prepared)) {
			t.Errorf("prepared %+v\nbut begun %+v", prepared, begun)
		}
		prepared.Key, prepared.WireKey = "mine", "mine" // as begun in a transaction of the caller's
		if _, _, err := j.Begin(t.Context(), prepared); err != nil {
			t.Fatal(err)
		}
		if got := clienttest.Resume(t, c); len(got) != 2 || got["mine"].Err != nil || w.Keys()["mine"] != 1 {
			t.Errorf("resumed %v", got)
		}
		for _, key := range []oncehttp.Key{"", "a b"} {
			if _, err := c.Prepare(clienttest.Post(t, "{}"), key); !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("key %q: %v", key, err)
			}
			if err := c.Enqueue(clienttest.Post(t, "{}"), key); !errors.Is(err, oncehttp.ErrKeyInvalid) {
				t.Errorf("key %q: %v", key, err)
			}
		}
	})
}

// normal makes what means the same the same.
func normal(rec persist.Record) persist.Record {
	rec.Created, rec.SendBefore = rec.Created.UTC(), rec.SendBefore.UTC()
	if len(rec.Omitted) == 0 {
		rec.Omitted = nil
	}
	return rec
}

// TestEnqueuedWithoutEffect: what a pass proves to have had no effect stays as
// never sent, and goes on when its time has come.
func TestEnqueuedWithoutEffect(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		reply wiretest.Reply
		is    error
	}{
		"no connection": {wiretest.Reply{Refused: true}, oncehttp.ErrNotSent}, "403": {wiretest.Reply{Status: 403}, oncehttp.ErrRefused},
		"429": {wiretest.Reply{Status: 429, Header: "Retry-After: 300"}, oncehttp.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				clienttest.Enqueue(t, c, 1)
				err := clienttest.Resume(t, c)["k0"].Err
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, r.is) {
					t.Errorf("%v", err)
				}
				rec := clienttest.Lookup(t, c, "k0")
				if rec.State != persist.StatePending || rec.MaybeSent || !rec.FirstSent.IsZero() || !rec.NextAttempt.After(time.Now()) {
					t.Errorf("record %+v", rec)
				}
				time.Sleep(23 * time.Hour) // a window counts from the first send
				if got := clienttest.Resume(t, c)["k0"]; got.Err != nil || w.Count() != 2 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestEnqueueMaxAgeWithinADrive: a first send does not happen later for having
// been tried before.
func TestEnqueueMaxAgeWithinADrive(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 429, Header: "Retry-After: 50"}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.EnqueueMaxAge = time.Hour }))
		clienttest.Enqueue(t, c, 1)
		time.Sleep(time.Hour - 10*time.Second)
		err := clienttest.Resume(t, c)["k0"].Err
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyExpired) || !errors.Is(err, oncehttp.ErrHeld) || w.Count() != 1 {
			t.Errorf("%v after %d sends, want it held after one", err, w.Count())
		}
		if rec := clienttest.Lookup(t, c, "k0"); rec.State != persist.StateHeld || rec.MaybeSent || !rec.FirstSent.IsZero() {
			t.Errorf("record %v, maybe sent %v; it was provably not acted on", rec.State, rec.MaybeSent)
		}
	})
}

// TestEnqueueThenDo: a caller who cannot wait takes it over, and gets the answer.
func TestEnqueueThenDo(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}, {Status: 201, Body: "paid"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		clienttest.Enqueue(t, c, 1)
		do := func() (*http.Response, error) { return c.DoKey(clienttest.Post(t, `{"n":0}`), "k0") }
		_, err := do()
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrNotSent) {
			t.Errorf("%v: it stays intended", err)
		}
		resp, err := do()
		if err != nil || clienttest.Read(t, resp) != "paid" {
			t.Fatal(err)
		}
		if rec := clienttest.Lookup(t, c, "k0"); rec.State != persist.StateConfirmed || len(clienttest.Resume(t, c)) != 0 {
			t.Errorf("record %v", rec.State)
		}
	})
}
