package limits_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
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

// firstAnswers are what a first send may come to, after which a call sends again.
func firstAnswers() map[string]wiretest.Reply {
	return map[string]wiretest.Reply{"in doubt": {Err: wiretest.ErrLost}, "busy": {Status: 503}, "refused": {Status: 429}, "not connected": {Refused: true}}
}

// TestCallLeavesItsRetry: where the limiter of a call lets no second send go out for hours, the operation is nobody's: another client with the key
// sends it. The first call gets that answer once its turn has come, and sends nothing more.
func TestCallLeavesItsRetry(t *testing.T) {
	t.Parallel()
	for name, first := range firstAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Two(t, func(t *testing.T, one, other persist.Journal) {
				w, live := &wiretest.Wire{Replies: []wiretest.Reply{first}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "live"}}}
				waits, _ := clienttest.New(t, w, clienttest.On(one, clienttest.LimitedBy(&fewTurns{left: 1})))
				free, _ := clienttest.New(t, live, clienttest.On(other))
				began := time.Now()
				call := calling(t, t.Context(), waits)
				time.Sleep(time.Minute)
				rec, sent := clienttest.Lookup(t, free, "k"), first.Status == 503 || errors.Is(first.Err, wiretest.ErrLost)
				if rec.State != persist.StatePending || rec.LeaseOwner != "" || rec.MaybeSent != sent || rec.NextAttempt.Sub(began) > 45*time.Second {
					t.Errorf("%v, lease of %q, maybe sent %t, due after %v", rec.State, rec.LeaseOwner, rec.MaybeSent, rec.NextAttempt.Sub(began))
				}
				if !rec.MaybeSent && rec.SendBefore.IsZero() {
					t.Error("what was never sent may be sent for ever")
				}
				resp, err := free.DoKey(clienttest.Post(t, `{"n":1}`), "k")
				if err != nil || clienttest.Read(t, resp) != "live" || live.Count() != 1 {
					t.Fatalf("the other: %v after %d sends", err, live.Count())
				}
				sends := w.Count()
				time.Sleep(7 * time.Hour)
				if got := <-call; got.err != nil || clienttest.Read(t, got.resp) != "live" || w.Count() != sends {
					t.Errorf("the first: %v, %d sends more; want the recorded answer", got.err, w.Count()-sends)
				}
			})
		})
	}
}

// TestCallMarksItsRetry: a call that has left its operation before a second send has it again, marked as maybe sent, before a byte leaves.
func TestCallMarksItsRetry(t *testing.T) {
	t.Parallel()
	for name, first := range firstAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Two(t, func(t *testing.T, j, _ persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{first, {Status: 201, Body: "{}"}}}
				sends := 0
				look := wiretest.Func(func(req *http.Request) (*http.Response, error) {
					sends++
					_, claims := persist.As[persist.Claimer](j)
					rec := journaltest.All(t, j)[0]
					if !rec.MaybeSent || rec.SendUntil.Before(time.Now().Add(150*time.Second)) || claims != rec.Leased("", time.Now()) || rec.Drives != sends+1 {
						t.Errorf("send %d: maybe sent %t, on its way until %v, lease of %q, %d drives", sends, rec.MaybeSent, rec.SendUntil, rec.LeaseOwner, rec.Drives)
					}
					return w.RoundTrip(req)
				})
				limiter := &clienttest.Bucket{Period: time.Hour}
				c, _ := clienttest.New(t, look, clienttest.On(j, clienttest.LimitedBy(limiter)))
				began := time.Now()
				got := <-calling(t, t.Context(), c)
				rec, total := clienttest.Lookup(t, c, "k"), 2
				if first.Refused {
					total = 1
				}
				if got.err != nil || sends != 2 || limiter.Count() != 2 || time.Since(began).Truncate(time.Second) != 2*time.Hour || rec.State != persist.StateConfirmed {
					t.Errorf("%v after %v, %d sends, %d waits, and it is %v", got.err, time.Since(began), sends, limiter.Count(), rec.State)
				}
				if how := oncehttp.ResultOf(got.resp); how.Sends != total || rec.Sends != total || how.Attempts != rec.Attempts {
					t.Errorf("%d attempts, %d sends, and %d and %d recorded", how.Attempts, how.Sends, rec.Attempts, rec.Sends)
				}
			})
		})
	}
}

