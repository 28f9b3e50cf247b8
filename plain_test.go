package oncehttp_test

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
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// sdk sends as a generated SDK does: with a key of its own, over StandardClient.
func sdk(t *testing.T, c *oncehttp.Client, key string) (*http.Response, error) {
	t.Helper()
	req := post(t, "{}")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return c.StandardClient().Do(req)
}

// TestPlainHTTP: what its callers see, and what is left behind.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	lost := reply{err: errLost}
	rows := []struct {
		name    string
		replies []reply
		status  int // zero: an error
		state   persist.State
		why     persist.HoldReason
	}{
		{"2xx", []reply{{status: 201, body: "paid"}}, 201, persist.StateConfirmed, ""},
		{"a final 4xx", []reply{{status: 402, body: "no"}}, 402, persist.StateConfirmed, ""},
		{"303", []reply{{status: 303, header: "Location: /x"}}, 303, persist.StateConfirmed, ""},
		{"409", []reply{{status: 409, body: "wait"}}, 409, persist.StateHeld, persist.HoldCaller},
		{"500", []reply{{status: 500, body: "oops"}}, 500, persist.StateHeld, persist.HoldCaller},
		{"503", []reply{{status: 503, body: "later"}}, 503, persist.StateHeld, persist.HoldCaller},
		{"lost", []reply{lost}, 0, persist.StateHeld, persist.HoldCaller},
		{"lost, then 403", []reply{lost, {status: 403, body: "out"}}, 0, persist.StateHeld, persist.HoldCaller},
		{"lost, then 429", []reply{lost, {status: 429, body: "slow"}}, 0, persist.StateHeld, persist.HoldCaller},
		{"301", []reply{{status: 301, header: "Location: /x", body: "moved"}}, 301, persist.StateHeld, persist.HoldRedirected},
		{"a stored 500", []reply{{status: 500, header: "Idempotent-Replayed: true"}}, 500, persist.StateHeld, persist.HoldStoredError},
		{"429", []reply{{status: 429, header: "Retry-After: 1", body: "slow"}}, 429, forgotten, ""},
		{"401", []reply{{status: 401, body: "who"}}, 401, forgotten, ""},
		{"no connection", []reply{{refused: true}}, 0, forgotten, ""},
		{"another request's key", []reply{{status: 422, header: "Content-Type: application/problem+json", body: "{}"}}, 422, persist.StateMismatched, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				w := &wire{replies: r.replies}
				c, _ := newClient(t, w, on(j))
				resp, err := sdk(t, c, "k")
				var ue *url.Error
				switch {
				case r.status == 0:
					var e *oncehttp.Error
					if !errors.As(err, &ue) || !errors.As(err, &e) {
						t.Errorf("%v, want net/http's error around ours", err)
					}
					exactlyOne(t, err)
				case err != nil:
					t.Fatal(err)
				case resp.StatusCode != r.status || read(t, resp) != r.replies[len(r.replies)-1].body:
					t.Errorf("%d, want %d with its body", resp.StatusCode, r.status)
				}
				rec, err := c.Lookup(t.Context(), "k")
				if r.state == forgotten {
					if !errors.Is(err, persist.ErrNotFound) {
						t.Errorf("left %v", rec.State)
					}
				} else if err != nil || rec.State != r.state || rec.HoldReason != r.why || !rec.PlainHTTP {
					t.Errorf("record %v %q (%v), want %v %q", rec.State, rec.HoldReason, err, r.state, r.why)
				}
				sends := w.count()
				time.Sleep(2 * time.Hour)
				if got := resume(t, c); len(got) != 0 || w.count() != sends {
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
		for _, second := range []reply{{status: 201, body: "paid"}, {status: 500, body: "again"}} {
			t.Run(door+fmt.Sprint(second.status), func(t *testing.T) {
				t.Parallel()
				eachJournal(t, func(t *testing.T, j persist.Journal) {
					asked := 0
					w := &wire{replies: []reply{{status: 500, body: "oops"}, second}}
					c, _ := newClient(t, w, on(j, oneAttempt, func(cfg *oncehttp.Config) {
						cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
							asked++
							return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, nil
						}
					}))
					if resp, err := sdk(t, c, "k"); err != nil || resp.StatusCode != 500 {
						t.Fatal(err)
					}
					time.Sleep(time.Hour)
					if got := resume(t, c); len(got) != 0 || asked != 0 {
						t.Errorf("a pass meddled: %v, asked %d times", got, asked)
					}
					var resp *http.Response
					var err error
					want := persist.StateConfirmed
					if door == "Do" {
						if resp, err = c.DoKey(post(t, "{}"), "k"); second.status == 500 {
							exactlyOne(t, err) // Do's own callers have a pass that goes on
							if want = persist.StatePending; !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
								t.Errorf("%v", err)
							}
						}
					} else if resp, err = sdk(t, c, "k"); second.status == 500 {
						want = persist.StateHeld
					}
					if resp != nil && (err != nil || read(t, resp) != second.body) || w.keys()["k"] != 2 {
						t.Errorf("%v, sends %v", err, w.keys())
					}
					if rec := lookup(t, c, "k"); rec.State != want {
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
	bubble(t, func(t *testing.T) {
		j := memory.New()
		var left persist.Journal
		w := &wire{replies: []reply{{err: errLost}, {status: 500}, {status: 201, body: "paid"}}}
		w.before = func(int, *http.Request) {
			if left == nil {
				left = survivors(t, j)
			}
		}
		c, _ := newClient(t, w, on(j, oneAttempt))
		_, _ = sdk(t, c, "k") // killed within
		time.Sleep(10 * time.Minute)
		next, _ := newClient(t, w, on(left, oneAttempt))
		if got := resume(t, next)["k"]; !errors.Is(got.err, oncehttp.ErrOutcomeUnknown) || lookup(t, next, "k").State != persist.StatePending {
			t.Errorf("%+v, record %v", got, lookup(t, next, "k").State)
		}
		time.Sleep(time.Minute)
		if got := resume(t, next)["k"]; got.err != nil || string(got.result.Answer.Body) != "paid" {
			t.Errorf("%+v", got)
		}
	})
}

// TestPlainWithoutKey: an SDK that makes no key gets one, and its own loop cannot
// pay twice.
func TestPlainWithoutKey(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 500}, {status: 201}}}
		c, _ := newClient(t, w, on(j, oneAttempt))
		if resp, err := sdk(t, c, ""); err != nil || resp.StatusCode != 500 {
			t.Fatal(err)
		}
		for range 3 {
			_, err := sdk(t, c, "")
			var e *oncehttp.Error
			if exactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key == "" || w.count() != 1 {
				t.Errorf("%v after %d sends", err, w.count())
			}
		}
	})
}

// TestPlainReplay: the recorded answer is a response as any other.
func TestPlainReplay(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 402, header: "X-Id: 7\nSet-Cookie: s", body: "declined"}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }))
		for i := range 3 {
			resp, err := sdk(t, c, "k")
			if err != nil || resp.StatusCode != 402 || resp.Header.Get("X-Id") != "7" || (resp.Header.Get("Set-Cookie") == "") != (i > 0) || read(t, resp) != "declined" {
				t.Errorf("%d: %v %v", i, resp, err)
			}
			if src := oncehttp.ResultOf(resp).Source; (src == oncehttp.SourceJournal) != (i > 0) {
				t.Errorf("%d: from %v", i, src)
			}
		}
		if w.count() != 1 {
			t.Errorf("%d sends", w.count())
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
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				w := &wire{replies: []reply{{status: 503, body: "later", delay: time.Second}}}
				c, _ := newClient(t, w, on(j, oneAttempt))
				var wg sync.WaitGroup
				do := func() {
					_, err := c.DoKey(post(t, "{}"), "k")
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("Do: %v", err)
					}
				}
				plain := func() {
					if resp, err := sdk(t, c, "k"); err != nil || resp.StatusCode != 503 || read(t, resp) != "later" {
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
				if w.count() != 1 {
					t.Errorf("%d sends, want one call", w.count())
				}
				if rec := lookup(t, c, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldCaller {
					t.Errorf("record %v %q, want it held for the caller", rec.State, rec.HoldReason)
				}
			})
		})
	}
}

