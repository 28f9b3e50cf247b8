package keyless_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
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
)

// TestNaiveLoopPaysOnce: a loop around Do without a key, after a lost answer.
func TestNaiveLoopPaysOnce(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt))
		var standing oncehttp.Key
		for i := range 5 {
			if i == 3 { // the process starts anew
				c, _ = clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt))
			}
			_, err := c.Do(servertest.Pay(t, `{"amount":1}`))
			var e *oncehttp.Error
			if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key == "" {
				t.Fatalf("try %d: %v, want ErrOutcomeUnknown with the key", i, err)
			}
			clienttest.ExactlyOne(t, err)
			if standing == "" {
				standing = e.Key
			}
			if e.Key != standing {
				t.Errorf("try %d names %q, want the standing %q", i, e.Key, standing)
			}
		}
		if snap := server.Ledger().Snapshot(); snap.Sends != 1 || snap.Effects != 1 {
			t.Fatalf("%d sends, %d effects; want one of each", snap.Sends, snap.Effects)
		}
		if _, err := c.Do(servertest.Pay(t, `{"amount":2}`)); err != nil {
			t.Errorf("another payment without a key: %v", err)
		}
		resp, err := c.DoKey(servertest.Pay(t, `{"amount":1}`), standing)
		if err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceReplay {
			t.Errorf("with the key that the error names: %v, source %v", err, oncehttp.ResultOf(resp).Source)
		}
		if n := server.Ledger().Effects(string(standing)); n != 1 {
			t.Errorf("%d effects under it", n)
		}
		if _, err := c.Do(servertest.Pay(t, `{"amount":1}`)); err != nil || servertest.Effects(server) != 3 {
			t.Errorf("once it is confirmed, the same again is a payment of its own: %v, %d effects", err, servertest.Effects(server))
		}
	})
}

// TestNaiveLoopBesideRun: what Run finishes behind the loop's back, nobody has
// told the loop of.
func TestNaiveLoopBesideRun(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		var standing oncehttp.Key
		for i := range 10 {
			_, err := c.Do(servertest.Pay(t, `{"amount":1}`))
			var e *oncehttp.Error
			if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || i > 0 && e.Key != standing {
				t.Fatalf("try %d: %v, want it refused for %q", i, err, standing)
			}
			standing = e.Key
			time.Sleep(time.Minute)
		}
		if rec := clienttest.Lookup(t, c, standing); rec.State != persist.StateConfirmed || servertest.Effects(server) != 1 {
			t.Fatalf("it is %v, with %d effects; want Run to have confirmed the one", rec.State, servertest.Effects(server))
		}
		if _, err := c.Do(servertest.Pay(t, `{"amount":2}`)); err != nil {
			t.Errorf("another payment: %v", err)
		}
		if resp, err := c.DoKey(servertest.Pay(t, `{"amount":1}`), standing); err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
			t.Errorf("with the key: %v", err)
		}
		if _, err := c.Do(servertest.Pay(t, `{"amount":1}`)); err != nil || servertest.Effects(server) != 3 {
			t.Errorf("told how it ended, the same again is a payment of its own: %v, %d effects", err, servertest.Effects(server))
		}
		cancel()
		wg.Wait()
	})
}

// TestNaiveLoopWhileRunFinishes: from the moment at which the operation is final
// no listing shows it, and Run is not over yet.
func TestNaiveLoopWhileRunFinishes(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		ended, goOn := make(chan struct{}), make(chan struct{})
		finished := 0
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind != oncehttp.EventFinished {
					return
				}
				if finished++; finished == 2 { // Run's
					close(ended)
					<-goOn
				}
			}
		}))
		if _, err := c.Do(servertest.Pay(t, `{"amount":1}`)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		stop := clienttest.Run(t, c)
		<-ended
		if _, err := c.Do(servertest.Pay(t, `{"amount":1}`)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || servertest.Effects(server) != 1 {
			t.Errorf("%v, %d effects; want it refused", err, servertest.Effects(server))
		}
		close(goOn)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestNaiveLoopBesideReconcile: nor has anybody told the loop what Run was told by
// Config.Reconcile; unless nothing had happened.
func TestNaiveLoopBesideReconcile(t *testing.T) {
	t.Parallel()
	for effect, sends := range map[persist.Effect]int{oncehttp.EffectHappened: 1, oncehttp.EffectAbsent: 2} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					clienttest.OneAttempt(cfg)
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						return oncehttp.Resolution{Effect: effect}, nil
					}
				})
				_, err := c.Do(clienttest.Post(t, "{}"))
				var e *oncehttp.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				time.Sleep(48 * time.Hour) // its window is over
				stop := clienttest.Run(t, c)
				time.Sleep(time.Hour)
				if rec := clienttest.Lookup(t, c, e.Key); rec.State != persist.StateSettled {
					t.Errorf("it stands %v, want it settled by Run", rec.State)
				}
				_, err = c.Do(clienttest.Post(t, "{}"))
				if refused := errors.Is(err, oncehttp.ErrOutcomeUnknown); w.Count() != sends || refused != (sends == 1) {
					t.Errorf("%v after %d sends, want %d", err, w.Count(), sends)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// lateFailing is a journal whose Finish fails when it is done, as one whose answer
// is lost.
type lateFailing struct {
	persist.Journal
	err error
}

func (j *lateFailing) Finish(ctx context.Context, rec persist.Record) error {
	return errors.Join(j.Journal.Finish(ctx, rec), j.err)
}

// TestNaiveLoopAfterAFailedFinish: an operation may be final whatever the journal
// said of it, and nobody was told.
func TestNaiveLoopAfterAFailedFinish(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]error{"uncertain": persist.ErrUncertain, "definite": errors.New("disk full")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					clienttest.OneAttempt(cfg)
					cfg.Journal = &lateFailing{memory.New(), lost}
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						return oncehttp.Resolution{Effect: oncehttp.EffectHappened}, nil
					}
				})
				if _, err := c.Do(clienttest.Post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				time.Sleep(48 * time.Hour) // its window is over
				stop := clienttest.Run(t, c)
				time.Sleep(time.Hour)
				if _, err := c.Do(clienttest.Post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 {
					t.Errorf("%v after %d sends; want it refused", err, w.Count())
				}
				_ = stop() // with the journal's error
			})
		})
	}
}

