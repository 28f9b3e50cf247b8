package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// till is a mock server over a pipe, for the tests that count effects.
func till(t *testing.T, cfg mockserver.Config) (*mockserver.Server, *http.Transport) {
	t.Helper()
	server := mockserver.New(cfg)
	pipe := server.Pipe()
	transport := pipe.Transport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		pipe.Close()
		server.Close()
	})
	return server, transport
}

// pay is a payment to a till.
func pay(t *testing.T, body string) *http.Request {
	t.Helper()
	return request(t, "POST", "http://mock.test/payments", body)
}

// effects is how many payments the server made, under whatever key.
func effects(s *mockserver.Server) int { return s.Ledger().Snapshot().Effects }

// oneAttempt makes one attempt.
func oneAttempt(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 }

// TestSweptBatchSendsNothing: answers are forgotten, that a key was used is not.
func TestSweptBatchSendsNothing(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		const rows = 20
		server, transport := till(t, mockserver.Config{})
		keep := func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }
		c, _ := newClient(t, transport, on(j, keep))
		batch := func(c *oncehttp.Client) (errs []error) {
			for i := range rows {
				resp, err := c.DoKey(pay(t, fmt.Sprintf(`{"reference":"r%d"}`, i)), oncehttp.NewScope("row").Key(strconv.Itoa(i)))
				if err == nil {
					read(t, resp)
				}
				errs = append(errs, err)
			}
			return errs
		}
		if err := errors.Join(batch(c)...); err != nil || effects(server) != rows {
			t.Fatalf("%v, %d effects", err, effects(server))
		}
		time.Sleep(365 * 24 * time.Hour)
		if n, err := c.Sweep(t.Context()); n != rows || err != nil {
			t.Fatalf("swept %d, %v", n, err)
		}
		again, _ := newClient(t, transport, on(j, keep)) // as the next process
		for _, client := range []*oncehttp.Client{c, again} {
			for i, err := range batch(client) {
				exactlyOne(t, err)
				if !errors.Is(err, oncehttp.ErrAnswerGone) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("row %d: %v, want ErrAnswerGone and never ErrNoEffect", i, err)
				}
			}
		}
		_, err := again.DoKey(pay(t, `{"reference":"other"}`), oncehttp.NewScope("row").Key("0"))
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyReused) || !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("other bytes under a swept key: %v, want ErrKeyReused", err)
		}
		if snap := server.Ledger().Snapshot(); snap.Sends != rows || snap.Effects != rows {
			t.Errorf("%d sends, %d effects; want %d of each", snap.Sends, snap.Effects, rows)
		}
	})
}

// TestNaiveLoopPaysOnce: a loop around Do without a key, after a lost answer.
func TestNaiveLoopPaysOnce(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		c, _ := newClient(t, transport, on(j, oneAttempt))
		var standing oncehttp.Key
		for i := range 5 {
			if i == 3 { // the process starts anew
				c, _ = newClient(t, transport, on(j, oneAttempt))
			}
			_, err := c.Do(pay(t, `{"amount":1}`))
			var e *oncehttp.Error
			if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key == "" {
				t.Fatalf("try %d: %v, want ErrOutcomeUnknown with the key", i, err)
			}
			exactlyOne(t, err)
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
		if _, err := c.Do(pay(t, `{"amount":2}`)); err != nil {
			t.Errorf("another payment without a key: %v", err)
		}
		resp, err := c.DoKey(pay(t, `{"amount":1}`), standing)
		if err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceReplay {
			t.Errorf("with the key that the error names: %v, source %v", err, oncehttp.ResultOf(resp).Source)
		}
		if n := server.Ledger().Effects(string(standing)); n != 1 {
			t.Errorf("%d effects under it", n)
		}
		if _, err := c.Do(pay(t, `{"amount":1}`)); err != nil || effects(server) != 3 {
			t.Errorf("once it is confirmed, the same again is a payment of its own: %v, %d effects", err, effects(server))
		}
	})
}

// TestNaiveLoopBesideRun: what Run finishes behind the loop's back, nobody has
// told the loop of.
func TestNaiveLoopBesideRun(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		c, _ := newClient(t, transport, on(j, oneAttempt))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		var standing oncehttp.Key
		for i := range 10 {
			_, err := c.Do(pay(t, `{"amount":1}`))
			var e *oncehttp.Error
			if exactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || i > 0 && e.Key != standing {
				t.Fatalf("try %d: %v, want it refused for %q", i, err, standing)
			}
			standing = e.Key
			time.Sleep(time.Minute)
		}
		if rec := lookup(t, c, standing); rec.State != persist.StateConfirmed || effects(server) != 1 {
			t.Fatalf("it is %v, with %d effects; want Run to have confirmed the one", rec.State, effects(server))
		}
		if _, err := c.Do(pay(t, `{"amount":2}`)); err != nil {
			t.Errorf("another payment: %v", err)
		}
		if resp, err := c.DoKey(pay(t, `{"amount":1}`), standing); err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
			t.Errorf("with the key: %v", err)
		}
		if _, err := c.Do(pay(t, `{"amount":1}`)); err != nil || effects(server) != 3 {
			t.Errorf("told how it ended, the same again is a payment of its own: %v, %d effects", err, effects(server))
		}
		cancel()
		wg.Wait()
	})
}

