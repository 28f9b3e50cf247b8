// Package journalfail_test holds what is said and done where the journal fails: nothing is said before it is durable, and nothing
// is forgotten that may appear.
package journalfail_test

import (
	"context"
	"errors"
	"fmt"
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
)

// TestBeginFails: what is not in the journal is not sent.
func TestBeginFails(t *testing.T) {
	t.Parallel()
	uncertain := fmt.Errorf("%w: fsync", persist.ErrUncertain)
	rows := []struct {
		name   string
		break_ func(*journaltest.Faulty)
		is     error
	}{
		{"not written", func(j *journaltest.Faulty) { j.OnBegin = journaltest.Fails(journaltest.ErrDisk) }, oncehttp.ErrNoEffect},
		{"in doubt, not written", func(j *journaltest.Faulty) { j.OnBegin = journaltest.Fails(uncertain) }, oncehttp.ErrOutcomeUnknown},
		{"in doubt, written", func(j *journaltest.Faulty) { j.OnBegun = journaltest.Fails(uncertain) }, oncehttp.ErrOutcomeUnknown},
		{"no look at what stands", func(j *journaltest.Faulty) {
			j.OnBegin, j.OnGet = journaltest.Fails(journaltest.ErrDisk), journaltest.Fails(journaltest.ErrDisk)
		}, oncehttp.ErrOutcomeUnknown},
	}
	for _, r := range rows {
		for _, key := range []oncehttp.Key{"k", ""} {
			t.Run(r.name+string(key), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					j := &journaltest.Faulty{Journal: memory.New()}
					c, _ := clienttest.New(t, w, clienttest.On(j))
					r.break_(j)
					is := r.is
					do := func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), key); return err }
					if key == "" { // a generated key cannot stand from before
						do = func() error { _, err := c.Do(clienttest.Post(t, "{}")); return err }
						if j.OnGet != nil {
							is = oncehttp.ErrNoEffect
						}
					}
					err := do()
					if clienttest.ExactlyOne(t, err); !errors.Is(err, is) || w.Count() != 0 {
						t.Errorf("%v after %d sends, want %v after none", err, w.Count(), is)
					}
					var e *oncehttp.Error
					if errors.Is(err, persist.ErrUncertain) && (!errors.As(err, &e) || e.Key == "") {
						t.Errorf("%v: want the key, whose record may stand", err)
					}
					j.OnBegin, j.OnBegun, j.OnGet = nil, nil, nil
					if err := do(); err != nil && errors.Is(is, oncehttp.ErrNoEffect) { // and none waits for ever
						t.Errorf("once the journal takes it: %v", err)
					}
				})
			})
		}
	}
}

// TestBeginFailsOverWhatStands: a key that stands is in doubt as before, whether
// or not this call could begin.
func TestBeginFailsOverWhatStands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		j := &journaltest.Faulty{Journal: memory.New()}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		j.OnBegin = journaltest.Fails(journaltest.ErrDisk)
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) || w.Count() != 1 {
			t.Errorf("%v after %d sends", err, w.Count())
		}
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("Enqueue of it: %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for key, is := range map[oncehttp.Key]error{"k": oncehttp.ErrOutcomeUnknown, "new": oncehttp.ErrNoEffect} {
			_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ended), key)
			if clienttest.ExactlyOne(t, err); !errors.Is(err, is) || !errors.Is(err, context.Canceled) {
				t.Errorf("with a context that has ended, %s: %v", key, err)
			}
			j.OnBegin = nil
			err = c.Enqueue(clienttest.Post(t, "{}").WithContext(ended), key)
			if key == "new" && (!errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, context.Canceled)) || key == "k" && errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("Enqueue with a context that has ended, %s: %v", key, err)
			}
		}
	})
}

// TestEndedBesideACall: another call with the key is about to begin it, so that
// this one cannot say that nothing is pending.
func TestEndedBesideACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Faulty{Journal: memory.New()}
		j.OnBegin = journaltest.Once(func() error { time.Sleep(time.Second); return nil })
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.DoKey(clienttest.Post(t, "{}"), "k") })
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ended), "k")
		for _, err := range []error{err, c.Enqueue(clienttest.Post(t, "{}").WithContext(ended), "k")} {
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrInFlight) {
				t.Errorf("%v, want ErrOutcomeUnknown", err)
			}
		}
		wg.Wait()
	})
}

