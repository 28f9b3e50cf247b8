package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// fewTurns is a limiter that lets so many requests go out at once, and each later one after six hours.
type fewTurns struct {
	mu   sync.Mutex
	left int
}

func (f *fewTurns) Wait(ctx context.Context) error {
	f.mu.Lock()
	f.left--
	free := f.left >= 0
	f.mu.Unlock()
	if free {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(6 * time.Hour):
		return nil
	}
}

// resumingOn starts a Resume in the background. stop ends it, and returns the errors that it has yielded.
func resumingOn(t *testing.T, c *oncehttp.Client) (stop func() []error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var yielded []error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, err := range c.Resume(ctx) {
			if err != nil && ctx.Err() == nil {
				yielded = append(yielded, err)
			}
		}
	}()
	return func() []error {
		cancel()
		<-done
		return yielded
	}
}

// passing starts a Run or a Resume; stop ends it.
func passing(t *testing.T, c *oncehttp.Client, how string) (stop func()) {
	t.Helper()
	if how == "Resume" {
		end := resumingOn(t, c)
		return func() { end() }
	}
	end := running(t, c)
	return func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// TestLimiterLeavesRetries: where the limiter of a client lets nothing more go out for hours after a first send, the operation is not kept: it is
// due when its pauses say so, and another process sends it then.
func TestLimiterLeavesRetries(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Run", "Resume"} {
		for name, first := range map[string]reply{"in doubt": {err: errLost}, "busy": {status: 503}, "refused": {status: 429}} {
			t.Run(how+" "+name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					j := memory.New()
					w, live := &wire{replies: []reply{first}}, &wire{replies: []reply{{status: 201}}}
					waits, _ := newClient(t, w, on(newFairLeasing(j), limitedBy(&fewTurns{left: 1})))
					free, _ := newClient(t, live, on(newFairLeasing(j)))
					if err := waits.Enqueue(post(t, "{}"), "k"); err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					stop := passing(t, waits, how)
					time.Sleep(15 * time.Second)
					rec := lookup(t, free, "k")
					if rec.State != persist.StatePending || rec.LeaseOwner != "" || rec.Attempts != 1 || rec.Sends != 1 || rec.NextAttempt.Sub(began) > 45*time.Second {
						t.Errorf("%v, lease of %q, %d attempts, %d sends, due after %v; want it pending after one, and due after its first pause",
							rec.State, rec.LeaseOwner, rec.Attempts, rec.Sends, rec.NextAttempt.Sub(began))
					}
					stopFree := running(t, free)
					time.Sleep(time.Minute)
					if rec := lookup(t, free, "k"); rec.State != persist.StateConfirmed || w.count() != 1 || live.count() != 1 {
						t.Errorf("%v after %d sends, and %d by the other", rec.State, w.count(), live.count())
					}
					if err := stopFree(); err != nil {
						t.Error(err)
					}
					stop()
				})
			})
		}
	}
}

// TestSlowLimiterRetries: a client whose limiter takes long sends each operation again with a turn of its own, and no turn is lost; a Resume makes
// no more attempts than one drive would.
func TestSlowLimiterRetries(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Run", "Resume"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			twoOf(t, func(t *testing.T, j, _ persist.Journal) {
				const n, period = 6, 10 * time.Minute
				limiter, w := &bucket{period: period}, &onceBusy{seen: map[string]int{}}
				c, _ := newClient(t, w, on(j, limitedBy(limiter)))
				enqueue(t, c, n)
				stop := passing(t, c, how)
				time.Sleep(2*n*period + 2*period)
				confirmed := 0
				for _, rec := range listed(t, j) {
					if rec.State == persist.StateConfirmed {
						confirmed++
					}
				}
				if confirmed != n || w.total() != 2*n {
					t.Errorf("%d of %d confirmed after %d sends and %d turns", confirmed, n, w.total(), limiter.count())
				}
				stop()
			})
		})
	}
	t.Run("no more than MaxAttempts", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 503}}}
			c, _ := newClient(t, w, on(newFairLeasing(memory.New()), limitedBy(&bucket{period: 10 * time.Minute}), func(cfg *oncehttp.Config) {
				cfg.Retry.MaxAttempts, cfg.Retry.MaxPause, cfg.Retry.MaxElapsed = 3, time.Minute, time.Hour
			}))
			enqueue(t, c, 1)
			stop := resumingOn(t, c)
			time.Sleep(24 * time.Hour)
			if errs := stop(); len(errs) != 1 || !errors.Is(errs[0], oncehttp.ErrOutcomeUnknown) || w.count() != 3 {
				t.Errorf("%v after %d sends; want one error after three", errs, w.count())
			}
		})
	})
}

// onceBusy is an API that says 503 to the first send of each key.
type onceBusy struct {
	mu   sync.Mutex
	seen map[string]int
}

