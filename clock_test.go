package oncehttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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
)

// worker is a client of another process on the journal, whose own clock is off.
func worker(t *testing.T, j *memory.Journal, w *wiretest.Wire, off time.Duration, changes ...func(*oncehttp.Config)) *oncehttp.Client {
	t.Helper()
	c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), changes...))
	oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(off) })
	return c
}

// offs are clocks that differ by ten minutes, both ways.
var offs = [][2]time.Duration{{0, 10 * time.Minute}, {10 * time.Minute, 0}, {0, -10 * time.Minute}, {-5 * time.Minute, 5 * time.Minute}}

// TestClocksOfWorkers: workers whose clocks differ by ten minutes agree on when an operation was first sent, when it is
// due, and who has it; none holds it because of its own clock.
func TestClocksOfWorkers(t *testing.T) {
	t.Parallel()
	for _, off := range offs {
		synctest.Test(t, func(t *testing.T) {
			j := memory.New()
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Delay: time.Second}, {Status: 201, Delay: time.Second}}}
			one, two := worker(t, j, w, off[0], clienttest.OneAttempt), worker(t, j, w, off[1], clienttest.OneAttempt)
			start := time.Now()
			if err := one.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			done := make(chan map[oncehttp.Key]clienttest.Resumed)
			go func() { done <- clienttest.Resume(t, one) }()
			time.Sleep(time.Second / 2)
			if got := clienttest.Resume(t, two); len(got) != 0 {
				t.Errorf("clocks %v: while one has it, two resumed %v", off, got)
			}
			<-done
			rec := clienttest.Lookup(t, two, "k")
			if !rec.FirstSent.Equal(start) || !rec.Created.Equal(start) || !rec.SendBefore.Equal(start.Add(24*time.Hour)) || rec.State != persist.StatePending {
				t.Errorf("clocks %v: begun at %v, first sent at %v, state %v; it is %v", off, rec.Created, rec.FirstSent, rec.State, start)
			}
			wait := time.Until(rec.NextAttempt)
			if wait <= 0 || wait > time.Minute {
				t.Fatalf("clocks %v: due in %v", off, wait)
			}
			time.Sleep(wait - 1)
			if got := clienttest.Resume(t, two); len(got) != 0 {
				t.Errorf("clocks %v: before it was due, two resumed %v", off, got)
			}
			time.Sleep(time.Nanosecond)
			if got := clienttest.Resume(t, two); got["k"].Err != nil || w.Count() != 2 {
				t.Errorf("clocks %v: when it was due, two resumed %v, after %d sends", off, got, w.Count())
			}
			if rec := clienttest.Lookup(t, one, "k"); rec.State != persist.StateConfirmed || !rec.Finished.Equal(time.Now()) {
				t.Errorf("clocks %v: it is %v since %v", off, rec.State, rec.Finished)
			}
		})
	}
}

// TestClockIsTold: a worker whose clock is off says so once, and one whose clock is right does not.
func TestClockIsTold(t *testing.T) {
	t.Parallel()
	for off, want := range map[time.Duration]int{0: 0, 50 * time.Second: 0, 10 * time.Minute: 1, -10 * time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			c := worker(t, memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, off, func(cfg *oncehttp.Config) {
				cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
			})
			for _, key := range []oncehttp.Key{"a", "b", "c"} {
				if _, err := c.DoKey(clienttest.Post(t, "{}"), key); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Minute)
			}
			if n := strings.Count(out.String(), " off=10m0s"); n != want || want == 0 && out.Len() > 0 {
				t.Errorf("a clock that is off by %v was told %d times, want %d: %s", off, n, want, &out)
			}
		})
	}
}

// TestClockIsSetMeanwhile: where the own clock is set between two operations, the second is stamped by the journal's.
func TestClockIsSetMeanwhile(t *testing.T) {
	t.Parallel()
	for _, set := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, j := clienttest.New(t, w, nil)
			off := time.Duration(0)
			oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(off) }) // the monotonic clock goes on
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "before"); err != nil {
				t.Fatal(err)
			}
			off = set
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "after"); err != nil {
				t.Fatal(err)
			}
			rec, err := j.Get(context.Background(), persist.ID{Account: persist.Account(""), Key: "after"})
			if err != nil || !rec.FirstSent.Equal(time.Now()) {
				t.Errorf("set by %v: first sent at %v, error %v; it is %v", set, rec.FirstSent, err, time.Now())
			}
		})
	}
}

