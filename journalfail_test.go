package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

var errDisk = errors.New("no space left on device")

func fails(err error) func() error { return func() error { return err } }

// TestBeginFails: what is not in the journal is not sent.
func TestBeginFails(t *testing.T) {
	t.Parallel()
	uncertain := fmt.Errorf("%w: fsync", persist.ErrUncertain)
	rows := []struct {
		name   string
		break_ func(*faulty)
		is     error
	}{
		{"not written", func(j *faulty) { j.begin = fails(errDisk) }, oncehttp.ErrNoEffect},
		{"in doubt, not written", func(j *faulty) { j.begin = fails(uncertain) }, oncehttp.ErrOutcomeUnknown},
		{"in doubt, written", func(j *faulty) { j.begun = fails(uncertain) }, oncehttp.ErrOutcomeUnknown},
		{"no look at what stands", func(j *faulty) { j.begin, j.get = fails(errDisk), fails(errDisk) }, oncehttp.ErrOutcomeUnknown},
	}
	for _, r := range rows {
		for _, key := range []oncehttp.Key{"k", ""} {
			t.Run(r.name+string(key), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					w := &wire{replies: []reply{{status: 201}}}
					j := &faulty{Journal: memory.New()}
					c, _ := newClient(t, w, on(j))
					r.break_(j)
					is := r.is
					do := func() error { _, err := c.DoKey(post(t, "{}"), key); return err }
					if key == "" { // a generated key cannot stand from before
						do = func() error { _, err := c.Do(post(t, "{}")); return err }
						if j.get != nil {
							is = oncehttp.ErrNoEffect
						}
					}
					err := do()
					if exactlyOne(t, err); !errors.Is(err, is) || w.count() != 0 || oncehttp.Running(c) != 0 {
						t.Errorf("%v after %d sends, want %v after none", err, w.count(), is)
					}
					var e *oncehttp.Error
					if errors.Is(err, persist.ErrUncertain) && (!errors.As(err, &e) || e.Key == "") {
						t.Errorf("%v: want the key, whose record may stand", err)
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
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}}}
		j := &faulty{Journal: memory.New()}
		c, _ := newClient(t, w, on(j, oneAttempt))
		_, _ = c.DoKey(post(t, "{}"), "k")
		j.begin = fails(errDisk)
		_, err := c.DoKey(post(t, "{}"), "k")
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk) || w.count() != 1 {
			t.Errorf("%v after %d sends", err, w.count())
		}
		if err := c.Enqueue(post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("Enqueue of it: %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for key, is := range map[oncehttp.Key]error{"k": oncehttp.ErrOutcomeUnknown, "new": oncehttp.ErrNoEffect} {
			_, err := c.DoKey(post(t, "{}").WithContext(ended), key)
			if exactlyOne(t, err); !errors.Is(err, is) || !errors.Is(err, context.Canceled) {
				t.Errorf("with a context that has ended, %s: %v", key, err)
			}
			j.begin = nil
			err = c.Enqueue(post(t, "{}").WithContext(ended), key)
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
	bubble(t, func(t *testing.T) {
		j := &faulty{Journal: memory.New()}
		j.begin = once(func() error { time.Sleep(time.Second); return nil })
		c, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, on(j, oneAttempt))
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.DoKey(post(t, "{}"), "k") })
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.DoKey(post(t, "{}").WithContext(ended), "k")
		for _, err := range []error{err, c.Enqueue(post(t, "{}").WithContext(ended), "k")} {
			if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrInFlight) {
				t.Errorf("%v, want ErrOutcomeUnknown", err)
			}
		}
		wg.Wait()
	})
}

// TestForgetFails: what could not be taken back may be sent by a Resume.
func TestForgetFails(t *testing.T) {
	t.Parallel()
	for _, r := range [][]reply{{{refused: true}}, {{status: 403}}} {
		bubble(t, func(t *testing.T) {
			w := &wire{replies: r}
			j := &faulty{Journal: memory.New(), forget: fails(errDisk)}
			c, _ := newClient(t, w, on(j))
			_, err := c.DoKey(post(t, "{}"), "k")
			if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk) {
				t.Errorf("%v, want ErrOutcomeUnknown", err)
			}
			if rec := lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent {
				t.Errorf("record %v", rec.State)
			}
		})
	}
}

// TestFinishFails: the answer is the caller's all the same, and the same key finds
// it again.
func TestFinishFails(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, inner persist.Journal) {
		w := &wire{replies: []reply{{status: 201, body: "paid"}}}
		j := &faulty{Journal: inner, finish: fails(errDisk)}
		log := &logged{}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Logger = log.logger() }))
		resp, err := c.DoKey(post(t, "{}"), "k")
		if err != nil || read(t, resp) != "paid" || oncehttp.ResultOf(resp).Outcome != oncehttp.OutcomeConfirmed {
			t.Fatalf("%v", err)
		}
		if rec := lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent || log.lines() != 1 {
			t.Errorf("record %v, maybe sent %v, %d lines logged", rec.State, rec.MaybeSent, log.lines())
		}
		j.finish = nil
		if resp, err = c.DoKey(post(t, "{}"), "k"); err != nil || read(t, resp) != "paid" || w.keys()["k"] != 2 {
			t.Errorf("again: %v", err)
		}
		if rec := lookup(t, c, "k"); rec.State != persist.StateConfirmed {
			t.Errorf("record %v", rec.State)
		}
	})
}