// TestForgetFails: what could not be taken back may be sent by a Resume.
func TestForgetFails(t *testing.T) {
	t.Parallel()
	for _, r := range [][]wiretest.Reply{{{Refused: true}}, {{Status: 403}}} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: r}
			j := &journaltest.Faulty{Journal: memory.New(), OnForget: journaltest.Fails(journaltest.ErrDisk)}
			c, _ := clienttest.New(t, w, clienttest.On(j))
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) {
				t.Errorf("%v, want ErrOutcomeUnknown", err)
			}
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent {
				t.Errorf("record %v", rec.State)
			}
		})
	}
}

// TestFinishFails: the answer is the caller's all the same, and the same key finds
// it again.
func TestFinishFails(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, inner persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}
		j := &journaltest.Faulty{Journal: inner, OnFinish: journaltest.Fails(journaltest.ErrDisk)}
		log := &clienttest.Log{}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Logger = log.Logger() }))
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err != nil || clienttest.Read(t, resp) != "paid" || oncehttp.ResultOf(resp).Outcome != oncehttp.OutcomeConfirmed {
			t.Fatalf("%v", err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent || log.Lines() != 1 {
			t.Errorf("record %v, maybe sent %v, %d lines logged", rec.State, rec.MaybeSent, log.Lines())
		}
		j.OnFinish = nil
		if resp, err = c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || clienttest.Read(t, resp) != "paid" || w.Keys()["k"] != 2 {
			t.Errorf("again: %v", err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
			t.Errorf("record %v", rec.State)
		}
	})
}

// TestFinishTooLate: somebody was faster with another end. The answer is returned,
// and the log tells how the record stands.
func TestFinishTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}
		log := &clienttest.Log{}
		j := &journaltest.Faulty{Journal: inner}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Logger = log.Logger() }))
		j.OnFinish = journaltest.Once(func() error {
			rec, err := inner.Get(t.Context(), persist.ID{Key: "k"})
			if err != nil {
				return err
			}
			rec.State, rec.Finished = persist.StateAbandoned, time.Now()
			return inner.Finish(t.Context(), rec)
		})
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err != nil || clienttest.Read(t, resp) != "paid" {
			t.Errorf("%v", err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateAbandoned || !log.Has("it is abandoned") {
			t.Errorf("record %v, log %v", rec.State, log)
		}
	})
}

// TestUpdateFails: before the first send of an enqueued operation nothing is sent;
// after a send the record stays in doubt, as it stood.
func TestUpdateFails(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, inner persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		j := &journaltest.Faulty{Journal: inner, OnUpdate: journaltest.Fails(journaltest.ErrDisk)}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		clienttest.Enqueue(t, c, 1)
		for _, err := range []error{clienttest.Resume(t, c)["k0"].Err, func() error { _, err := c.DoKey(clienttest.Post(t, `{"n":0}`), "k0"); return err }()} {
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) || w.Count() != 0 {
				t.Errorf("%v after %d sends, want none", err, w.Count())
			}
		}
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 {
			t.Errorf("%v after %d sends", err, w.Count())
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent {
			t.Errorf("record %v", rec.State)
		}
	})
}

// TestOvertaken: another process changes the record between this call's look at it
// and its own mark. The call looks again.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		change func(rec *persist.Record)
		body   string
		sends  int
		is     error
	}{
		"a lease came and went": {func(*persist.Record) {}, "now", 1, nil},
		"confirmed": {func(rec *persist.Record) {
			rec.State, rec.Finished, rec.Answer = persist.StateConfirmed, time.Now(), &persist.Answer{Status: 201, Body: []byte("theirs")}
		}, "theirs", 0, nil},
		"abandoned": {func(rec *persist.Record) { rec.State, rec.Finished = persist.StateAbandoned, time.Now() }, "", 0, oncehttp.ErrAbandoned},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "now"}}}
				j := &journaltest.Faulty{Journal: inner}
				c, _ := clienttest.New(t, w, clienttest.On(j))
				clienttest.Enqueue(t, c, 1)
				j.OnBegun = journaltest.Once(func() error {
					rec, err := inner.Get(t.Context(), persist.ID{Key: "k0"})
					if r.change(&rec); rec.State.Final() {
						return errors.Join(err, inner.Finish(t.Context(), rec))
					}
					_, err2 := inner.Update(t.Context(), rec)
					return errors.Join(err, err2)
				})
				resp, err := c.DoKey(clienttest.Post(t, `{"n":0}`), "k0")
				if w.Count() != r.sends || (r.is == nil) != (err == nil) || err == nil && clienttest.Read(t, resp) != r.body || err != nil && !errors.Is(err, r.is) {
					t.Errorf("%v after %d sends", err, w.Count())
				}
			})
		})
	}
}

