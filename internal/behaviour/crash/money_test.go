package crash_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
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

// TestSweptBatchSendsNothing: answers are forgotten, that a key was used is not.
func TestSweptBatchSendsNothing(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		const rows = 20
		server, transport := servertest.Till(t, mockserver.Config{})
		keep := func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }
		c, _ := clienttest.New(t, transport, clienttest.On(j, keep))
		batch := func(c *oncehttp.Client) (errs []error) {
			for i := range rows {
				resp, err := c.DoKey(servertest.Pay(t, fmt.Sprintf(`{"reference":"r%d"}`, i)), oncehttp.NewScope("row").Key(strconv.Itoa(i)))
				if err == nil {
					clienttest.Read(t, resp)
				}
				errs = append(errs, err)
			}
			return errs
		}
		if err := errors.Join(batch(c)...); err != nil || servertest.Effects(server) != rows {
			t.Fatalf("%v, %d effects", err, servertest.Effects(server))
		}
		time.Sleep(365 * 24 * time.Hour)
		if n, err := c.Sweep(t.Context()); n != rows || err != nil {
			t.Fatalf("swept %d, %v", n, err)
		}
		again, _ := clienttest.New(t, transport, clienttest.On(j, keep)) // as the next process
		for _, client := range []*oncehttp.Client{c, again} {
			for i, err := range batch(client) {
				clienttest.ExactlyOne(t, err)
				if !errors.Is(err, oncehttp.ErrAnswerGone) || !errors.Is(err, oncehttp.ErrFinal) {
					t.Errorf("row %d: %v, want ErrAnswerGone and never ErrNoEffect", i, err)
				}
			}
		}
		_, err := again.DoKey(servertest.Pay(t, `{"reference":"other"}`), oncehttp.NewScope("row").Key("0"))
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyReused) || !errors.Is(err, oncehttp.ErrFinal) {
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
	rows := map[string][]wiretest.Reply{
		"no connection": {{Refused: true}},
		"401":           {{Status: 401}}, "403": {{Status: 403}}, "407": {{Status: 407}},
		"421": {{Status: 421}}, "425": {{Status: 425}}, "429": {{Status: 429}},
		"a long Retry-After":       {{Status: 429, Header: "Retry-After: 3600"}},
		"no connection, then 403":  {{Refused: true}, {Status: 403}},
		"429, then no connection":  {{Status: 429}, {Refused: true}},
		"another request's answer": {{Status: 422, Header: "Content-Type: application/problem+json"}},
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
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: replies}
					c, j := clienttest.New(t, w, nil)
					_, err := do(c, clienttest.Post(t, "{}"))
					if kind != "RoundTrip" || err != nil {
						clienttest.ExactlyOne(t, err)
						if errors.Is(err, oncehttp.ErrOutcomeUnknown) {
							t.Errorf("%v, want another verdict", err)
						}
					}
					sends := w.Count()
					w.Replies = []wiretest.Reply{{Status: 201}}
					time.Sleep(2 * time.Hour)
					next, _ := clienttest.New(t, w, clienttest.On(journaltest.Survivors(t, j)))
					for _, client := range []*oncehttp.Client{c, next} {
						for rec, err := range client.Unfinished(t.Context()) {
							t.Errorf("left pending: %q, %v", rec.Key, err)
						}
						if got := clienttest.Resume(t, client); len(got) != 0 || w.Count() != sends {
							t.Errorf("resumed %v, %d more sends", got, w.Count()-sends)
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
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: status, Header: header}}}
					c, _ := clienttest.New(t, w, nil)
					_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					clienttest.ExactlyOne(t, err)
					if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrRefused) {
						t.Errorf("%v, want ErrOutcomeUnknown", err)
					}
					if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent {
						t.Errorf("record %v, maybe sent %v", rec.State, rec.MaybeSent)
					}
				})
			})
		}
	}
	t.Run("and the payment is found", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.Answer, Status: 403}}})
			c, _ := clienttest.New(t, transport, nil)
			_, err := c.DoKey(servertest.Pay(t, `{"amount":1}`), "k")
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			got := clienttest.Resume(t, c)["k"]
			if got.Err != nil || got.Result.Source != oncehttp.SourceReplay || got.Result.Answer.Status != 201 || servertest.Effects(server) != 1 {
				t.Errorf("%+v, %d effects", got, servertest.Effects(server))
			}
		})
	})
}

// TestEnqueuedSentKilledRefused: the process that sent it is gone, so that a
// refused connection proves nothing any more.
func TestEnqueuedSentKilledRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left persist.Journal
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}, Before: func(int, *http.Request) { left = journaltest.Survivors(t, j) }}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		neverSent := journaltest.Survivors(t, j)
		clienttest.Resume(t, c) // killed within

		time.Sleep(10 * time.Minute)
		down := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}
		for _, r := range []struct {
			journal persist.Journal
			sent    bool
		}{{left, true}, {neverSent, false}} {
			next, _ := clienttest.New(t, down, clienttest.On(r.journal))
			for _, err := range []error{clienttest.Resume(t, next)["k"].Err, func() error { _, err := next.DoKey(clienttest.Post(t, "{}"), "k"); return err }()} {
				clienttest.ExactlyOne(t, err)
				if errors.Is(err, oncehttp.ErrNotSent) == r.sent || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("sent before %v: %v", r.sent, err)
				}
			}
			if rec := clienttest.Lookup(t, next, "k"); rec.State != persist.StatePending || rec.MaybeSent != r.sent || rec.FirstSent.IsZero() == r.sent {
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
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Header: "Location: https://elsewhere.example/x\nIdempotent-Replayed: true\nStripe-Should-Retry: true"}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
					for range 2 {
						_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
						clienttest.ExactlyOne(t, err)
						if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
							t.Errorf("%v, want it held", err)
						}
					}
					if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldRedirected || w.Count() != 1 {
						t.Errorf("record %v %q after %d sends", rec.State, rec.HoldReason, w.Count())
					}
				})
			})
		}
	}
}
