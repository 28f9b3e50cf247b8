package rekey_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestUndo: an operation whose answer was lost is abandoned, and what it did is undone. The record says that it was
// abandoned, not that it is absent, also where there was nothing to undo: the API answers the same.
func TestUndo(t *testing.T) {
	t.Parallel()
	drop, down := mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.Answer, Status: 503}
	for _, c := range []struct {
		name   string
		fault  mockserver.Kind
		undos  []mockserver.Fault
		undone bool
	}{
		{"it took effect", mockserver.DropAfter, nil, true},
		{"it did not", mockserver.DropBefore, nil, false},
		{"the answer to the undo is lost once", mockserver.DropAfter, []mockserver.Fault{drop}, true},
		{"the API is down once", mockserver.DropAfter, []mockserver.Fault{down}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				p := servertest.Square(t)
				server, transport := servertest.Till(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: c.fault}}, UndoScript: c.undos})
				client, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = p }))
				if _, err := client.DoKey(servertest.SquarePay(t), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				if err := client.Abandon(t.Context(), "k", oncehttp.Undo(), oncehttp.WithNote("the order was cancelled")); err != nil {
					t.Fatal(err)
				}
				rec := clienttest.Lookup(t, client, "k")
				if rec.State != persist.StateAbandoned || rec.Effect != persist.EffectUnknown || rec.Note != "undo answered 200; the order was cancelled" {
					t.Errorf("%v, effect %q, note %q", rec.State, rec.Effect, rec.Note)
				}
				if server.Undone("k") != c.undone {
					t.Errorf("undone: %t, want %t", server.Undone("k"), c.undone)
				}
				sends := server.Ledger().Snapshot().Sends
				if _, err := client.DoKey(servertest.SquarePay(t), "k"); !errors.Is(err, oncehttp.ErrAbandoned) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("the key is spent: %v", err)
				}
				clienttest.Pass(t, client)
				if server.Ledger().Snapshot().Sends != sends || sends != 1 {
					t.Errorf("%d sends, want 1", server.Ledger().Snapshot().Sends)
				}
			})
		})
	}
}

// TestUndoFails: while the API does not undo, the record is held, so that nothing is sent; the same call goes on later.
func TestUndoFails(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]mockserver.Fault{
		"refused": {Kind: mockserver.Answer, Status: 400}, "no answer": {Kind: mockserver.DropBefore}, "down": {Kind: mockserver.Answer, Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := servertest.Square(t)
				server, transport := servertest.Till(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}, UndoScript: []mockserver.Fault{fault, fault}})
				c, j := clienttest.New(t, transport, func(cfg *oncehttp.Config) { clienttest.OneAttempt(cfg); cfg.Profile = p })
				_, _ = c.DoKey(servertest.SquarePay(t), "k")
				err := c.Abandon(t.Context(), "k", oncehttp.Undo())
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
					t.Errorf("%v, want ErrHeld", err)
				}
				next, _ := clienttest.New(t, transport, clienttest.On(journaltest.Survivors(t, j), func(cfg *oncehttp.Config) { cfg.Profile = p }))
				time.Sleep(time.Hour)
				clienttest.Pass(t, next)
				if rec := clienttest.Lookup(t, next, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldUndo || server.Ledger().Snapshot().Sends != 1 {
					t.Errorf("%v for %q, %d sends", rec.State, rec.HoldReason, server.Ledger().Snapshot().Sends)
				}
				for range 2 { // the second fault may still be to come
					err = next.Abandon(t.Context(), "k", oncehttp.Undo())
				}
				if rec := clienttest.Lookup(t, next, "k"); rec.State != persist.StateAbandoned || !server.Undone("k") {
					t.Errorf("%v: %v, undone %t", err, rec.State, server.Undone("k"))
				}
			})
		})
	}
}

// TestUndoIsHeldFirst: nothing is asked of the API before the journal has it that nothing more is sent.
func TestUndoIsHeldFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := servertest.Square(t)
		server, transport := servertest.Till(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		j := &journaltest.Faulty{Journal: memory.New()}
		asked := &wiretest.Crashing{Through: transport, At: func(req *http.Request) {
			if rec, err := j.Get(t.Context(), persist.ID{Key: "k"}); strings.HasSuffix(req.URL.Path, "/cancel") && (err != nil || rec.HoldReason != persist.HoldUndo) {
				t.Errorf("asked while the record is %v, %v", rec.State, err)
			}
		}}
		c, _ := clienttest.New(t, asked, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = p }))
		_, _ = c.DoKey(servertest.SquarePay(t), "k")
		j.OnUpdate = journaltest.Fails(journaltest.ErrDisk)
		if err := c.Abandon(t.Context(), "k", oncehttp.Undo()); !errors.Is(err, journaltest.ErrDisk) || server.Undone("k") {
			t.Errorf("%v, undone %t", err, server.Undone("k"))
		}
		j.OnUpdate = nil
		if err := c.Abandon(t.Context(), "k", oncehttp.Undo()); err != nil || !server.Undone("k") {
			t.Errorf("%v, undone %t", err, server.Undone("k"))
		}
	})
}