func (o *onceBusy) RoundTrip(req *http.Request) (*http.Response, error) {
	o.mu.Lock()
	key := keyHeader(req.Header)
	o.seen[key]++
	status := 201
	if o.seen[key] == 1 {
		status = 503
	}
	o.mu.Unlock()
	return (&wire{replies: []reply{{status: status}}}).RoundTrip(req)
}

func (o *onceBusy) total() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, sends := range o.seen {
		n += sends
	}
	return n
}

// TestResumeLeavesWhatItCannotRun: a Resume whose workers all wait for a limiter keeps nothing that it has claimed for later; others send it.
func TestResumeLeavesWhatItCannotRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const n = 40
		j := memory.New()
		none, live := &wire{replies: []reply{{status: 201}}}, &wire{replies: []reply{{status: 201}}}
		waits, _ := newClient(t, none, on(newFairLeasing(j), limitedBy(&bucket{period: 6 * time.Hour})))
		free, _ := newClient(t, live, on(newFairLeasing(j)))
		enqueue(t, waits, n)
		stop := resumingOn(t, waits)
		time.Sleep(5 * time.Minute)
		for rec := range free.Unfinished(t.Context()) {
			if rec.LeaseOwner != "" || rec.MaybeSent || rec.Attempts != 0 || rec.NextAttempt.After(time.Now()) {
				t.Errorf("%s: lease of %q, maybe sent %t, due at %v", rec.Key, rec.LeaseOwner, rec.MaybeSent, rec.NextAttempt)
			}
		}
		stopFree := running(t, free)
		time.Sleep(time.Minute)
		if len(live.keys()) != n || none.count() != 0 {
			t.Errorf("%d of %d were sent by the client that can, %d by the other", len(live.keys()), n, none.count())
		}
		if err := stopFree(); err != nil {
			t.Error(err)
		}
		time.Sleep(7 * time.Hour)
		if errs := stop(); len(errs) > 0 || none.count() != 0 {
			t.Errorf("%v, %d sends of what others have sent", errs, none.count())
		}
	})
}

// TestSlowLimiterOfResume: a Resume whose limiter takes longer than a third of a lease sends one operation each turn, until all are sent.
func TestSlowLimiterOfResume(t *testing.T) {
	t.Parallel()
	twoOf(t, func(t *testing.T, j, _ persist.Journal) {
		const n, period, workers = 30, 10 * time.Minute, 8
		w, limiter := &wire{replies: []reply{{status: 201}}}, &bucket{period: period}
		c, _ := newClient(t, w, on(j, limitedBy(limiter)))
		enqueue(t, c, n)
		began := time.Now()
		stop := resumingOn(t, c)
		time.Sleep(n*period + time.Minute)
		if errs := stop(); len(errs) > 0 || w.count() != n || len(w.keys()) != n || limiter.count() < n || limiter.count() > n+workers {
			t.Errorf("%v after %d sends of %d operations, and %d waits; want %d of each", errs, w.count(), len(w.keys()), limiter.count(), n)
		}
		for i, s := range w.all() {
			if off := s.at.Sub(began) - time.Duration(i+1)*period; off < 0 || off > time.Second {
				t.Errorf("send %d comes %v late", i, off)
			}
		}
	})
}

// TestLimiterLeavesWhatIsBehind: while the limiter of a Run lets nothing go out that has its token, what was claimed behind it is given back, and
// another process sends it.
func TestLimiterLeavesWhatIsBehind(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const n, workers = 60, 14 // of one origin, of a Run with 8 ResumeWorkers
		j, tr := memory.New(), aSecond{longTickets()(t)}
		waits, _ := newClient(t, tr, on(newFairLeasing(j), withTickets, limitedBy(&fewTurns{left: workers})))
		free, _ := newClient(t, tr, on(newFairLeasing(j), withTickets))
		for i := range n {
			if err := waits.Enqueue(paced(t), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
				t.Fatal(err)
			}
		}
		stop := running(t, waits)
		time.Sleep(time.Minute)
		kept := 0
		for rec := range free.Unfinished(t.Context()) {
			if rec.LeaseOwner != "" {
				kept++
			}
		}
		if kept > workers {
			t.Errorf("%d operations are kept by %d workers", kept, workers)
		}
		stopFree := running(t, free)
		time.Sleep(time.Minute)
		if sent := n - len(unfinishedOf(t, free)); sent < n-workers {
			t.Errorf("%d of %d were sent while %d have their token", sent, n, kept)
		}
		if err := errors.Join(stopFree(), stop()); err != nil {
			t.Error(err)
		}
	})
}

// aSecond is a transport to a server that takes a second.
type aSecond struct{ to http.RoundTripper }

func (s aSecond) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	return s.to.RoundTrip(req)
}

// unfinishedOf are the keys that are unfinished.
func unfinishedOf(t *testing.T, c *oncehttp.Client) (keys []string) {
	t.Helper()
	for rec, err := range c.Unfinished(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, rec.Key)
	}
	return keys
}
