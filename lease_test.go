package oncehttp_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestLeaseEnds: a process that died with a lease is not waited for for ever.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	for name, end := range enders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j := memory.New()
				var left persist.Journal
				w := &wire{replies: []reply{{err: errLost}}}
				w.before = func(int, *http.Request) { left = survivors(t, j) }
				c, _ := newClient(t, w, on(j, oneAttempt))
				_, _ = c.DoKey(post(t, "{}"), "k") // killed within
				next, _ := newClient(t, w, on(left, oneAttempt))
				sends := w.count()
				_, err := next.DoKey(post(t, "{}"), "k")
				for _, err := range []error{err, end(t.Context(), next, "k")} {
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrInFlight) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != sends {
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
	bubble(t, func(t *testing.T) {
		j := memory.New()
		const slow = 9 * time.Minute
		w := &wire{replies: []reply{{status: 409, body: alreadyDone, delay: slow}, {status: 503, delay: slow}, {status: 200, delay: slow}}}
		change := func(cfg *oncehttp.Config) {
			cfg.Profile = profile.GoCardless()
			cfg.Retry = oncehttp.Policy{MaxElapsed: time.Minute, AttemptTimeout: 10 * time.Minute, AnswerTimeout: 12 * time.Minute}
		}
		c, _ := newClient(t, w, on(j, change))
		other, _ := newClient(t, w, on(newLeasing(j), change))
		done := make(chan error)
		go func() { _, err := c.DoKey(post(t, "{}"), "k"); done <- err }()
		for range 26 {
			time.Sleep(time.Minute)
			for _, err := range other.Resume(t.Context()) {
				t.Errorf("another process took it: %v", err)
			}
		}
		if err := <-done; err != nil || w.count() != 3 {
			t.Errorf("%v after %d sends, want 3", err, w.count())
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
	for _, reply := range []reply{{refused: true, delay: time.Second}, {status: 403, delay: time.Second}} {
		bubble(t, func(t *testing.T) {
			j := memory.New()
			first, _ := newClient(t, &wire{replies: replies(reply)}, on(&elsewhere{Journal: j}, oneAttempt))
			w := &wire{replies: replies(accepted(10 * time.Second))}
			second, _ := newClient(t, w, on(&elsewhere{Journal: j}, oneAttempt))
			done := make(chan error)
			go func() { _, err := first.DoKey(post(t, "{}"), "k"); done <- err }()
			time.Sleep(time.Second / 2)
			go func() { _, err := second.DoKey(post(t, "{}"), "k"); done <- err }()
			if err := <-done; !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("who began it: %v, want ErrOutcomeUnknown", err)
			}
			if err := <-done; err != nil || w.count() != 1 {
				t.Errorf("who went on: %v", err)
			}
			if rec := lookup(t, second, "k"); rec.State != persist.StateConfirmed {
				t.Errorf("it is %v", rec.State)
			}
		})
	}
}

func replies(r reply) []reply { return []reply{r} }

func accepted(delay time.Duration) reply { return reply{status: 201, delay: delay} }

// freezing is a leasing journal of a process that is frozen from one moment to another: meanwhile it renews nothing.
type freezing struct {
	persist.Journal
	persist.Claimer
	from, to time.Time
}

// freeze freezes for a time.
func (f *freezing) freeze(after, length time.Duration) {
	f.from = time.Now().Add(after)
	f.to = f.from.Add(length)
}

func (f *freezing) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	if now := time.Now(); !now.Before(f.from) && now.Before(f.to) {
		time.Sleep(f.to.Sub(now))
	}
	return f.Claimer.Renew(ctx, owner, lease, ids)
}

func slowAnswers(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = 5 * time.Minute }

// TestFrozenPastItsLease: seconds after a process stopped, another goes on. When the first wakes up, it sends no more, and
// what it records is refused.
func TestFrozenPastItsLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		f := &freezing{Journal: &leasing{Journal: j, Claimer: j}, Claimer: j}
		lost := &wire{replies: []reply{{err: errLost, delay: time.Minute}, {status: 201, body: "late", delay: time.Minute}}}
		first, _ := newClient(t, lost, on(f, slowAnswers))
		w := &wire{replies: []reply{{status: 201, body: "next"}}}
		next, _ := newClient(t, w, on(newLeasing(j)))
		done := make(chan error)
		f.freeze(15*time.Second, 76*time.Second)
		go func() { _, err := first.DoKey(post(t, "{}"), "k"); done <- err }()
		time.Sleep(15 * time.Second)
		if got := resume(t, next); len(got) != 0 {
			t.Errorf("resumed %v while it is leased", got)
		}
		time.Sleep(26 * time.Second)
		if got := resume(t, next); got["k"].err != nil || w.count() != 1 {
			t.Errorf("41 s after the start, 31 s after the last renewal: %v, %d sends", got, w.count())
		}
		if err := <-done; !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("whoever was frozen: %v, want ErrOutcomeUnknown", err)
		}
		if rec := lookup(t, next, "k"); rec.State != persist.StateConfirmed || string(rec.Answer.Body) != "next" || lost.count() != 1 {
			t.Errorf("it is %v, and whoever was frozen has sent %d times; want confirmed by the other, and 1", rec.State, lost.count())
		}
	})
}

