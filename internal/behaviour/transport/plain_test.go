// Package transport_test holds what goes over the wire, once for each send: requests, redirects, and what passes through a client
// as an http.RoundTripper.
package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestPlainHTTP: what its callers see, and what is left behind.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	lost := wiretest.Reply{Err: wiretest.ErrLost}
	rows := []struct {
		name    string
		replies []wiretest.Reply
		status  int // zero: an error
		state   persist.State
		why     persist.HoldReason
	}{
		{"2xx", []wiretest.Reply{{Status: 201, Body: "paid"}}, 201, persist.StateConfirmed, ""},
		{"a final 4xx", []wiretest.Reply{{Status: 402, Body: "no"}}, 402, persist.StateConfirmed, ""},
		{"303", []wiretest.Reply{{Status: 303, Header: "Location: /x"}, {Status: 200, Body: "there"}}, 200, persist.StateConfirmed, ""},
		{"303, elsewhere", []wiretest.Reply{{Status: 303, Header: "Location: https://elsewhere.example/x"}}, 0, persist.StateHeld, persist.HoldRedirected},
		{"409", []wiretest.Reply{{Status: 409, Body: "wait"}}, 409, persist.StateHeld, persist.HoldCaller},
		{"500", []wiretest.Reply{{Status: 500, Body: "oops"}}, 500, persist.StateHeld, persist.HoldCaller},
		{"503", []wiretest.Reply{{Status: 503, Body: "later"}}, 503, persist.StateHeld, persist.HoldCaller},
		{"lost", []wiretest.Reply{lost}, 0, persist.StateHeld, persist.HoldCaller},
		{"lost, then 403", []wiretest.Reply{lost, {Status: 403, Body: "out"}}, 0, persist.StateHeld, persist.HoldCaller},
		{"lost, then 429", []wiretest.Reply{lost, {Status: 429, Body: "slow"}}, 0, persist.StateHeld, persist.HoldCaller},
		{"301", []wiretest.Reply{{Status: 301, Header: "Location: /x", Body: "moved"}}, 0, persist.StateHeld, persist.HoldRedirected},
		{"a stored 500", []wiretest.Reply{{Status: 500, Header: "Idempotent-Replayed: true"}}, 500, persist.StateHeld, persist.HoldStoredError},
		{"429", []wiretest.Reply{{Status: 429, Header: "Retry-After: 1", Body: "slow"}}, 429, clienttest.Unknown, ""},
		{"401", []wiretest.Reply{{Status: 401, Body: "who"}}, 401, clienttest.Unknown, ""},
		{"no connection", []wiretest.Reply{{Refused: true}}, 0, clienttest.Unknown, ""},
		{"another request's key", []wiretest.Reply{{Status: 422, Header: "Content-Type: application/problem+json", Body: "{}"}}, 422, persist.StateMismatched, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: r.replies}
				c, _ := clienttest.New(t, w, clienttest.On(j))
				resp, err := clienttest.SDK(t, c, "k")
				var ue *url.Error
				switch {
				case r.status == 0:
					var e *oncehttp.Error
					if !errors.As(err, &ue) || !errors.As(err, &e) {
						t.Errorf("%v, want net/http's error around ours", err)
					}
					clienttest.ExactlyOne(t, err)
				case err != nil:
					t.Fatal(err)
				case resp.StatusCode != r.status || clienttest.Read(t, resp) != r.replies[len(r.replies)-1].Body:
					t.Errorf("%d, want %d with its body", resp.StatusCode, r.status)
				}
				rec, err := c.Lookup(t.Context(), "k")
				if r.state == clienttest.Unknown {
					if !errors.Is(err, persist.ErrNotFound) {
						t.Errorf("left %v", rec.State)
					}
				} else if err != nil || rec.State != r.state || rec.HoldReason != r.why || !rec.PlainHTTP {
					t.Errorf("record %v %q (%v), want %v %q", rec.State, rec.HoldReason, err, r.state, r.why)
				}
				sends := w.Count()
				time.Sleep(2 * time.Hour)
				if got := clienttest.Resume(t, c); len(got) != 0 || w.Count() != sends {
					t.Errorf("resumed %v", got)
				}
			})
		})
	}
}

