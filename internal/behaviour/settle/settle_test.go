// Package settle_test holds the promises to people: their acts are bound to what they saw, and what they end stays ended.
// Config.Reconcile acts as a person.
package settle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestEndWhileItRuns: refused, whoever drives it, here or in another process, so
// that nobody is told "absent" of what is on the wire.
func TestEndWhileItRuns(t *testing.T) {
	t.Parallel()
	for name, end := range clienttest.Enders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := memory.New()
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Delay: time.Second, Header: "Retry-After: 5"}, {Status: 201, Delay: time.Second}}}
				c, _ := clienttest.New(t, w, clienttest.On(j))
				shared, _ := clienttest.New(t, w, clienttest.On(j))
				abroad, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j)))
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
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
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
					t.Errorf("record %v", rec.State)
				}
				err := end(t.Context(), c, "k")
				if !errors.Is(err, oncehttp.ErrFinal) || errors.Is(err, oncehttp.ErrInFlight) {
					t.Errorf("once confirmed: %v", err)
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
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
				if err := clienttest.Enders()[first](t.Context(), c, "k"); err != nil {
					t.Fatal(err)
				}
				before := clienttest.Lookup(t, c, "k")
				for second, end := range clienttest.Enders() {
					err := end(t.Context(), c, "k")
					if clienttest.ExactlyOne(t, err); !errors.Is(err, is) {
						t.Errorf("%s then: %v, want %v", second, err, is)
					}
				}
				time.Sleep(time.Hour)
				if got := clienttest.Resume(t, c); len(got) != 0 || w.Count() != 1 {
					t.Errorf("resumed %v", got)
				}
				if after := clienttest.Lookup(t, c, "k"); after.Revision != before.Revision {
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
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		before := clienttest.Lookup(t, c, "k")
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
		if after := clienttest.Lookup(t, c, "k"); after.Revision != before.Revision || after.State != persist.StatePending {
			t.Errorf("it became %v", after.State)
		}
		clienttest.Free(t, c, "k")
	})
}

// TestSettleIsDurable on return: a person was told that it is done.
func TestSettleIsDurable(t *testing.T) {
	t.Parallel()
	for name, end := range clienttest.Enders() {
		path := filepath.Join(testrun.Dir(t), name+".db")
		synctest.Test(t, func(t *testing.T) {
			j, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			flushed := 0
			counted := &flushes{Journal: j, flush: func(ctx context.Context) error { flushed++; return j.Flush(ctx) }}
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(counted, clienttest.OneAttempt))
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
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
		synctest.Test(t, func(t *testing.T) {
			flushed := 0
			j := &flushes{Journal: memory.New(), flush: func(context.Context) error { flushed++; return nil }}
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
			time.Sleep(r.after)
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || flushed != r.flush {
				t.Errorf("after %v: %v, flushed %d times, want %d", r.after, err, flushed, r.flush)
			}
		})
	}
}

// TestPending lists what is unfinished, oldest first, and Lookup knows it all.
func TestPending(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Status: 301}, {Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		for _, key := range []oncehttp.Key{"confirmed", "held", "lost", "confirmed2"} {
			_, _ = c.DoKey(clienttest.Post(t, "{}"), key)
		}
		clienttest.Enqueue(t, c, 1)
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
		if rec := clienttest.Lookup(t, c, "confirmed"); rec.State != persist.StateConfirmed || rec.Answer.Status != 201 {
			t.Errorf("%+v", rec)
		}
	})
}

// TestSettledAnswerWithoutBody: an answer whose body was not kept is not replayed as
// a whole one.
func TestSettledAnswerWithoutBody(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		err := c.Settle(t.Context(), "k", oncehttp.Resolution{
			Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 201, BodyDropped: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err == nil {
			t.Fatalf("a response %d with the body %q, which nobody knows", resp.StatusCode, clienttest.Read(t, resp))
		}
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrAnswerGone) || !errors.Is(err, oncehttp.ErrSettled) || w.Count() != 1 {
			t.Errorf("%v after %d sends, want ErrAnswerGone", err, w.Count())
		}
	})
}