// TestCallLeavesForGood: a call that ends while it waits for a second turn says what its first send has come to, unless another has the operation.
func TestCallLeavesForGood(t *testing.T) {
	t.Parallel()
	for name, first := range firstAnswers() {
		for _, enqueued := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				journaltest.Two(t, func(t *testing.T, j, other persist.Journal) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{first}}
					c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(&fewTurns{left: 1})))
					free, _ := clienttest.New(t, w, clienttest.On(other))
					ctx, cancel := context.WithCancel(t.Context())
					call := calling(t, ctx, c)
					time.Sleep(time.Minute)
					if enqueued {
						if err := free.Enqueue(clienttest.Post(t, `{"n":1}`), "k"); err != nil {
							t.Fatal(err)
						}
					}
					cancel()
					got := (<-call).err
					clienttest.ExactlyOne(t, got)
					free1 := !enqueued && (first.Status == 429 || first.Refused)
					want, why := oncehttp.ErrOutcomeUnknown, error(nil)
					if free1 {
						want = oncehttp.ErrNoEffect
					}
					if first.Status == 429 {
						why = oncehttp.ErrRefused
					}
					e := new(oncehttp.Error)
					if !errors.As(got, &e) || !errors.Is(got, want) || why != nil && !errors.Is(got, why) || e.Attempts != 1 || !errors.Is(got, context.Canceled) {
						t.Errorf("%v; want %v, after one attempt", got, want)
					}
					if !free1 && e.Outcome != oncehttp.OutcomeUnknown {
						t.Errorf("its outcome is %v, and others may send it", e.Outcome)
					}
					if first.Status != 0 && (e.Answer == nil || e.Answer.Status != first.Status) {
						t.Errorf("its answer is %v, want the %d", e.Answer, first.Status)
					}
					if _, err := free.Lookup(t.Context(), "k"); errors.Is(err, persist.ErrNotFound) != free1 {
						t.Errorf("in the journal: %v", err)
					}
				})
			})
		}
	}
}

// TestCallKeepsItsBounds: a call that leaves its operation before each attempt makes no more of them than its policy allows.
func TestCallKeepsItsBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first    wiretest.Reply
		set      func(*oncehttp.Policy)
		attempts int
	}{
		"attempts":  {wiretest.Reply{Status: 503}, func(p *oncehttp.Policy) { p.MaxAttempts, p.MaxElapsed = 3, 24*time.Hour }, 3},
		"in flight": {wiretest.Reply{Status: 409}, func(p *oncehttp.Policy) { p.MaxAttempts, p.MaxInFlight, p.MaxElapsed = 6, 2, 24*time.Hour }, 2},
		"elapsed":   {wiretest.Reply{Status: 503}, func(p *oncehttp.Policy) { p.MaxElapsed = 30 * time.Minute }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Two(t, func(t *testing.T, j, _ persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{c.first}}
				client, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(&clienttest.Bucket{Period: time.Hour}), func(cfg *oncehttp.Config) { c.set(&cfg.Retry) }))
				got := <-calling(t, t.Context(), client)
				e := new(oncehttp.Error)
				if !errors.As(got.err, &e) || !errors.Is(got.err, oncehttp.ErrOutcomeUnknown) || e.Attempts != c.attempts || e.Sends != c.attempts || w.Count() != c.attempts {
					t.Errorf("%v after %d sends; want %d", got.err, w.Count(), c.attempts)
				}
				if rec := clienttest.Lookup(t, client, "k"); rec.State != persist.StatePending || rec.Attempts != c.attempts {
					t.Errorf("it is %v after %d attempts", rec.State, rec.Attempts)
				}
			})
		})
	}
}

