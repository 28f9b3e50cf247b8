// Package lease_test holds that one process at a time sends an operation: leases, claims, and the marks of claims.
package lease_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestLeaseEnds: a process that died with a lease is not waited for for ever.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	for name, end := range clienttest.Enders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := memory.New()
				var left persist.Journal
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				w.Before = func(int, *http.Request) { left = journaltest.Survivors(t, j) }
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k") // killed within
				next, _ := clienttest.New(t, w, clienttest.On(left, clienttest.OneAttempt))
				sends := w.Count()
				_, err := next.DoKey(clienttest.Post(t, "{}"), "k")
				for _, err := range []error{err, end(t.Context(), next, "k")} {
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrInFlight) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != sends {
						t.Errorf("under a lease: %v", err)
					}
				}
				time.Sleep(6 * time.Minute)
				if err := end(t.Context(), next, "k"); err != nil {
					t.Errorf("after the lease: %v", err)
				}
			})
		})
	}
}

// TestLeaseOutlastsTheCall: no other process takes an operation whose lookups are under
// way, however long they take.
func TestLeaseOutlastsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		const slow = 9 * time.Minute
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 409, Body: wiretest.AlreadyDone, Delay: slow}, {Status: 503, Delay: slow}, {Status: 200, Body: `{"amount":1}`, Delay: slow}}}
		change := func(cfg *oncehttp.Config) {
			cfg.Profile = profile.GoCardless()
			cfg.Retry = oncehttp.Policy{MaxElapsed: time.Minute, AttemptTimeout: 10 * time.Minute, AnswerTimeout: 12 * time.Minute}
		}
		c, _ := clienttest.New(t, w, clienttest.On(j, change))
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), change))
		done := make(chan error)
		go func() { _, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k"); done <- err }()
		for range 26 {
			time.Sleep(time.Minute)
			for _, err := range other.Resume(t.Context()) {
				t.Errorf("another process took it: %v", err)
			}
		}
		if err := <-done; err != nil || w.Count() != 3 {
			t.Errorf("%v after %d sends, want 3", err, w.Count())
		}
	})
}

// elsewhere is a journal as another process sees it that has no leases.
type elsewhere struct {
	persist.Journal
	own persist.Attachment
}

func (e *elsewhere) Attach(create func() any) any { return e.own.Attach(create) }

// TestAdoptIsSeen: whoever began an operation does not forget it as never sent once
// another process goes on with it, also where the journal has no leases.
func TestAdoptIsSeen(t *testing.T) {
	t.Parallel()
	for _, reply := range []wiretest.Reply{{Refused: true, Delay: time.Second}, {Status: 403, Delay: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			j := memory.New()
			first, _ := clienttest.New(t, &wiretest.Wire{Replies: replies(reply)}, clienttest.On(&elsewhere{Journal: j}, clienttest.OneAttempt))
			w := &wiretest.Wire{Replies: replies(accepted(10 * time.Second))}
			second, _ := clienttest.New(t, w, clienttest.On(&elsewhere{Journal: j}, clienttest.OneAttempt))
			done := make(chan error)
			go func() { _, err := first.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
			time.Sleep(time.Second / 2)
			go func() { _, err := second.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
			if err := <-done; !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("who began it: %v, want ErrOutcomeUnknown", err)
			}
			if err := <-done; err != nil || w.Count() != 1 {
				t.Errorf("who went on: %v", err)
			}
			if rec := clienttest.Lookup(t, second, "k"); rec.State != persist.StateConfirmed {
				t.Errorf("it is %v", rec.State)
			}
		})
	}
}

func replies(r wiretest.Reply) []wiretest.Reply { return []wiretest.Reply{r} }

func accepted(delay time.Duration) wiretest.Reply { return wiretest.Reply{Status: 201, Delay: delay} }

func slowAnswers(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = 5 * time.Minute }