// TestEndOfWhatIsFinal: Settle and Abandon say how an operation ended that is final
// already, and "outcome unknown" only where it is.
func TestEndOfWhatIsFinal(t *testing.T) {
	t.Parallel()
	settle := func(e persist.Effect) func(*testing.T, *oncehttp.Client) error {
		return func(t *testing.T, c *oncehttp.Client) error {
			return clienttest.SettleAsSeen(c, t.Context(), "k", oncehttp.Resolution{Effect: e})
		}
	}
	rows := map[string]struct {
		reply wiretest.Reply
		end   func(*testing.T, *oncehttp.Client) error
		state persist.State
		is    []error
	}{
		"confirmed":   {wiretest.Reply{Status: 201}, nil, persist.StateConfirmed, []error{oncehttp.ErrFinal}},
		"mismatched":  {wiretest.Mismatch(), nil, persist.StateMismatched, []error{oncehttp.ErrFinal, oncehttp.ErrKeyReused}},
		"it happened": {wiretest.Reply{Err: wiretest.ErrLost}, settle(oncehttp.EffectHappened), persist.StateSettled, []error{oncehttp.ErrFinal, oncehttp.ErrSettled}},
		"it did not":  {wiretest.Reply{Err: wiretest.ErrLost}, settle(oncehttp.EffectAbsent), persist.StateSettled, []error{oncehttp.ErrNoEffect, oncehttp.ErrSettled}},
		"given up": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) error { return c.Abandon(t.Context(), "k") },
			persist.StateAbandoned, []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrAbandoned}},
	}
	all := []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown, oncehttp.ErrSettled, oncehttp.ErrAbandoned, oncehttp.ErrKeyReused}
	for name, r := range rows {
		for end, f := range clienttest.Enders() {
			t.Run(name+" "+end, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}, clienttest.On(j, clienttest.OneAttempt))
					_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
					if r.end != nil {
						if err := r.end(t, c); err != nil {
							t.Fatal(err)
						}
					}
					err := f(t.Context(), c, "k")
					var e *oncehttp.Error
					if !errors.As(err, &e) || e.State != r.state || e.Key != "k" {
						t.Errorf("%v, want the key and the state %v", err, r.state)
					}
					for _, sentinel := range all {
						if errors.Is(err, sentinel) != slices.Contains(r.is, sentinel) {
							t.Errorf("%v matches %v: %v", err, sentinel, errors.Is(err, sentinel))
						}
					}
					if !strings.Contains(err.Error(), r.state.String()) || strings.Contains(err.Error(), "unknown") && r.state != persist.StateAbandoned {
						t.Errorf("it says %q", err)
					}
				})
			})
		}
	}
}

// TestEndPanics: a journal that panics is not taken for one that did it.
func TestEndPanics(t *testing.T) {
	t.Parallel()
	for name, end := range clienttest.Enders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := &journaltest.Faulty{Journal: memory.New()}
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
				j.OnFinish = func() error { panic("boom") }
				var err error
				caught := func() (v any) {
					defer func() { v = recover() }()
					err = end(t.Context(), c, "k")
					return nil
				}()
				if caught != "boom" {
					t.Errorf("caught %v, error %v", caught, err)
				}
				j.OnFinish = nil
				if err := end(t.Context(), c, "k"); err != nil {
					t.Errorf("again: %v", err)
				}
			})
		})
	}
}

// TestSettleChecksTheAnswer: what no server could have answered finally is not kept.
func TestSettleChecksTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, func(cfg *oncehttp.Config) {
			clienttest.OneAttempt(cfg)
			cfg.MaxResponseBytes = 10
		})
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		settle := func(a persist.Answer) error {
			return c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &a})
		}
		for _, status := range []int{0, -1, 100, 302, 500, 999} {
			if err := settle(persist.Answer{Status: status}); !errors.Is(err, oncehttp.ErrConfig) {
				t.Errorf("status %d: %v, want ErrConfig", status, err)
			}
		}
		if err := settle(persist.Answer{Status: 201, Body: make([]byte, 11)}); !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("a large body: %v, want ErrConfig", err)
		}
		if err := settle(persist.Answer{Status: 201, Body: make([]byte, 10)}); err != nil {
			t.Error(err)
		}
		if rec := clienttest.Lookup(t, c, "k"); !rec.NextAttempt.IsZero() {
			t.Errorf("it is final, and due at %v", rec.NextAttempt)
		}
	})
}

// TestToldAnswersKeepNoSecrets: an answer that an operator or Config.Reconcile gives is kept as one of the server's is:
// without credentials in its headers and in their URLs. What was given does not change.
func TestToldAnswersKeepNoSecrets(t *testing.T) {
	t.Parallel()
	told := func() *persist.Answer {
		return &persist.Answer{Status: 201, Body: []byte("found"), Header: http.Header{
			"Set-Cookie": {"session=SECRET"}, "X-Auth-Token": {"SECRET"}, "X-Mine": {"SECRET"}, "Location": {"https://u:SECRET@h/x?sig=SECRET"},
			"Operation-Location": {"https://h/op?access_token=SECRET"}, "Link": {"<https://h/n?page=2&sig=SECRET>; rel=next"}, "X-Id": {"7"},
		}}
	}
	for name, tell := range map[string]func(*testing.T, *oncehttp.Client, *persist.Answer){
		"Settle": func(t *testing.T, c *oncehttp.Client, a *persist.Answer) {
			if err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: a}); err != nil {
				t.Error(err)
			}
		},
		"Reconcile": func(t *testing.T, c *oncehttp.Client, _ *persist.Answer) {
			for res, err := range c.Resume(t.Context()) {
				if err != nil || res.Answer == nil || strings.Contains(fmt.Sprint(res.Answer.Header), "SECRET") || res.Answer.Header.Get("X-Id") != "7" {
					t.Errorf("%+v, %v", res.Answer, err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				given := told()
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}}}, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.SecretHeaders = []string{"X-Mine"}
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: given}, nil
					}
				}))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
				tell(t, c, given)
				if rec := clienttest.Lookup(t, c, "k"); rec.Answer == nil || strings.Contains(fmt.Sprint(rec.Answer.Header), "SECRET") || rec.Answer.Header.Get("X-Id") != "7" {
					t.Errorf("recorded %+v", rec.Answer)
				}
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if err != nil || strings.Contains(fmt.Sprint(resp.Header), "SECRET") || clienttest.Read(t, resp) != "found" {
					t.Errorf("answered %+v, %v", resp, err)
				}
				if !reflect.DeepEqual(given, told()) {
					t.Errorf("the caller's answer became %+v", given)
				}
			})
		})
	}
}