// TestPlainStreams: what is no operation is as net/http has it.
func TestPlainStreams(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 200, body: "list"}}}
		c, _ := newClient(t, w, nil)
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"} {
			resp, err := c.StandardClient().Do(request(t, method, "https://api.example.com/payments", ""))
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
		reply reply
		shown bool
	}{
		"400": {reply{status: 400}, false}, "401": {reply{status: 401}, false}, "403": {reply{status: 403}, false},
		"408": {reply{status: 408}, false}, "413": {reply{status: 413}, false}, "422": {reply{status: 422}, false},
		"mismatch": {reply{status: 422, header: problem}, false}, "429": {reply{status: 429}, false}, "425": {reply{status: 425}, false},
		"301": {reply{status: 301}, false}, "303": {reply{status: 303, header: "Location: https://login.example.com/"}, false},
		"409": {reply{status: 409}, true}, "500": {reply{status: 500}, true}, "503": {reply{status: 503}, true},
		"402, stored": {reply{status: 402, header: problem}, true}, "201": {reply{status: 201}, true},
	}
	for name, r := range lasts {
		for first, lost := range map[string]reply{"lost": {err: errLost}, "503": {status: 503}, "cut": {status: 200, cut: true}} {
			for _, calls := range []int{1, 2} {
				t.Run(fmt.Sprint(first, " then ", name, " in ", calls), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T) {
						w := &wire{replies: []reply{lost, r.reply}}
						c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 3 - calls })
						var resp *http.Response
						var err error
						for range calls {
							req := post(t, "{}")
							req.Header.Set("Idempotency-Key", "k")
							resp, err = c.Transport().RoundTrip(req)
						}
						switch {
						case r.shown && (err != nil || resp.StatusCode != r.reply.status):
							t.Errorf("%v, want the %d", err, r.reply.status)
						case !r.shown && (!errors.Is(err, oncehttp.ErrOutcomeUnknown) || resp != nil):
							t.Errorf("%v, want ErrOutcomeUnknown", err)
						}
						var e *oncehttp.Error
						if !r.shown && (!errors.As(err, &e) || e.Answer == nil || e.Answer.Status != r.reply.status) {
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
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 500, body: "too large to keep"}, {status: 201}}}
		ctx, leave := context.WithCancel(t.Context())
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.MaxResponseBytes = 4
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventWaiting {
					leave()
				}
			}
		})
		_, err := c.StandardClient().Do(post(t, "{}").WithContext(ctx))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) || errors.Is(err, oncehttp.ErrNotSent) {
			t.Fatalf("%v, want the outcome unknown", err)
		}
		if rec := lookup(t, c, e.Key); rec.State.Final() || w.count() != 1 {
			t.Errorf("it stands as %v after %d sends", rec.State, w.count())
		}
	})
}

// TestRefusalThatCannotBeTakenBack: where the record could not be forgotten, maybe because another process went on with
// it, a 401 or 429 is no answer for a caller of plain HTTP: it would take it for "nothing happened".
func TestRefusalThatCannotBeTakenBack(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 429, 422} {
		bubble(t, func(t *testing.T) {
			j := &faulty{Journal: memory.New(), forget: func() error { return persist.ErrStale }, finish: func() error { return persist.ErrStale }}
			w := &wire{replies: []reply{{status: status, header: "Content-Type: application/problem+json", body: "{}"}}}
			c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Journal = j })
			resp, err := sdk(t, c, "k")
			if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%d: %v, %v, want the outcome unknown", status, resp, err)
			}
		})
	}
}