// TestPlainHeldGoesOn when the same key is sent again, by whichever door, and by
// nobody else.
func TestPlainHeldGoesOn(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"StandardClient", "Do"} {
		for _, second := range []wiretest.Reply{{Status: 201, Body: "paid"}, {Status: 500, Body: "again"}} {
			t.Run(door+fmt.Sprint(second.Status), func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					asked := 0
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500, Body: "oops"}, second}}
					c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
						cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
							asked++
							return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, nil
						}
					}))
					if resp, err := clienttest.SDK(t, c, "k"); err != nil || resp.StatusCode != 500 {
						t.Fatal(err)
					}
					time.Sleep(time.Hour)
					if got := clienttest.Resume(t, c); len(got) != 0 || asked != 0 {
						t.Errorf("a pass meddled: %v, asked %d times", got, asked)
					}
					var resp *http.Response
					var err error
					want := persist.StateConfirmed
					if door == "Do" {
						if resp, err = c.DoKey(clienttest.Post(t, "{}"), "k"); second.Status == 500 {
							clienttest.ExactlyOne(t, err) // Do's own callers have a pass that goes on
							if want = persist.StatePending; !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
								t.Errorf("%v", err)
							}
						}
					} else if resp, err = clienttest.SDK(t, c, "k"); second.Status == 500 {
						want = persist.StateHeld
					}
					if resp != nil && (err != nil || clienttest.Read(t, resp) != second.Body) || w.Keys()["k"] != 2 {
						t.Errorf("%v, sends %v", err, w.Keys())
					}
					if rec := clienttest.Lookup(t, c, "k"); rec.State != want {
						t.Errorf("record %v, want %v", rec.State, want)
					}
				})
			})
		}
	}
}

// TestPlainKilled: nobody was shown an answer, so that a pass goes on.
func TestPlainKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		var left persist.Journal
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 500}, {Status: 201, Body: "paid"}}}
		w.Before = func(int, *http.Request) {
			if left == nil {
				left = journaltest.Survivors(t, j)
			}
		}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		_, _ = clienttest.SDK(t, c, "k") // killed within
		time.Sleep(10 * time.Minute)
		next, _ := clienttest.New(t, w, clienttest.On(left, clienttest.OneAttempt))
		if got := clienttest.Resume(t, next)["k"]; !errors.Is(got.Err, oncehttp.ErrOutcomeUnknown) || clienttest.Lookup(t, next, "k").State != persist.StatePending {
			t.Errorf("%+v, record %v", got, clienttest.Lookup(t, next, "k").State)
		}
		time.Sleep(time.Minute)
		if got := clienttest.Resume(t, next)["k"]; got.Err != nil || string(got.Result.Answer.Body) != "paid" {
			t.Errorf("%+v", got)
		}
	})
}

// TestPlainWithoutKey: an SDK that makes no key gets one, and its own loop cannot
// pay twice.
func TestPlainWithoutKey(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		if resp, err := clienttest.SDK(t, c, ""); err != nil || resp.StatusCode != 500 {
			t.Fatal(err)
		}
		for range 3 {
			_, err := clienttest.SDK(t, c, "")
			var e *oncehttp.Error
			if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key == "" || w.Count() != 1 {
				t.Errorf("%v after %d sends", err, w.Count())
			}
		}
	})
}

// TestPlainReplay: the recorded answer is a response as any other.
func TestPlainReplay(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Header: "X-Id: 7\nSet-Cookie: s", Body: "declined"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }))
		for i := range 3 {
			resp, err := clienttest.SDK(t, c, "k")
			if err != nil || resp.StatusCode != 402 || resp.Header.Get("X-Id") != "7" || (resp.Header.Get("Set-Cookie") == "") != (i > 0) || clienttest.Read(t, resp) != "declined" {
				t.Errorf("%d: %v %v", i, resp, err)
			}
			if src := oncehttp.ResultOf(resp).Source; (src == oncehttp.SourceJournal) != (i > 0) {
				t.Errorf("%d: from %v", i, src)
			}
		}
		if w.Count() != 1 {
			t.Errorf("%d sends", w.Count())
		}
	})
}

// TestPlainBesideDo: in one call each sees what it is used to; and as one of them
// was shown a plain answer and may act on it, a pass leaves it alone.
func TestPlainBesideDo(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"Do", "StandardClient"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Body: "later", Delay: time.Second}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				var wg sync.WaitGroup
				do := func() {
					_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("Do: %v", err)
					}
				}
				plain := func() {
					if resp, err := clienttest.SDK(t, c, "k"); err != nil || resp.StatusCode != 503 || clienttest.Read(t, resp) != "later" {
						t.Errorf("StandardClient: %v, %v", resp, err)
					}
				}
				if first == "Do" {
					wg.Go(do)
					synctest.Wait()
					wg.Go(plain)
				} else {
					wg.Go(plain)
					synctest.Wait()
					wg.Go(do)
				}
				wg.Wait()
				if w.Count() != 1 {
					t.Errorf("%d sends, want one call", w.Count())
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldCaller {
					t.Errorf("record %v %q, want it held for the caller", rec.State, rec.HoldReason)
				}
			})
		})
	}
}