// TestClockJumps: the own clock is set forward for a moment, or the machine sleeps, at each point of an operation's life. The
// journal's clock counts all the same: what is due stays due, and nothing is held as expired.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{12 * time.Hour, 48 * time.Hour, -12 * time.Hour, 9 * 365 * 24 * time.Hour} {
		for name, r := range map[string]struct {
			after   time.Duration // from the beginning of the pass
			again   time.Duration // the wait before the next pass, which may find the clock right again
			replies []wiretest.Reply
			sends   int
			state   persist.State
		}{
			"while an attempt runs":      {4 * time.Second, 2 * time.Minute, []wiretest.Reply{{Status: 503, Delay: 5 * time.Second}, {Status: 201}}, 2, persist.StateConfirmed},
			"while one is refused":       {4 * time.Second, 2 * time.Minute, []wiretest.Reply{{Status: 429, Delay: 5 * time.Second}, {Status: 201}}, 2, persist.StateConfirmed},
			"while no connection is had": {4 * time.Second, 2 * time.Minute, []wiretest.Reply{{Refused: true, Delay: 5 * time.Second}, {Status: 201}}, 2, persist.StateConfirmed},
			"while the answer comes":     {4 * time.Second, 0, []wiretest.Reply{{Status: 201, Delay: 5 * time.Second}}, 1, persist.StateConfirmed},
		} {
			t.Run(fmt.Sprint(name, " by ", jump), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: r.replies}
					c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(memory.New()), clienttest.OneAttempt))
					var off atomic.Int64
					oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
					if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
						t.Fatal(err)
					}
					time.AfterFunc(r.after, func() { off.Store(int64(jump)) })
					time.AfterFunc(r.after+2*time.Second, func() { off.Store(0) })
					clienttest.Resume(t, c)
					if rec := clienttest.Lookup(t, c, "k"); time.Until(rec.NextAttempt) > time.Minute || rec.Finished.After(time.Now()) {
						t.Errorf("due in %v, finished at %v; it is %v", time.Until(rec.NextAttempt), rec.Finished, time.Now())
					}
					if r.again > 0 {
						time.Sleep(r.again)
						clienttest.Resume(t, c)
					}
					if rec := clienttest.Lookup(t, c, "k"); rec.State != r.state || w.Count() != r.sends {
						t.Errorf("%v for %q, %d sends", rec.State, rec.HoldReason, w.Count())
					}
				})
			})
		}
	}
}

// TestClockJumpsBeforeASend: the own clock is set forward between two attempts, or after the pass began: the journal is asked
// before the operation is held as expired, and where it cannot be asked, the operation is left as it is.
func TestClockJumpsBeforeASend(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		for name, at := range map[string]oncehttp.EventKind{"before the first": oncehttp.EventBegun, "between two": oncehttp.EventWaiting} {
			t.Run(fmt.Sprint(name, " ", answers), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 429}, {Status: 201}}}
					j := memory.New()
					mute := &muteClock{Claimer: j}
					var off atomic.Int64
					c, _ := clienttest.New(t, w, clienttest.On(&journaltest.Leasing{Journal: j, Claimer: mute}, func(cfg *oncehttp.Config) {
						cfg.Observe = func(_ context.Context, e oncehttp.Event) {
							if e.Kind == at {
								off.Store(int64(48 * time.Hour))
								mute.mute.Store(!answers)
							}
						}
					}))
					oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
					_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					if answers != (err == nil) {
						t.Fatalf("%v", err)
					}
					if !answers {
						if clienttest.ExactlyOne(t, err); !errors.Is(err, errMute) {
							t.Errorf("%v, want that the journal does not tell the time", err)
						}
						if rec, err := j.Get(t.Context(), persist.ID{Account: persist.Account(""), Key: "k"}); err == nil && rec.State != persist.StatePending {
							t.Errorf("%v for %q", rec.State, rec.HoldReason)
						}
					}
				})
			})
		}
	}
}

// TestClockJumpsInAPass: the own clock is set forward when a pass has claimed an operation that was never sent: it is sent, and
// not held because the time for its first send seems to be over.
func TestClockJumpsInAPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		j := memory.New()
		var off atomic.Int64
		f := &journaltest.Faulty{Journal: j, OnGet: func() error { off.Store(int64(48 * time.Hour)); return nil }} // the pass reads what it has claimed
		c, _ := clienttest.New(t, w, clienttest.On(&journaltest.Leasing{Journal: f, Claimer: j}))
		oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		if got := clienttest.Resume(t, c)["k"]; got.Err != nil || w.Count() != 1 || off.Load() == 0 {
			t.Errorf("%v, %d sends", got.Err, w.Count())
		}
		if rec := clienttest.Lookup(t, c, "k"); !rec.FirstSent.Equal(time.Now()) || !rec.Finished.Equal(time.Now()) {
			t.Errorf("first sent at %v, finished at %v; it is %v", rec.FirstSent, rec.Finished, time.Now())
		}
	})
}