// TestSettleTells: whoever settles an operation knows how it ended, whatever Run has
// remembered of it.
func TestSettleTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		j := &journaltest.Faulty{Journal: memory.New(), OnFinish: func() error { return full }}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		_, err := c.Do(clienttest.Post(t, "{}"))
		var e *oncehttp.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		stop := clienttest.Run(t, c)
		time.Sleep(time.Hour) // Run has its answer, and cannot record it
		if err := stop(); err != nil {
			t.Error(err)
		}
		full = nil
		if err := clienttest.AbsentAsSeen(c, t.Context(), e.Key); err != nil {
			t.Fatal(err)
		}
		before := w.Count()
		if _, err := c.Do(clienttest.Post(t, "{}")); err != nil || before < 2 || w.Count() != before+1 {
			t.Errorf("%v, %d sends after %d; want it sent", err, w.Count(), before)
		}
	})
}

// TestNewKeyOfTheRequest: a NewKey that makes a request's key of the request gives
// the standing key again, and the loop goes on under it.
func TestNewKeyOfTheRequest(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
			cfg.NewKey = func(req *http.Request) (oncehttp.Key, error) { return oncehttp.Key(req.URL.Path).UUID(), nil }
		}))
		if _, err := c.Do(servertest.Pay(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		for range 2 {
			if resp, err := c.Do(servertest.Pay(t, "{}")); err != nil || resp.StatusCode != 201 {
				t.Errorf("%v", err)
			}
		}
		if snap := server.Ledger().Snapshot(); snap.Effects != 1 || snap.Sends != 2 {
			t.Errorf("%+v", snap)
		}
	})
}

// TestUnresolvedRowByRow: what ends the refusal of a keyless request, and what does not.
func TestUnresolvedRowByRow(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name   string
		change func(t *testing.T, c *oncehttp.Client, key oncehttp.Key)
		sent   bool
	}{
		{"nothing", func(*testing.T, *oncehttp.Client, oncehttp.Key) {}, false},
		{"a Resume that learns nothing", func(t *testing.T, c *oncehttp.Client, _ oncehttp.Key) {
			time.Sleep(time.Minute)
			if got := clienttest.Resume(t, c); len(got) != 1 {
				t.Errorf("resumed %v", got)
			}
		}, false},
		{"the window's end", func(t *testing.T, c *oncehttp.Client, _ oncehttp.Key) {
			time.Sleep(24 * time.Hour)
			clienttest.Resume(t, c)
		}, false},
		{"Settle", func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			if err := clienttest.AbsentAsSeen(c, t.Context(), key); err != nil {
				t.Error(err)
			}
		}, true},
		{"Abandon", func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			if err := c.Abandon(t.Context(), key); err != nil {
				t.Error(err)
			}
		}, true},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				c, _ := clienttest.New(t, w, clienttest.OneAttempt)
				_, err := c.Do(clienttest.Post(t, "{}"))
				var e *oncehttp.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				r.change(t, c, e.Key)
				sends := w.Count()
				_, err = c.Do(clienttest.Post(t, "{}"))
				if sent := w.Count() > sends; sent != r.sent || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("sent again: %v (%v), want %v", sent, err, r.sent)
				}
			})
		})
	}
}