// TestNaiveLoopWhileRunFinishes: from the moment at which the operation is final
// no listing shows it, and Run is not over yet.
func TestNaiveLoopWhileRunFinishes(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		ended, goOn := make(chan struct{}), make(chan struct{})
		finished := 0
		c, _ := newClient(t, transport, on(j, oneAttempt, func(cfg *oncehttp.Config) {
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
		if _, err := c.Do(pay(t, `{"amount":1}`)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		stop := running(t, c)
		<-ended
		if _, err := c.Do(pay(t, `{"amount":1}`)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || effects(server) != 1 {
			t.Errorf("%v, %d effects; want it refused", err, effects(server))
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
					oneAttempt(cfg)
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						return oncehttp.Resolution{Effect: effect}, nil
					}
				})
				_, err := c.Do(post(t, "{}"))
				var e *oncehttp.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				time.Sleep(48 * time.Hour) // its window is over
				stop := running(t, c)
				time.Sleep(time.Hour)
				if rec := lookup(t, c, e.Key); rec.State != persist.StateSettled {
					t.Errorf("it stands %v, want it settled by Run", rec.State)
				}
				_, err = c.Do(post(t, "{}"))
				if refused := errors.Is(err, oncehttp.ErrOutcomeUnknown); w.count() != sends || refused != (sends == 1) {
					t.Errorf("%v after %d sends, want %d", err, w.count(), sends)
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
					oneAttempt(cfg)
					cfg.Journal = &lateFailing{memory.New(), lost}
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						return oncehttp.Resolution{Effect: oncehttp.EffectHappened}, nil
					}
				})
				if _, err := c.Do(post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				time.Sleep(48 * time.Hour) // its window is over
				stop := running(t, c)
				time.Sleep(time.Hour)
				if _, err := c.Do(post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 1 {
					t.Errorf("%v after %d sends; want it refused", err, w.count())
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
	bubble(t, func(t *testing.T) {
		full := errors.New("disk full")
		j := &faulty{Journal: memory.New(), finish: func() error { return full }}
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, on(j, oneAttempt))
		_, err := c.Do(post(t, "{}"))
		var e *oncehttp.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		stop := running(t, c)
		time.Sleep(time.Hour) // Run has its answer, and cannot record it
		if err := stop(); err != nil {
			t.Error(err)
		}
		full = nil
		if err := c.Settle(t.Context(), e.Key, oncehttp.Resolution{Effect: oncehttp.EffectAbsent}); err != nil {
			t.Fatal(err)
		}
		before := w.count()
		if _, err := c.Do(post(t, "{}")); err != nil || before < 2 || w.count() != before+1 {
			t.Errorf("%v, %d sends after %d; want it sent", err, w.count(), before)
		}
	})
}

// TestNewKeyOfTheRequest: a NewKey that makes a request's key of the request gives
// the standing key again, and the loop goes on under it.
func TestNewKeyOfTheRequest(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		c, _ := newClient(t, transport, on(j, oneAttempt, func(cfg *oncehttp.Config) {
			cfg.NewKey = func(req *http.Request) (oncehttp.Key, error) { return oncehttp.Key(req.URL.Path).UUID(), nil }
		}))
		if _, err := c.Do(pay(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		for range 2 {
			if resp, err := c.Do(pay(t, "{}")); err != nil || resp.StatusCode != 201 {
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
			if got := resume(t, c); len(got) != 1 {
				t.Errorf("resumed %v", got)
			}
		}, false},
		{"the window's end", func(t *testing.T, c *oncehttp.Client, _ oncehttp.Key) {
			time.Sleep(24 * time.Hour)
			resume(t, c)
		}, false},
		{"Settle", func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			if err := c.Settle(t.Context(), key, oncehttp.Resolution{Effect: oncehttp.EffectAbsent}); err != nil {
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}}}
				c, _ := newClient(t, w, oneAttempt)
				_, err := c.Do(post(t, "{}"))
				var e *oncehttp.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				r.change(t, c, e.Key)
				sends := w.count()
				_, err = c.Do(post(t, "{}"))
				if sent := w.count() > sends; sent != r.sent || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("sent again: %v (%v), want %v", sent, err, r.sent)
				}
			})
		})
	}
}

