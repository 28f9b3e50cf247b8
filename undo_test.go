package oncehttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// square is the profile of an API that undoes payments by key.
func square(t *testing.T) *profile.Profile {
	t.Helper()
	p, found := profile.ByName("square")
	if !found || p.Cancel == nil {
		t.Fatal("no profile square, or it cannot undo")
	}
	return p
}

const squarePayment = `{"idempotency_key":"k","amount_money":{"amount":100}}`

func squarePay(t *testing.T) *http.Request {
	t.Helper()
	return request(t, "POST", "http://mock.test/v2/payments", squarePayment)
}

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
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				p := square(t)
				server, transport := till(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: c.fault}}, UndoScript: c.undos})
				client, _ := newClient(t, transport, on(j, oneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = p }))
				if _, err := client.DoKey(squarePay(t), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				if err := client.Abandon(t.Context(), "k", oncehttp.Undo(), oncehttp.WithNote("the order was cancelled")); err != nil {
					t.Fatal(err)
				}
				rec := lookup(t, client, "k")
				if rec.State != persist.StateAbandoned || rec.Effect != persist.EffectUnknown || rec.Note != "undo answered 200; the order was cancelled" {
					t.Errorf("%v, effect %q, note %q", rec.State, rec.Effect, rec.Note)
				}
				if server.Undone("k") != c.undone {
					t.Errorf("undone: %t, want %t", server.Undone("k"), c.undone)
				}
				sends := server.Ledger().Snapshot().Sends
				if _, err := client.DoKey(squarePay(t), "k"); !errors.Is(err, oncehttp.ErrAbandoned) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("the key is spent: %v", err)
				}
				pass(t, client)
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
			bubble(t, func(t *testing.T) {
				p := square(t)
				server, transport := till(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}, UndoScript: []mockserver.Fault{fault, fault}})
				c, j := newClient(t, transport, func(cfg *oncehttp.Config) { oneAttempt(cfg); cfg.Profile = p })
				_, _ = c.DoKey(squarePay(t), "k")
				err := c.Abandon(t.Context(), "k", oncehttp.Undo())
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
					t.Errorf("%v, want ErrHeld", err)
				}
				next, _ := newClient(t, transport, on(survivors(t, j), func(cfg *oncehttp.Config) { cfg.Profile = p }))
				time.Sleep(time.Hour)
				pass(t, next)
				if rec := lookup(t, next, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldUndo || server.Ledger().Snapshot().Sends != 1 {
					t.Errorf("%v for %q, %d sends", rec.State, rec.HoldReason, server.Ledger().Snapshot().Sends)
				}
				for range 2 { // the second fault may still be to come
					err = next.Abandon(t.Context(), "k", oncehttp.Undo())
				}
				if rec := lookup(t, next, "k"); rec.State != persist.StateAbandoned || !server.Undone("k") {
					t.Errorf("%v: %v, undone %t", err, rec.State, server.Undone("k"))
				}
			})
		})
	}
}