// TestLateFinish: who was frozen in the middle of an attempt and then gets an answer cannot overwrite the other's.
func TestLateFinish(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		f := &freezing{Journal: &leasing{Journal: j, Claimer: j}, Claimer: j}
		late := &wire{replies: []reply{{status: 201, body: "late", delay: time.Minute}}}
		var out logged
		first, _ := newClient(t, late, on(f, slowAnswers, func(cfg *oncehttp.Config) { cfg.Logger = out.logger() }))
		w := &wire{replies: []reply{{status: 201, body: "next"}}}
		next, _ := newClient(t, w, on(newLeasing(j)))
		done := make(chan error)
		f.freeze(0, 91*time.Second)
		go func() { _, err := first.DoKey(post(t, "{}"), "k"); done <- err }()
		time.Sleep(31 * time.Second)
		if got := resume(t, next); got["k"].err != nil {
			t.Errorf("after the lease: %v", got)
		}
		if err := <-done; err != nil {
			t.Errorf("the answer was lost: %v", err)
		}
		if err := first.Close(); err != nil { // when the renewal that was frozen has ended, too
			t.Error(err)
		}
		if rec := lookup(t, next, "k"); string(rec.Answer.Body) != "next" || !out.has("the outcome could not be recorded") {
			t.Errorf("it is %v with the answer %q; log %s", rec.State, rec.Answer.Body, &out)
		}
	})
}

// TestOneRenewalForAll: however many operations run, a third of the lease has one call of Renew, and none when nothing runs.
func TestOneRenewalForAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		counted := &renewals{Claimer: j}
		c, _ := newClient(t, &wire{replies: []reply{{status: 201, delay: 25 * time.Second}}}, on(&struct {
			persist.Journal
			*renewals
		}{j, counted}))
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := c.DoKey(post(t, "{}"), oncehttp.Key(string(rune('a'+i)))); err != nil {
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
	bubble(t, func(t *testing.T) {
		twice := func(first time.Duration) *wire {
			return &wire{replies: []reply{{status: 503, delay: first}, {status: 201, delay: 40 * time.Second}}}
		}
		j, in, late, free := memory.New(), twice(25*time.Second), twice(35*time.Second), twice(45*time.Second)
		l := &locking{Claimer: j}
		c, _ := newClient(t, byKey{"in": in, "after": late, "free": free}, on(&struct {
			persist.Journal
			*locking
		}{j, l}, slowAnswers))
		w := &wire{replies: replies(accepted(0))}
		other, _ := newClient(t, w, on(newLeasing(j)))
		var wg sync.WaitGroup
		for key, sent := range map[oncehttp.Key]bool{"in": true, "after": false, "free": true} {
			wg.Go(func() {
				if _, err := c.DoKey(post(t, "{}"), key); (err == nil) != sent {
					t.Errorf("Do of %q: %v", key, err)
				}
			})
		}
		time.Sleep(29 * time.Second)
		if got := resume(t, other); len(got) != 0 {
			t.Errorf("another process has taken %v", got)
		}
		time.Sleep(11 * time.Second)
		if got := resume(t, other); len(got) != 1 || got["in"].err != nil {
			t.Errorf("after the lease of what is locked, another process has taken %v, want that alone", got)
		}
		time.Sleep(10 * time.Second) // the second attempt of what is free is under way, and of one that is locked
		alone := l.alone.Load()
		wg.Wait()
		if in.count() != 2 || late.count() != 1 || free.count() != 2 || alone != 0 {
			t.Errorf("%d, %d and %d sends, want 2, 1 and 2; and what is free was renewed alone %d times, want never", in.count(), late.count(), free.count(), alone)
		}
	})
}