// TestFrozenPastItsLease: seconds after a process stopped, another goes on. When the first wakes up, it sends no more, and
// what it records is refused.
func TestFrozenPastItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		f := &journaltest.Freezing{Journal: &journaltest.Leasing{Journal: j, Claimer: j}, Claimer: j}
		lost := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost, Delay: time.Minute}, {Status: 201, Body: "late", Delay: time.Minute}}}
		first, _ := clienttest.New(t, lost, clienttest.On(f, slowAnswers))
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "next"}}}
		next, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j)))
		done := make(chan error)
		f.Freeze(15*time.Second, 76*time.Second)
		go func() { _, err := first.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
		time.Sleep(15 * time.Second)
		if got := clienttest.Resume(t, next); len(got) != 0 {
			t.Errorf("resumed %v while it is leased", got)
		}
		time.Sleep(26 * time.Second)
		if got := clienttest.Resume(t, next); got["k"].Err != nil || w.Count() != 1 {
			t.Errorf("41 s after the start, 31 s after the last renewal: %v, %d sends", got, w.Count())
		}
		if err := <-done; !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("whoever was frozen: %v, want ErrOutcomeUnknown", err)
		}
		if rec := clienttest.Lookup(t, next, "k"); rec.State != persist.StateConfirmed || string(rec.Answer.Body) != "next" || lost.Count() != 1 {
			t.Errorf("it is %v, and whoever was frozen has sent %d times; want confirmed by the other, and 1", rec.State, lost.Count())
		}
	})
}

// TestLateFinish: who was frozen in the middle of an attempt and then gets an answer cannot overwrite the other's.
func TestLateFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		f := &journaltest.Freezing{Journal: &journaltest.Leasing{Journal: j, Claimer: j}, Claimer: j}
		late := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "late", Delay: time.Minute}}}
		var out clienttest.Log
		first, _ := clienttest.New(t, late, clienttest.On(f, slowAnswers, func(cfg *oncehttp.Config) { cfg.Logger = out.Logger() }))
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "next"}}}
		next, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j)))
		done := make(chan error)
		f.Freeze(0, 91*time.Second)
		go func() { _, err := first.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
		time.Sleep(31 * time.Second)
		if got := clienttest.Resume(t, next); got["k"].Err != nil {
			t.Errorf("after the lease: %v", got)
		}
		if err := <-done; err != nil {
			t.Errorf("the answer was lost: %v", err)
		}
		if err := first.Close(); err != nil { // when the renewal that was frozen has ended, too
			t.Error(err)
		}
		if rec := clienttest.Lookup(t, next, "k"); string(rec.Answer.Body) != "next" || !out.Has("the outcome could not be recorded") {
			t.Errorf("it is %v with the answer %q; log %s", rec.State, rec.Answer.Body, &out)
		}
	})
}

// TestOneRenewalForAll: however many operations run, a third of the lease has one call of Renew, and none when nothing runs.
func TestOneRenewalForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		counted := &renewals{Claimer: j}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 25 * time.Second}}}, clienttest.On(&struct {
			persist.Journal
			*renewals
		}{j, counted}))
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key(string(rune('a'+i)))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Hour)
		if len(counted.of) != 2 || counted.of[0] != 20 || counted.of[1] != 20 {
			t.Errorf("renewals of %v leases, want 20 twice", counted.of)
		}
	})
}

// renewals notes of how many leases each Renew was.
type renewals struct {
	persist.Claimer
	of []int
}

func (r *renewals) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	r.of = append(r.of, len(ids))
	return r.Claimer.Renew(ctx, owner, lease, ids)
}

// locking is a journal in which a transaction of somebody else has locked some records: their leases are not renewed.
type locking struct {
	persist.Claimer
	alone atomic.Int32 // how often it was asked for what is free alone
}

func (l *locking) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	if len(ids) == 1 && ids[0].Key == "free" {
		l.alone.Add(1)
	}
	free := slices.DeleteFunc(slices.Clone(ids), func(id persist.ID) bool { return id.Key != "free" })
	held, now, err := l.Claimer.Renew(ctx, owner, lease, free)
	if len(free) < len(ids) {
		err = errors.Join(err, errors.New("records are locked"))
	}
	return held, now, err
}