// TestListFails: without a look at what stands unresolved nothing is sent without a
// key.
func TestListFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		j := &journaltest.Faulty{Journal: memory.New(), OnList: journaltest.Fails(journaltest.ErrDisk)}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		_, err := c.Do(clienttest.Post(t, "{}"))
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) || w.Count() != 0 {
			t.Errorf("%v after %d sends; want ErrOutcomeUnknown, as the same request may stand", err, w.Count())
		}
		var e *oncehttp.Error
		for _, err := range c.Resume(t.Context()) {
			if !errors.Is(err, journaltest.ErrDisk) || errors.As(err, &e) {
				t.Errorf("Resume: %v, want the journal's error, which ends the pass", err)
			}
		}
		j.OnList = nil
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// TestRunRecoversSoon: a journal that is back after a few seconds is not waited for much longer.
func TestRunRecoversSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Faulty{Journal: memory.New()}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		clienttest.Enqueue(t, c, 1)
		for range 2 { // the second outage is as short as the first
			back := time.Now().Add(5 * time.Second)
			j.OnList = func() error {
				if time.Now().Before(back) {
					return journaltest.ErrDisk
				}
				return nil
			}
			before := w.Count()
			stop := clienttest.Run(t, c)
			time.Sleep(9 * time.Second) // 1, 3 and 7 seconds after the first failure
			if n := w.Count(); n != before+1 {
				t.Errorf("%d sends four seconds after the journal was back, want 1", n-before)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			j.OnList = nil
			if err := c.Enqueue(clienttest.Post(t, "{}"), "again"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestKeylessCallsFailTogether: where the journal answers late, calls without a key wait for it together, not one after the other:
// for the look that is under way, and for the next at most.
func TestKeylessCallsFailTogether(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			late := &journaltest.Faulty{Journal: store, OnList: func() error { time.Sleep(10 * time.Second); return journaltest.ErrDisk }}
			var j persist.Journal = late
			if shared {
				j = &struct {
					*journaltest.Faulty
					persist.Claimer
				}{late, store}
			}
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j))
			began := time.Now()
			var calls sync.WaitGroup
			for i := range 10 {
				calls.Go(func() {
					if _, err := c.Do(clienttest.Post(t, fmt.Sprint(i))); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) {
						t.Errorf("%v, want ErrOutcomeUnknown and the journal's error", err)
					}
				})
			}
			calls.Wait()
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("10 calls took %v, want 20s at most", took)
			}
		})
	}
}

// TestRunGoesOnPastTheJournal: a listing that fails is heard, and made again; only a
// journal that takes nothing more ends Run.
func TestRunGoesOnPastTheJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard clienttest.Events
		j := &journaltest.Faulty{Journal: memory.New()}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Observe = heard.Observe }))
		clienttest.Enqueue(t, c, 1)
		var mu sync.Mutex
		lost := journaltest.ErrDisk
		j.OnList = func() error {
			mu.Lock()
			defer mu.Unlock()
			return lost
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		time.Sleep(10 * time.Minute)
		if n := len(heard.Of(oncehttp.EventBlocked)); n < 5 || n > 20 || w.Count() != 0 {
			t.Errorf("%d events, %d sends while no listing succeeds", n, w.Count())
		}
		mu.Lock()
		lost = nil
		mu.Unlock()
		time.Sleep(2 * time.Minute)
		if w.Count() != 1 {
			t.Errorf("%d sends, want it to go on", w.Count())
		}
		mu.Lock()
		lost = persist.ErrUncertain
		mu.Unlock()
		if err := <-ended; !errors.Is(err, persist.ErrUncertain) {
			t.Errorf("Run: %v, want it ended", err)
		}
	})
}