// TestFinishTooLate: somebody was faster with another end. The answer is returned,
// and the log tells how the record stands.
func TestFinishTooLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		inner := memory.New()
		w := &wire{replies: []reply{{status: 201, body: "paid"}}}
		log := &logged{}
		j := &faulty{Journal: inner}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Logger = log.logger() }))
		j.finish = once(func() error {
			rec, err := inner.Get(t.Context(), persist.ID{Key: "k"})
			if err != nil {
				return err
			}
			rec.State, rec.Finished = persist.StateAbandoned, time.Now()
			return inner.Finish(t.Context(), rec)
		})
		resp, err := c.DoKey(post(t, "{}"), "k")
		if err != nil || read(t, resp) != "paid" {
			t.Errorf("%v", err)
		}
		if rec := lookup(t, c, "k"); rec.State != persist.StateAbandoned || !log.has("it is abandoned") {
			t.Errorf("record %v, log %v", rec.State, log)
		}
	})
}

// TestUpdateFails: before the first send of an enqueued operation nothing is sent;
// after a send the record stays in doubt, as it stood.
func TestUpdateFails(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, inner persist.Journal) {
		w := &wire{replies: []reply{{err: errLost}}}
		j := &faulty{Journal: inner, update: fails(errDisk)}
		c, _ := newClient(t, w, on(j, oneAttempt))
		enqueue(t, c, 1)
		for _, err := range []error{resume(t, c)["k0"].err, func() error { _, err := c.DoKey(post(t, `{"n":0}`), "k0"); return err }()} {
			if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk) || w.count() != 0 {
				t.Errorf("%v after %d sends, want none", err, w.count())
			}
		}
		_, err := c.DoKey(post(t, "{}"), "k")
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 1 {
			t.Errorf("%v after %d sends", err, w.count())
		}
		if rec := lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent {
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
			bubble(t, func(t *testing.T) {
				inner := memory.New()
				w := &wire{replies: []reply{{status: 201, body: "now"}}}
				j := &faulty{Journal: inner}
				c, _ := newClient(t, w, on(j))
				enqueue(t, c, 1)
				j.begun = once(func() error {
					rec, err := inner.Get(t.Context(), persist.ID{Key: "k0"})
					if r.change(&rec); rec.State.Final() {
						return errors.Join(err, inner.Finish(t.Context(), rec))
					}
					_, err2 := inner.Update(t.Context(), rec)
					return errors.Join(err, err2)
				})
				resp, err := c.DoKey(post(t, `{"n":0}`), "k0")
				if w.count() != r.sends || (r.is == nil) != (err == nil) || err == nil && read(t, resp) != r.body || err != nil && !errors.Is(err, r.is) {
					t.Errorf("%v after %d sends", err, w.count())
				}
			})
		})
	}
}

// TestListFails: without a look at what stands unresolved nothing is sent without a
// key.
func TestListFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}}}
		j := &faulty{Journal: memory.New(), list: fails(errDisk)}
		c, _ := newClient(t, w, on(j))
		_, err := c.Do(post(t, "{}"))
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk) || w.count() != 0 {
			t.Errorf("%v after %d sends; want ErrOutcomeUnknown, as the same request may stand", err, w.count())
		}
		var e *oncehttp.Error
		for _, err := range c.Resume(t.Context()) {
			if !errors.Is(err, errDisk) || errors.As(err, &e) {
				t.Errorf("Resume: %v, want the journal's error, which ends the pass", err)
			}
		}
		j.list = nil
		if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// TestRunRecoversSoon: a journal that is back after a few seconds is not waited for much longer.
func TestRunRecoversSoon(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &faulty{Journal: memory.New()}
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, on(j))
		enqueue(t, c, 1)
		for range 2 { // the second outage is as short as the first
			back := time.Now().Add(5 * time.Second)
			j.list = func() error {
				if time.Now().Before(back) {
					return errDisk
				}
				return nil
			}
			before := w.count()
			stop := running(t, c)
			time.Sleep(9 * time.Second) // 1, 3 and 7 seconds after the first failure
			if n := w.count(); n != before+1 {
				t.Errorf("%d sends four seconds after the journal was back, want 1", n-before)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			j.list = nil
			if err := c.Enqueue(post(t, "{}"), "again"); err != nil {
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
		bubble(t, func(t *testing.T) {
			store := memory.New()
			late := &faulty{Journal: store, list: func() error { time.Sleep(10 * time.Second); return errDisk }}
			var j persist.Journal = late
			if shared {
				j = &struct {
					*faulty
					persist.Claimer
				}{late, store}
			}
			c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, on(j))
			began := time.Now()
			var calls sync.WaitGroup
			for i := range 10 {
				calls.Go(func() {
					if _, err := c.Do(post(t, fmt.Sprint(i))); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk) {
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
	bubble(t, func(t *testing.T) {
		var heard events
		j := &faulty{Journal: memory.New()}
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Observe = heard.observe }))
		enqueue(t, c, 1)
		var mu sync.Mutex
		lost := errDisk
		j.list = func() error {
			mu.Lock()
			defer mu.Unlock()
			return lost
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		time.Sleep(10 * time.Minute)
		if n := len(heard.of(oncehttp.EventBlocked)); n < 5 || n > 20 || w.count() != 0 {
			t.Errorf("%d events, %d sends while no listing succeeds", n, w.count())
		}
		mu.Lock()
		lost = nil
		mu.Unlock()
		time.Sleep(2 * time.Minute)
		if w.count() != 1 {
			t.Errorf("%d sends, want it to go on", w.count())
		}
		mu.Lock()
		lost = persist.ErrUncertain
		mu.Unlock()
		if err := <-ended; !errors.Is(err, persist.ErrUncertain) {
			t.Errorf("Run: %v, want it ended", err)
		}
	})
}