// TestCallComesBackTooSoon: where another process sends the operation when the turn of a call comes that has left it, the call sends nothing, and
// says so.
func TestCallComesBackTooSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w, slow := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}}}, wiretest.Func(func(req *http.Request) (*http.Response, error) {
			select {
			case <-req.Context().Done():
				return nil, req.Context().Err()
			case <-time.After(20 * time.Second):
				return (&wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}).RoundTrip(req)
			}
		})
		waits, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(j), clienttest.LimitedBy(&fewTurns{left: 1})))
		other, _ := clienttest.New(t, slow, clienttest.On(journaltest.NewFairLeasing(j)))
		first := calling(t, t.Context(), waits)
		time.Sleep(6 * time.Hour)
		second := calling(t, t.Context(), other)
		got := <-first
		if !errors.Is(got.err, oncehttp.ErrOutcomeUnknown) || !errors.Is(got.err, oncehttp.ErrInFlight) || w.Count() != 1 {
			t.Errorf("%v after %d sends; want unknown, in flight elsewhere", got.err, w.Count())
		}
		if got := <-second; got.err != nil {
			t.Error(got.err)
		}
	})
}

// TestCallLeavesItsDoubt: a call that goes on with an operation in doubt, and whose limiter lets nothing go out, leaves it in doubt.
func TestCallLeavesItsDoubt(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, one, other persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		waits, _ := clienttest.New(t, w, clienttest.On(one, clienttest.LimitedBy(&fewTurns{})))
		free, _ := clienttest.New(t, w, clienttest.On(other, clienttest.OneAttempt))
		if _, err := free.DoKey(clienttest.Post(t, `{"n":1}`), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		before, ctx := clienttest.Lookup(t, free, "k"), t.Context()
		within, cancel := context.WithCancel(ctx)
		call := calling(t, within, waits)
		time.Sleep(time.Minute)
		rec := clienttest.Lookup(t, free, "k")
		if rec.State != persist.StatePending || !rec.MaybeSent || !rec.FirstSent.Equal(before.FirstSent) || rec.LeaseOwner != "" || w.Count() != 1 {
			t.Errorf("%v, maybe sent %t, first at %v, lease of %q, %d sends", rec.State, rec.MaybeSent, rec.FirstSent, rec.LeaseOwner, w.Count())
		}
		cancel()
		if got := <-call; !errors.Is(got.err, oncehttp.ErrOutcomeUnknown) {
			t.Error(got.err)
		}
	})
}

// TestTurnEndsWithItsCall: an answer that is final, and that the API lets be asked for again, ends a call whose limiter takes long before that. Nobody takes
// the turn, and the wait for it ends.
func TestTurnEndsWithItsCall(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, j, _ persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Header: "X-Should-Retry: true"}}}
		limiter := &endedWaits{}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter), clienttest.WithProfile("x", func(p *profile.Profile) {
			p.ShouldRetry = profile.ShouldRetry{Header: "X-Should-Retry", Yes: "true", No: "false"}
		})))
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if synctest.Wait(); err != nil || resp.StatusCode != 402 || w.Count() != 1 || limiter.begun.Load() != 2 || limiter.ended.Load() != 2 {
			t.Errorf("%v, %d sends, %d waits, of which %d have ended; want a 402 after one send, and both ended", err, w.Count(), limiter.begun.Load(), limiter.ended.Load())
		}
	})
}

// endedWaits is a limiter that lets one request go out, and counts the waits that have ended.
type endedWaits struct{ begun, ended atomic.Int32 }

func (e *endedWaits) Wait(ctx context.Context) error {
	defer e.ended.Add(1)
	if e.begun.Add(1) == 1 {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}
