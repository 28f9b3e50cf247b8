package oncehttp_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// enders are the two that end an operation by hand.
func enders() map[string]func(context.Context, *oncehttp.Client, oncehttp.Key) error {
	return map[string]func(context.Context, *oncehttp.Client, oncehttp.Key) error{
		"Settle": func(ctx context.Context, c *oncehttp.Client, key oncehttp.Key) error {
			return c.Settle(ctx, key, oncehttp.Resolution{Effect: oncehttp.EffectAbsent})
		},
		"Abandon": func(ctx context.Context, c *oncehttp.Client, key oncehttp.Key) error { return c.Abandon(ctx, key) },
	}
}

// TestEndWhileFlying: refused, whoever drives it, here or in another process, so
// that nobody is told "absent" of what is on the wire.
func TestEndWhileFlying(t *testing.T) {
	t.Parallel()
	for name, end := range enders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j := memory.New()
				w := &wire{replies: []reply{{status: 503, delay: time.Second, header: "Retry-After: 5"}, {status: 201, delay: time.Second}}}
				c, _ := newClient(t, w, on(j))
				shared, _ := newClient(t, w, on(j))
				abroad, _ := newClient(t, w, on(leasing{j, j}))
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				for range 6 { // on the wire, in the wait, on the wire
					for who, other := range map[string]*oncehttp.Client{"its own client": c, "a client beside it": shared, "another process": abroad} {
						if err := end(t.Context(), other, "k"); !errors.Is(err, oncehttp.ErrInFlight) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
							t.Errorf("%s: %v, want ErrInFlight", who, err)
						}
					}
					time.Sleep(time.Second)
				}
				wg.Wait()
				if rec := lookup(t, c, "k"); rec.State != persist.StateConfirmed {
					t.Errorf("record %v", rec.State)
				}
				err := end(t.Context(), c, "k")
				if exactlyOne(t, err); errors.Is(err, oncehttp.ErrInFlight) {
					t.Errorf("once confirmed: %v", err)
				}
			})
		})
	}
}

// TestLeaseEnds: a process that died with a lease is not waited for for ever.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	for name, end := range enders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j := memory.New()
				var left persist.Journal
				w := &wire{replies: []reply{{err: errLost}}}
				w.before = func(int, *http.Request) { left = survivors(t, j) }
				c, _ := newClient(t, w, on(j, oneAttempt))
				_, _ = c.DoKey(post(t, "{}"), "k") // killed within
				next, _ := newClient(t, w, on(left, oneAttempt))
				sends := w.count()
				_, err := next.DoKey(post(t, "{}"), "k")
				for _, err := range []error{err, end(t.Context(), next, "k")} {
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrInFlight) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != sends {
						t.Errorf("under a lease: %v", err)
					}
				}
				time.Sleep(4 * time.Minute)
				if err := end(t.Context(), next, "k"); err != nil {
					t.Errorf("after the lease: %v", err)
				}
			})
		})
	}
}

// TestSettleIsFinal: once settled or abandoned nothing changes it, and the error
// of a second try says how it stands.
func TestSettleIsFinal(t *testing.T) {
	t.Parallel()
	for first, is := range map[string]error{"Settle": oncehttp.ErrSettled, "Abandon": oncehttp.ErrAbandoned} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
				c, _ := newClient(t, w, on(j, oneAttempt))
				_, _ = c.DoKey(post(t, "{}"), "k")
				if err := enders()[first](t.Context(), c, "k"); err != nil {
					t.Fatal(err)
				}
				before := lookup(t, c, "k")
				for second, end := range enders() {
					err := end(t.Context(), c, "k")
					if exactlyOne(t, err); !errors.Is(err, is) {
						t.Errorf("%s then: %v, want %v", second, err, is)
					}
				}
				time.Sleep(time.Hour)
				if got := resume(t, c); len(got) != 0 || w.count() != 1 {
					t.Errorf("resumed %v", got)
				}
				if after := lookup(t, c, "k"); after.Revision != before.Revision {
					t.Errorf("it was changed")
				}
			})
		})
	}
}