// TestUndoIsHeldFirst: nothing is asked of the API before the journal has it that nothing more is sent.
func TestUndoIsHeldFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := square(t)
		server, transport := till(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		j := &faulty{Journal: memory.New()}
		asked := &crashing{through: transport, at: func(req *http.Request) {
			if rec, err := j.Get(t.Context(), persist.ID{Key: "k"}); strings.HasSuffix(req.URL.Path, "/cancel") && (err != nil || rec.HoldReason != persist.HoldUndo) {
				t.Errorf("asked while the record is %v, %v", rec.State, err)
			}
		}}
		c, _ := newClient(t, asked, on(j, oneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = p }))
		_, _ = c.DoKey(squarePay(t), "k")
		j.update = fails(errDisk)
		if err := c.Abandon(t.Context(), "k", oncehttp.Undo()); !errors.Is(err, errDisk) || server.Undone("k") {
			t.Errorf("%v, undone %t", err, server.Undone("k"))
		}
		j.update = nil
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
		"another path":    {square, "/v2/refunds", false, "does not say how"},
		"no credentials":  {square, "/v2/payments", true, "Config.Authorize"},
		"no room to note": {square, "/v2/payments", false, "no room"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) { oneAttempt(cfg); cfg.Profile = r.profile(t) })
				req := request(t, "POST", "https://api.example.com"+r.path, squarePayment)
				if r.secret {
					req.Header.Set("Authorization", "Bearer x")
				}
				_, _ = c.DoKey(req, "k")
				note := ""
				if r.want == "no room" {
					note = strings.Repeat("n", persist.NoteBytesMax)
				}
				err := c.Abandon(t.Context(), "k", oncehttp.Undo(), oncehttp.WithNote(note))
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), r.want) || w.count() != 1 {
					t.Errorf("%v after %d sends, want ErrConfig with %q", err, w.count(), r.want)
				}
				if rec := lookup(t, c, "k"); rec.State != persist.StatePending {
					t.Errorf("it is %v", rec.State)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 200}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = square(t) })
		if err := c.Enqueue(request(t, "POST", "https://api.example.com/v2/payments", squarePayment), "k"); err != nil {
			t.Fatal(err)
		}
		if err := c.Abandon(t.Context(), "k", oncehttp.Undo()); err != nil || w.count() != 0 {
			t.Errorf("never sent: %v, %d requests", err, w.count())
		}
	})
}

// TestUndoIsNotReconciled: while the undo is on its way, and after one that failed, Config.Reconcile of another process is not
// asked: it would find the effect that is being taken back, and settle it as happened. The operator's call ends the record.
func TestUndoIsNotReconciled(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j, p := memory.New(), square(t)
		cancel := &wire{replies: []reply{{err: errLost}, {status: 400, delay: 20 * time.Second}, {status: 200, delay: 20 * time.Second}}}
		operator, _ := newClient(t, cancel, on(newLeasing(j), oneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = p }))
		pays := &wire{replies: []reply{{status: 200}}}
		other, _ := newClient(t, pays, on(newLeasing(j), func(cfg *oncehttp.Config) {
			cfg.Profile = p
			cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
				t.Errorf("asked of %s, held for %q", rec.Key, rec.HoldReason)
				return oncehttp.Resolution{Effect: oncehttp.EffectHappened}, nil
			}
		}))
		_, _ = operator.DoKey(squarePay(t), "k")
		for _, want := range []error{oncehttp.ErrHeld, nil} { // the answers 400 and 200
			done := make(chan error)
			go func() { done <- operator.Abandon(t.Context(), "k", oncehttp.Undo()) }()
			time.Sleep(10 * time.Second)
			pass(t, other)
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			pass(t, other)
		}
		rec := lookup(t, operator, "k")
		if rec.State != persist.StateAbandoned || rec.Note != "undo answered 200" || pays.count() != 0 {
			t.Errorf("%v, note %q, %d more payments", rec.State, rec.Note, pays.count())
		}
	})
}

// TestUndoThatWasNotRecorded: a record that a person settles while the undo is on its way stays as it is, and the error says
// that the API had answered.
func TestUndoThatWasNotRecorded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		w := &wire{replies: []reply{{err: errLost}, {status: 200, delay: 20 * time.Second}}}
		c, _ := newClient(t, w, on(newLeasing(j), oneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = square(t) }))
		other, _ := newClient(t, w, on(newLeasing(j)))
		_, _ = c.DoKey(squarePay(t), "k")
		done := make(chan error)
		go func() { done <- c.Abandon(t.Context(), "k", oncehttp.Undo()) }()
		time.Sleep(10 * time.Second)
		settleAbsent(t, other, "k")
		err := <-done
		if exactlyOne(t, err); !errors.Is(err, persist.ErrStale) || !strings.Contains(err.Error(), "the API has answered the undo") {
			t.Errorf("%v", err)
		}
	})
}
