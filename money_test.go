package oncehttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
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
				if !errors.Is(err, oncehttp.ErrAnswerGone) || !errors.Is(err, oncehttp.ErrFinal) {
					t.Errorf("row %d: %v, want ErrAnswerGone and never ErrNoEffect", i, err)
				}
			}
		}
		_, err := again.DoKey(pay(t, `{"reference":"other"}`), oncehttp.NewScope("row").Key("0"))
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyReused) || !errors.Is(err, oncehttp.ErrFinal) {
			t.Errorf("other bytes under a swept key: %v, want ErrKeyReused and ErrFinal", err)
		}
		if snap := server.Ledger().Snapshot(); snap.Sends != rows || snap.Effects != rows {
			t.Errorf("%d sends, %d effects; want %d of each", snap.Sends, snap.Effects, rows)
		}
	})
}

// TestNoEffectLeavesNothingToResume: what Do said had no effect, or is final, is never sent by a later Resume.
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
						if errors.Is(err, oncehttp.ErrOutcomeUnknown) {
							t.Errorf("%v, want another verdict", err)
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