// TestSettleOddly: what says nothing changes nothing, and what makes no sense is
// refused.
func TestSettleOddly(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		c, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, on(j, oneAttempt))
		_, _ = c.DoKey(post(t, "{}"), "k")
		before := lookup(t, c, "k")
		if err := c.Settle(t.Context(), "k", oncehttp.Resolution{}); err != nil {
			t.Errorf("EffectUnknown: %v", err)
		}
		if err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: "perhaps"}); !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("nonsense: %v", err)
		}
		for name, err := range map[string]error{
			"Settle": c.Settle(t.Context(), "none", oncehttp.Resolution{Effect: oncehttp.EffectHappened}), "Abandon": c.Abandon(t.Context(), "none"),
			"EffectUnknown": c.Settle(t.Context(), "none", oncehttp.Resolution{}), "the empty key": c.Abandon(t.Context(), ""),
		} {
			if !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("%s of no operation: %v", name, err)
			}
		}
		if after := lookup(t, c, "k"); after.Revision != before.Revision || after.State != persist.StatePending || oncehttp.Flying(c) != 0 {
			t.Errorf("it became %v", after.State)
		}
	})
}

// TestSettleIsDurable on return: a person was told that it is done.
func TestSettleIsDurable(t *testing.T) {
	t.Parallel()
	for name, end := range enders() {
		path := filepath.Join(t.TempDir(), name+".db")
		bubble(t, func(t *testing.T) {
			j, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			flushed := 0
			counted := &flushes{Journal: j, flush: func(ctx context.Context) error { flushed++; return j.Flush(ctx) }}
			c, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, on(counted, oneAttempt))
			_, _ = c.DoKey(post(t, "{}"), "k")
			if err := end(t.Context(), c, "k"); err != nil || flushed != 1 {
				t.Errorf("%s: %v, flushed %d times", name, err, flushed)
			}
			j.Close()
		})
	}
}

// flushes is a journal that counts what is flushed.
type flushes struct {
	persist.Journal
	flush func(context.Context) error
}

func (f *flushes) Flush(ctx context.Context) error { return f.flush(ctx) }

// TestFinishNearTheWindowsEnd is not lazy: lost in a crash, that answer could not
// be asked for again.
func TestFinishNearTheWindowsEnd(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		after time.Duration
		flush int
	}{{20 * time.Hour, 0}, {22 * time.Hour, 1}} {
		bubble(t, func(t *testing.T) {
			flushed := 0
			j := &flushes{Journal: memory.New(), flush: func(context.Context) error { flushed++; return nil }}
			w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
			c, _ := newClient(t, w, on(j, oneAttempt))
			_, _ = c.DoKey(post(t, "{}"), "k")
			time.Sleep(r.after)
			if _, err := c.DoKey(post(t, "{}"), "k"); err != nil || flushed != r.flush {
				t.Errorf("after %v: %v, flushed %d times, want %d", r.after, err, flushed, r.flush)
			}
		})
	}
}

// TestPending lists what is unfinished, oldest first, and Lookup knows it all.
func TestPending(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201}, {status: 301}, {err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, on(j, oneAttempt))
		for _, key := range []oncehttp.Key{"confirmed", "held", "lost", "confirmed2"} {
			_, _ = c.DoKey(post(t, "{}"), key)
		}
		enqueue(t, c, 1)
		var got []string
		for rec, err := range c.Unfinished(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rec.Key)
		}
		if len(got) != 3 || got[0] != "held" || got[1] != "lost" || got[2] != "k0" {
			t.Errorf("%v", got)
		}
		if rec := lookup(t, c, "confirmed"); rec.State != persist.StateConfirmed || rec.Answer.Status != 201 {
			t.Errorf("%+v", rec)
		}
	})
}