// TestLockedRecord: a record that cannot be renewed keeps no other from that, and is not lost by it, but its lease lasts no
// longer than it did.
func TestLockedRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		twice := func(first time.Duration) *wiretest.Wire {
			return &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Delay: first}, {Status: 201, Delay: 40 * time.Second}}}
		}
		j, in, late, free := memory.New(), twice(25*time.Second), twice(35*time.Second), twice(45*time.Second)
		l := &locking{Claimer: j}
		c, _ := clienttest.New(t, byKey{"in": in, "after": late, "free": free}, clienttest.On(&struct {
			persist.Journal
			*locking
		}{j, l}, slowAnswers))
		w := &wiretest.Wire{Replies: replies(accepted(0))}
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j)))
		var wg sync.WaitGroup
		for key, sent := range map[oncehttp.Key]bool{"in": true, "after": false, "free": true} {
			wg.Go(func() {
				if _, err := c.DoKey(clienttest.Post(t, "{}"), key); (err == nil) != sent {
					t.Errorf("Do of %q: %v", key, err)
				}
			})
		}
		time.Sleep(29 * time.Second)
		if got := clienttest.Resume(t, other); len(got) != 0 {
			t.Errorf("another process has taken %v", got)
		}
		time.Sleep(11 * time.Second)
		if got := clienttest.Resume(t, other); len(got) != 1 || got["in"].Err != nil {
			t.Errorf("after the lease of what is locked, another process has taken %v, want that alone", got)
		}
		time.Sleep(10 * time.Second) // the second attempt of what is free is under way, and of one that is locked
		alone := l.alone.Load()
		wg.Wait()
		if in.Count() != 2 || late.Count() != 1 || free.Count() != 2 || alone != 0 {
			t.Errorf("%d, %d and %d sends, want 2, 1 and 2; and what is free was renewed alone %d times, want never", in.Count(), late.Count(), free.Count(), alone)
		}
	})
}

// byKey is a wire for each key.
type byKey map[string]*wiretest.Wire

func (b byKey) RoundTrip(req *http.Request) (*http.Response, error) {
	return b[wiretest.Key(req.Header)].RoundTrip(req)
}

// TestFrozenInAuthorize: a process that was stopped between the begin of an attempt and its send finds that its lease is lost,
// and does not send. Until it can have learnt that, nobody settles the operation as absent.
func TestFrozenInAuthorize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		f := &journaltest.Freezing{Journal: &journaltest.Leasing{Journal: j, Claimer: j}, Claimer: j}
		late, w := &wiretest.Wire{Replies: replies(accepted(time.Second))}, &wiretest.Wire{Replies: replies(accepted(time.Second))}
		f.Freeze(0, 3*time.Minute)
		first, _ := clienttest.New(t, late, clienttest.On(f, slowAnswers, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(*http.Request) error { time.Sleep(3 * time.Minute); return nil }
		}))
		next, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j)))
		done := make(chan error)
		go func() { _, err := first.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
		time.Sleep(time.Minute)
		if err := clienttest.AbsentAsSeen(next, t.Context(), "k"); !errors.Is(err, oncehttp.ErrInFlight) {
			t.Errorf("settled as absent while it may be sent: %v, want ErrInFlight", err)
		}
		if err := next.Abandon(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		err := <-done
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || late.Count() != 0 {
			t.Errorf("%v, %d sends", err, late.Count())
		}
	})
}

// TestLeaseWhileTokenComes: a lease that was renewed while the server made the token is not shortened when that is written.
func TestLeaseWhileTokenComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 2 * time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), slowAnswers, func(cfg *oncehttp.Config) {
			cfg.Profile = servertest.Ticketed()
			cfg.Profile.Token = &profile.Token{}
			cfg.Token = func(context.Context, persist.Record) (string, error) {
				time.Sleep(39 * time.Second)
				return "t1", nil
			}
		}))
		other, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(journaltest.NewLeasing(j)))
		done := make(chan error)
		go func() { _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); done <- err }()
		time.Sleep(39*time.Second + time.Millisecond)
		if rec := clienttest.Lookup(t, other, "k"); !rec.Leased("", time.Now()) || rec.Token == "" {
			t.Errorf("while it is on the wire, its lease ends at %v; it is %v", rec.LeaseUntil, time.Now())
		}
		if err := clienttest.AbsentAsSeen(other, t.Context(), "k"); !errors.Is(err, oncehttp.ErrInFlight) {
			t.Errorf("%v, want ErrInFlight", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestRunFindsEndedLeases: on a journal that does not say when what is due, Run looks every third of a lease for what a
// worker that died has left.
func TestRunFindsEndedLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(&struct {
			persist.Journal
			persist.Claimer
		}{j, j}))
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		const lease = 30 * time.Second
		claimed, _, err := j.Claim(t.Context(), persist.Query{AllAccounts: true}, "a worker that died", lease, 1)
		if err != nil || len(claimed) != 1 {
			t.Fatal(len(claimed), err)
		}
		ctx, stop := context.WithTimeout(t.Context(), lease+lease/3+time.Second)
		defer stop()
		if err := c.Run(ctx); err != nil || w.Count() != 1 {
			t.Errorf("%d sends, error %v; want 1 after the lease", w.Count(), err)
		}
	})
}