// TestUndoRefused: what cannot be undone by key is not changed; what was never sent needs no undo.
func TestUndoRefused(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		profile func(t *testing.T) *profile.Profile
		path    string
		secret  bool
		want    string
	}{
		"no such API":     {func(*testing.T) *profile.Profile { return profile.Draft07() }, "/v2/payments", false, "does not say how"},
		"another path":    {servertest.Square, "/v2/refunds", false, "does not say how"},
		"no credentials":  {servertest.Square, "/v2/payments", true, "Config.Authorize"},
		"no room to note": {servertest.Square, "/v2/payments", false, "no room"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.OneAttempt(cfg); cfg.Profile = r.profile(t) })
				req := clienttest.Request(t, "POST", "https://api.example.com"+r.path, servertest.SquarePayment)
				if r.secret {
					req.Header.Set("Authorization", "Bearer x")
				}
				_, _ = c.DoKey(req, "k")
				note := ""
				if r.want == "no room" {
					note = strings.Repeat("n", persist.NoteBytesMax)
				}
				err := c.Abandon(t.Context(), "k", oncehttp.Undo(), oncehttp.WithNote(note))
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), r.want) || w.Count() != 1 {
					t.Errorf("%v after %d sends, want ErrConfig with %q", err, w.Count(), r.want)
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending {
					t.Errorf("it is %v", rec.State)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = servertest.Square(t) })
		if err := c.Enqueue(clienttest.Request(t, "POST", "https://api.example.com/v2/payments", servertest.SquarePayment), "k"); err != nil {
			t.Fatal(err)
		}
		if err := c.Abandon(t.Context(), "k", oncehttp.Undo()); err != nil || w.Count() != 0 {
			t.Errorf("never sent: %v, %d requests", err, w.Count())
		}
	})
}

// TestUndoIsNotReconciled: while the undo is on its way, and after one that failed, Config.Reconcile of another process is not
// asked: it would find the effect that is being taken back, and settle it as happened. The operator's call ends the record.
func TestUndoIsNotReconciled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, p := memory.New(), servertest.Square(t)
		cancel := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 400, Delay: 20 * time.Second}, {Status: 200, Delay: 20 * time.Second}}}
		operator, _ := clienttest.New(t, cancel, clienttest.On(journaltest.NewLeasing(j), clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = p }))
		pays := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
		other, _ := clienttest.New(t, pays, clienttest.On(journaltest.NewLeasing(j), func(cfg *oncehttp.Config) {
			cfg.Profile = p
			cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
				t.Errorf("asked of %s, held for %q", rec.Key, rec.HoldReason)
				return oncehttp.Resolution{Effect: oncehttp.EffectHappened}, nil
			}
		}))
		_, _ = operator.DoKey(servertest.SquarePay(t), "k")
		for _, want := range []error{oncehttp.ErrHeld, nil} { // the answers 400 and 200
			done := make(chan error)
			go func() { done <- operator.Abandon(t.Context(), "k", oncehttp.Undo()) }()
			time.Sleep(10 * time.Second)
			clienttest.Pass(t, other)
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			clienttest.Pass(t, other)
		}
		rec := clienttest.Lookup(t, operator, "k")
		if rec.State != persist.StateAbandoned || rec.Note != "undo answered 200" || pays.Count() != 0 {
			t.Errorf("%v, note %q, %d more payments", rec.State, rec.Note, pays.Count())
		}
	})
}

// TestUndoThatWasNotRecorded: a record that a person settles while the undo is on its way stays as it is, and the error says
// that the API had answered.
func TestUndoThatWasNotRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Delay: 20 * time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = servertest.Square(t) }))
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j)))
		_, _ = c.DoKey(servertest.SquarePay(t), "k")
		done := make(chan error)
		go func() { done <- c.Abandon(t.Context(), "k", oncehttp.Undo()) }()
		time.Sleep(10 * time.Second)
		clienttest.Absent(t, other, "k")
		err := <-done
		if clienttest.ExactlyOne(t, err); !errors.Is(err, persist.ErrStale) || !strings.Contains(err.Error(), "the API has answered the undo") {
			t.Errorf("%v", err)
		}
	})
}