// byKey is a wire for each key.
type byKey map[string]*wire

func (b byKey) RoundTrip(req *http.Request) (*http.Response, error) {
	return b[keyHeader(req.Header)].RoundTrip(req)
}

// TestFrozenInAuthorize: a process that was stopped between the begin of an attempt and its send finds that its lease is lost,
// and does not send.
func TestFrozenInAuthorize(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		f := &freezing{Journal: &leasing{Journal: j, Claimer: j}, Claimer: j}
		late, w := &wire{replies: replies(accepted(time.Second))}, &wire{replies: replies(accepted(time.Second))}
		f.freeze(0, 3*time.Minute)
		first, _ := newClient(t, late, on(f, slowAnswers, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(*http.Request) error { time.Sleep(3 * time.Minute); return nil }
		}))
		next, _ := newClient(t, w, on(newLeasing(j)))
		done := make(chan error)
		go func() { _, err := first.DoKey(post(t, "{}"), "k"); done <- err }()
		time.Sleep(time.Minute)
		if err := absentAsSeen(next, t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		err := <-done
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || late.count() != 0 {
			t.Errorf("%v, %d sends", err, late.count())
		}
	})
}

// TestLeaseWhileTokenComes: a lease that was renewed while the server made the token is not shortened when that is written.
func TestLeaseWhileTokenComes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		w := &wire{replies: []reply{{status: 201, delay: 2 * time.Second}}}
		c, _ := newClient(t, w, on(newLeasing(j), slowAnswers, func(cfg *oncehttp.Config) {
			cfg.Profile = ticketed()
			cfg.Profile.Token = &profile.Token{}
			cfg.Token = func(context.Context, persist.Record) (string, error) {
				time.Sleep(39 * time.Second)
				return "t1", nil
			}
		}))
		other, _ := newClient(t, &wire{}, on(newLeasing(j)))
		done := make(chan error)
		go func() { _, err := c.DoKey(post(t, "{}"), "k"); done <- err }()
		time.Sleep(39*time.Second + time.Millisecond)
		if rec := lookup(t, other, "k"); !rec.Leased("", time.Now()) || rec.Token == "" {
			t.Errorf("while it is on the wire, its lease ends at %v; it is %v", rec.LeaseUntil, time.Now())
		}
		if err := absentAsSeen(other, t.Context(), "k"); !errors.Is(err, oncehttp.ErrInFlight) {
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
	bubble(t, func(t *testing.T) {
		j := memory.New()
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, on(&struct {
			persist.Journal
			persist.Claimer
		}{j, j}))
		if err := c.Enqueue(post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		const lease = 30 * time.Second
		claimed, _, err := j.Claim(t.Context(), persist.Query{AllAccounts: true}, "a worker that died", lease, 1)
		if err != nil || len(claimed) != 1 {
			t.Fatal(len(claimed), err)
		}
		ctx, stop := context.WithTimeout(t.Context(), lease+lease/3+time.Second)
		defer stop()
		if err := c.Run(ctx); err != nil || w.count() != 1 {
			t.Errorf("%d sends, error %v; want 1 after the lease", w.count(), err)
		}
	})
}