// TestNoEffectLeavesNothingToResume: what Do said had no effect is never sent by
// a later Resume.
func TestNoEffectLeavesNothingToResume(t *testing.T) {
	t.Parallel()
	rows := map[string][]reply{
		"no connection": {{refused: true}},
		"401":           {{status: 401}}, "403": {{status: 403}}, "407": {{status: 407}},
		"421": {{status: 421}}, "425": {{status: 425}}, "429": {{status: 429}},
		"a long Retry-After":       {{status: 429, header: "Retry-After: 3600"}},
		"no connection, then 403":  {{refused: true}, {status: 403}},
		"429, then no connection":  {{status: 429}, {refused: true}},
		"another request's answer": {{status: 422, header: "Content-Type: application/problem+json"}},
	}
	for name, replies := range rows {
		for kind, do := range map[string]func(*oncehttp.Client, *http.Request) (*http.Response, error){
			"Do":    (*oncehttp.Client).Do,
			"DoKey": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) { return c.DoKey(req, "k") },
			"RoundTrip": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) {
				return c.Transport().RoundTrip(req)
			},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					w := &wire{replies: replies}
					c, j := newClient(t, w, nil)
					_, err := do(c, post(t, "{}"))
					if kind != "RoundTrip" || err != nil {
						exactlyOne(t, err)
						if !errors.Is(err, oncehttp.ErrNoEffect) {
							t.Errorf("%v, want ErrNoEffect", err)
						}
					}
					sends := w.count()
					w.replies = []reply{{status: 201}}
					time.Sleep(2 * time.Hour)
					next, _ := newClient(t, w, on(survivors(t, j)))
					for _, client := range []*oncehttp.Client{c, next} {
						for rec, err := range client.Unfinished(t.Context()) {
							t.Errorf("left pending: %q, %v", rec.Key, err)
						}
						if got := resume(t, client); len(got) != 0 || w.count() != sends {
							t.Errorf("resumed %v, %d more sends", got, w.count()-sends)
						}
					}
				})
			})
		}
	}
}

// TestGatewayAfterLostAnswer: what a gateway says after a lost answer is no proof
// that the payment did not happen, whatever it says.
func TestGatewayAfterLostAnswer(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 405, 407, 413, 414, 415, 421, 425, 426, 429, 431, 451} {
		for _, header := range []string{"", "Idempotent-Replayed: true", "Content-Type: application/problem+json"} {
			t.Run(fmt.Sprint(status, header), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					w := &wire{replies: []reply{{err: errLost}, {status: status, header: header}}}
					c, _ := newClient(t, w, nil)
					_, err := c.DoKey(post(t, "{}"), "k")
					exactlyOne(t, err)
					if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrRefused) {
						t.Errorf("%v, want ErrOutcomeUnknown", err)
					}
					if rec := lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent {
						t.Errorf("record %v, maybe sent %v", rec.State, rec.MaybeSent)
					}
				})
			})
		}
	}
	t.Run("and the payment is found", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T) {
			server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.Answer, Status: 403}}})
			c, _ := newClient(t, transport, nil)
			_, err := c.DoKey(pay(t, `{"amount":1}`), "k")
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			got := resume(t, c)["k"]
			if got.err != nil || got.result.Source != oncehttp.SourceReplay || got.result.Answer.Status != 201 || effects(server) != 1 {
				t.Errorf("%+v, %d effects", got, effects(server))
			}
		})
	})
}

// TestEnqueuedSentKilledRefused: the process that sent it is gone, so that a
// refused connection proves nothing any more.
func TestEnqueuedSentKilledRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var left persist.Journal
		j := memory.New()
		w := &wire{replies: []reply{{err: errLost}}, before: func(int, *http.Request) { left = survivors(t, j) }}
		c, _ := newClient(t, w, on(j, oneAttempt))
		if err := c.Enqueue(post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		neverSent := survivors(t, j)
		resume(t, c) // killed within

		time.Sleep(10 * time.Minute)
		down := &wire{replies: []reply{{refused: true}}}
		for _, r := range []struct {
			journal persist.Journal
			sent    bool
		}{{left, true}, {neverSent, false}} {
			next, _ := newClient(t, down, on(r.journal))
			for _, err := range []error{resume(t, next)["k"].err, func() error { _, err := next.DoKey(post(t, "{}"), "k"); return err }()} {
				exactlyOne(t, err)
				if errors.Is(err, oncehttp.ErrNotSent) == r.sent || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("sent before %v: %v", r.sent, err)
				}
			}
			if rec := lookup(t, next, "k"); rec.State != persist.StatePending || rec.MaybeSent != r.sent || rec.FirstSent.IsZero() == r.sent {
				t.Errorf("sent before %v: record %v, maybe sent %v at %v", r.sent, rec.State, rec.MaybeSent, rec.FirstSent)
			}
		}
	})
}

// TestRedirectIsNeverSuccess, whoever asks.
func TestRedirectIsNeverSuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 301, 302, 304, 305, 307, 308, 399} {
		for _, p := range []*profile.Profile{profile.Draft07(), profile.StripeV1(), profile.GoCardless()} {
			t.Run(fmt.Sprint(status, p.Name), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					w := &wire{replies: []reply{{status: status, header: "Location: https://elsewhere.example/x\nIdempotent-Replayed: true\nStripe-Should-Retry: true"}}}
					c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
					for range 2 {
						_, err := c.DoKey(post(t, "{}"), "k")
						exactlyOne(t, err)
						if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
							t.Errorf("%v, want it held", err)
						}
					}
					if rec := lookup(t, c, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldRedirected || w.count() != 1 {
						t.Errorf("record %v %q after %d sends", rec.State, rec.HoldReason, w.count())
					}
				})
			})
		}
	}
}