// TestClockJumpsInAWait: the caller leaves in a wait in which the own clock was set forward; the next attempt is due soon.
func TestClockJumpsInAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var off atomic.Int64
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}}}, clienttest.On(journaltest.NewLeasing(memory.New()), func(cfg *oncehttp.Config) {
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventWaiting {
					off.Store(int64(48 * time.Hour))
					cancel()
				}
			}
		}))
		oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
		_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
		if rec := clienttest.Lookup(t, c, "k"); !errors.Is(err, context.Canceled) || time.Until(rec.NextAttempt) > time.Minute {
			t.Errorf("%v: due in %v", err, time.Until(rec.NextAttempt))
		}
	})
}

// TestClockDoesNotAnswer: of many calls that wait for a journal that does not tell the time, not each asks for itself.
func TestClockDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		mute := &muteClock{Claimer: j, delay: 10 * time.Second}
		mute.mute.Store(true)
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(&journaltest.Leasing{Journal: j, Claimer: mute}))
		start := time.Now()
		var calls sync.WaitGroup
		for i := range 64 {
			calls.Go(func() {
				_, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i)))
				if clienttest.ExactlyOne(t, err); !errors.Is(err, errMute) {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

var errMute = errors.New("no time today")

// muteClock is a journal that does not always tell the time.
type muteClock struct {
	persist.Claimer
	mute  atomic.Bool
	delay time.Duration
}

func (m *muteClock) Now(ctx context.Context) (time.Time, error) {
	if m.mute.Load() {
		time.Sleep(m.delay)
		return time.Time{}, errMute
	}
	return m.Claimer.Now(ctx)
}

func (m *muteClock) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	if m.mute.Load() {
		return nil, time.Time{}, errMute
	}
	return m.Claimer.Renew(ctx, owner, lease, ids)
}

// settingClock is a journal's clock. While it tells the time, somebody sets the clock of this machine.
type settingClock struct {
	persist.Claimer
	set func()
}

func (s settingClock) Now(ctx context.Context) (time.Time, error) {
	s.set()
	return s.Claimer.Now(ctx)
}

// TestClockIsSetDuringAReading: a reading of the journal's clock during which the own clock was set counts for nothing: nobody knows how much time has passed
// since. The journal is asked again, and what it is asked for goes on; where the clock is set each time, nothing is begun.
func TestClockIsSetDuringAReading(t *testing.T) {
	t.Parallel()
	for _, jumps := range []int64{1, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			j := memory.New()
			var off, asked atomic.Int64
			set := func() {
				if asked.Add(1) <= jumps {
					off.Add(int64(48 * time.Hour))
				}
			}
			c, _ := clienttest.New(t, w, clienttest.On(&journaltest.Leasing{Journal: j, Claimer: settingClock{j, set}}))
			oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
			err := c.Enqueue(clienttest.Post(t, "{}"), "k")
			if jumps > 1 {
				if err == nil || !strings.Contains(err.Error(), "clock") || w.Count() != 0 {
					t.Errorf("%v, %d sends; want an error that speaks of the clock", err, w.Count())
				}
				return
			}
			clienttest.Must(t, err)
			if rec := clienttest.Lookup(t, c, "k"); !rec.Created.Equal(time.Now()) {
				t.Errorf("begun at %v; it is %v", rec.Created, time.Now())
			}
			if got := clienttest.Resume(t, c)["k"]; got.Err != nil || w.Count() != 1 {
				t.Errorf("%v, %d sends", got.Err, w.Count())
			}
		})
	}
}

// jumpingSweeps is a journal. The clock of this machine is set after each part of a sweep.
type jumpingSweeps struct {
	*memory.Journal
	set func()
}

func (j jumpingSweeps) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	defer j.set()
	return j.Journal.Sweep(ctx, l)
}

// TestClockJumpsInASweep: the own clock is set forward between two parts of a sweep. Answers and keys whose time is not over stay. (Invariants 34 and 51.)
func TestClockJumpsInASweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, j := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Status: 201}}}, memory.New()
		var off atomic.Int64
		sweeps := jumpingSweeps{j, func() { off.Store(int64(48 * time.Hour)) }}
		c, _ := clienttest.New(t, w, clienttest.On(&journaltest.Leasing{Journal: sweeps, Claimer: j}))
		oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
		for _, key := range []oncehttp.Key{"old", "new"} {
			_, err := c.DoKey(clienttest.Post(t, "{}"), key)
			clienttest.Must(t, err)
			if key == "old" {
				time.Sleep(25 * time.Hour)
			}
		}
		if n, err := c.Sweep(t.Context()); n != 1 || err != nil || off.Load() == 0 {
			t.Errorf("%d were swept, %v; want the old one alone", n, err)
		}
		if rec := clienttest.Lookup(t, c, "new"); rec.Answer == nil || rec.Answer.BodyDropped {
			t.Errorf("the new one has the answer %+v", rec.Answer)
		}
	})
}