// TestPlainStreams: what is no operation is as net/http has it.
func TestPlainStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: "list"}}}
		c, _ := clienttest.New(t, w, nil)
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"} {
			resp, err := c.StandardClient().Do(clienttest.Request(t, method, "https://api.example.com/payments", ""))
			if err != nil || resp.StatusCode != 200 || oncehttp.ResultOf(resp).Key != "" {
				t.Errorf("%s: %v", method, err)
			}
		}
		for rec := range c.Unfinished(t.Context()) {
			t.Errorf("%s is journaled", rec.Method)
		}
	})
}

// TestPlainIsNotToldNo: after an attempt that may have taken effect, an answer that
// says or suggests that nothing happened does not come back as the response: to its
// caller it would be the only answer. What claims nothing (409, 5xx) does.
func TestPlainIsNotToldNo(t *testing.T) {
	t.Parallel()
	problem := "Content-Type: application/problem+json"
	lasts := map[string]struct {
		reply wiretest.Reply
		shown bool
	}{
		"400": {wiretest.Reply{Status: 400}, false}, "401": {wiretest.Reply{Status: 401}, false}, "403": {wiretest.Reply{Status: 403}, false},
		"408": {wiretest.Reply{Status: 408}, false}, "413": {wiretest.Reply{Status: 413}, false}, "422": {wiretest.Reply{Status: 422}, false},
		"mismatch": {wiretest.Reply{Status: 422, Header: problem}, false}, "429": {wiretest.Reply{Status: 429}, false}, "425": {wiretest.Reply{Status: 425}, false},
		"301": {wiretest.Reply{Status: 301}, false}, "303": {wiretest.Reply{Status: 303, Header: "Location: https://login.example.com/"}, false},
		"409": {wiretest.Reply{Status: 409}, true}, "500": {wiretest.Reply{Status: 500}, true}, "503": {wiretest.Reply{Status: 503}, true},
		"402, stored": {wiretest.Reply{Status: 402, Header: problem + "\nIdempotent-Replayed: true"}, true}, "402": {wiretest.Reply{Status: 402, Header: problem}, false}, "201": {wiretest.Reply{Status: 201}, true},
	}
	for name, r := range lasts {
		for first, lost := range map[string]wiretest.Reply{"lost": {Err: wiretest.ErrLost}, "503": {Status: 503}, "cut": {Status: 200, Cut: true}} {
			for _, calls := range []int{1, 2} {
				t.Run(fmt.Sprint(first, " then ", name, " in ", calls), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := &wiretest.Wire{Replies: []wiretest.Reply{lost, r.reply}}
						c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 3 - calls })
						var resp *http.Response
						var err error
						for range calls {
							req := clienttest.Post(t, "{}")
							req.Header.Set("Idempotency-Key", "k")
							resp, err = c.Transport().RoundTrip(req)
						}
						switch {
						case r.shown && (err != nil || resp.StatusCode != r.reply.Status):
							t.Errorf("%v, want the %d", err, r.reply.Status)
						case !r.shown && (!errors.Is(err, oncehttp.ErrOutcomeUnknown) || resp != nil):
							t.Errorf("%v, want ErrOutcomeUnknown", err)
						}
						var e *oncehttp.Error
						if !r.shown && (!errors.As(err, &e) || e.Answer == nil || e.Answer.Status != r.reply.Status) {
							t.Errorf("%v, want the answer in the error", err)
						}
					})
				})
			}
		}
	}
}

// TestLargeErrorAndALeavingCaller: a caller of plain HTTP that leaves in the wait after a 500 whose body is too large to
// keep is not told that nothing was sent, and the operation is not run a second time for it.
func TestLargeErrorAndALeavingCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500, Body: "too large to keep"}, {Status: 201}}}
		ctx, leave := context.WithCancel(t.Context())
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.MaxResponseBytes = 4
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventWaiting {
					leave()
				}
			}
		})
		_, err := c.StandardClient().Do(clienttest.Post(t, "{}").WithContext(ctx))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) || errors.Is(err, oncehttp.ErrNotSent) {
			t.Fatalf("%v, want the outcome unknown", err)
		}
		if rec := clienttest.Lookup(t, c, e.Key); rec.State.Final() || w.Count() != 1 {
			t.Errorf("it stands as %v after %d sends", rec.State, w.Count())
		}
	})
}

// TestRefusalThatCannotBeTakenBack: where the record could not be forgotten, maybe because another process went on with
// it, a 401 or 429 is no answer for a caller of plain HTTP: it would take it for "nothing happened".
func TestRefusalThatCannotBeTakenBack(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 429, 422} {
		synctest.Test(t, func(t *testing.T) {
			j := &journaltest.Faulty{Journal: memory.New(), OnForget: func() error { return persist.ErrStale }, OnFinish: func() error { return persist.ErrStale }}
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Header: "Content-Type: application/problem+json", Body: "{}"}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal = j })
			resp, err := clienttest.SDK(t, c, "k")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%d: %v, %v, want the outcome unknown", status, resp, err)
			}
		})
	}
}
