package limits_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
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
)

// fewTurns is a limiter that lets so many requests go out at once, and each later one after six hours, or once it is opened.
type fewTurns struct {
	mu    sync.Mutex
	left  int
	hours time.Duration // instead of the six hours; zero: those
	open  chan struct{} // nil: it never is
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
	case <-f.open:
		return nil
	case <-time.After(cmp.Or(f.hours, 6*time.Hour)):
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
	end := clienttest.Start(t, c)
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
		for name, first := range map[string]wiretest.Reply{"in doubt": {Err: wiretest.ErrLost}, "busy": {Status: 503}, "refused": {Status: 429}} {
			t.Run(how+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := memory.New()
					w, live := &wiretest.Wire{Replies: []wiretest.Reply{first}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					waits, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(j), clienttest.LimitedBy(&fewTurns{left: 1})))
					free, _ := clienttest.New(t, live, clienttest.On(journaltest.NewFairLeasing(j)))
					if err := waits.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					stop := passing(t, waits, how)
					time.Sleep(15 * time.Second)
					rec := clienttest.Lookup(t, free, "k")
					if rec.State != persist.StatePending || rec.LeaseOwner != "" || rec.Attempts != 1 || rec.Sends != 1 || rec.NextAttempt.Sub(began) > 45*time.Second {
						t.Errorf("%v, lease of %q, %d attempts, %d sends, due after %v; want it pending after one, and due after its first pause",
							rec.State, rec.LeaseOwner, rec.Attempts, rec.Sends, rec.NextAttempt.Sub(began))
					}
					stopFree := clienttest.Run(t, free)
					time.Sleep(time.Minute)
					if rec := clienttest.Lookup(t, free, "k"); rec.State != persist.StateConfirmed || w.Count() != 1 || live.Count() != 1 {
						t.Errorf("%v after %d sends, and %d by the other", rec.State, w.Count(), live.Count())
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
			journaltest.Two(t, func(t *testing.T, j, _ persist.Journal) {
				const n, period = 6, 10 * time.Minute
				limiter, w := &clienttest.Bucket{Period: period}, &onceBusy{seen: map[string]int{}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter)))
				clienttest.Enqueue(t, c, n)
				stop := passing(t, c, how)
				time.Sleep(2*n*period + 2*period)
				confirmed := 0
				for _, rec := range journaltest.All(t, j) {
					if rec.State == persist.StateConfirmed {
						confirmed++
					}
				}
				if confirmed != n || w.total() != 2*n {
					t.Errorf("%d of %d confirmed after %d sends and %d turns", confirmed, n, w.total(), limiter.Count())
				}
				stop()
			})
		})
	}
	t.Run("no more than MaxAttempts", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}}}
			c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(memory.New()), clienttest.LimitedBy(&clienttest.Bucket{Period: 10 * time.Minute}), func(cfg *oncehttp.Config) {
				cfg.Retry.MaxAttempts, cfg.Retry.MaxPause, cfg.Retry.MaxElapsed = 3, time.Minute, time.Hour
			}))
			clienttest.Enqueue(t, c, 1)
			stop := resumingOn(t, c)
			time.Sleep(24 * time.Hour)
			if errs := stop(); len(errs) != 1 || !errors.Is(errs[0], oncehttp.ErrOutcomeUnknown) || w.Count() != 3 {
				t.Errorf("%v after %d sends; want one error after three", errs, w.Count())
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
	key := wiretest.Key(req.Header)
	o.seen[key]++
	status := 201
	if o.seen[key] == 1 {
		status = 503
	}
	o.mu.Unlock()
	return (&wiretest.Wire{Replies: []wiretest.Reply{{Status: status}}}).RoundTrip(req)
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
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		j := memory.New()
		none, live := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		waits, _ := clienttest.New(t, none, clienttest.On(journaltest.NewFairLeasing(j), clienttest.LimitedBy(&clienttest.Bucket{Period: 6 * time.Hour})))
		free, _ := clienttest.New(t, live, clienttest.On(journaltest.NewFairLeasing(j)))
		clienttest.Enqueue(t, waits, n)
		stop := resumingOn(t, waits)
		time.Sleep(5 * time.Minute)
		for rec := range free.Unfinished(t.Context()) {
			if rec.LeaseOwner != "" || rec.MaybeSent || rec.Attempts != 0 || rec.NextAttempt.After(time.Now()) {
				t.Errorf("%s: lease of %q, maybe sent %t, due at %v", rec.Key, rec.LeaseOwner, rec.MaybeSent, rec.NextAttempt)
			}
		}
		stopFree := clienttest.Run(t, free)
		time.Sleep(time.Minute)
		if len(live.Keys()) != n || none.Count() != 0 {
			t.Errorf("%d of %d were sent by the client that can, %d by the other", len(live.Keys()), n, none.Count())
		}
		if err := stopFree(); err != nil {
			t.Error(err)
		}
		time.Sleep(7 * time.Hour)
		if errs := stop(); len(errs) > 0 || none.Count() != 0 {
			t.Errorf("%v, %d sends of what others have sent", errs, none.Count())
		}
	})
}

// TestSlowLimiterOfResume: a Resume whose limiter takes longer than a third of a lease sends one operation each turn, until all are sent.
func TestSlowLimiterOfResume(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, j, _ persist.Journal) {
		const n, period, workers = 30, 10 * time.Minute, 8
		w, limiter := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, &clienttest.Bucket{Period: period}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter)))
		clienttest.Enqueue(t, c, n)
		began := time.Now()
		stop := resumingOn(t, c)
		time.Sleep(n*period + time.Minute)
		if errs := stop(); len(errs) > 0 || w.Count() != n || len(w.Keys()) != n || limiter.Count() < n || limiter.Count() > n+workers {
			t.Errorf("%v after %d sends of %d operations, and %d waits; want %d of each", errs, w.Count(), len(w.Keys()), limiter.Count(), n)
		}
		for i, s := range w.All() {
			if off := s.At.Sub(began) - time.Duration(i+1)*period; off < 0 || off > time.Second {
				t.Errorf("send %d comes %v late", i, off)
			}
		}
	})
}

// TestLimiterLeavesWhatIsBehind: while the limiter of a Run lets nothing go out that has its token, what was claimed behind it is given back, and
// another process sends it.
func TestLimiterLeavesWhatIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, workers = 60, 14 // of one origin, of a Run with 8 ResumeWorkers
		j, tr := memory.New(), aSecond{longTickets()(t)}
		waits, _ := clienttest.New(t, tr, clienttest.On(journaltest.NewFairLeasing(j), servertest.WithTickets, clienttest.LimitedBy(&fewTurns{left: workers})))
		free, _ := clienttest.New(t, tr, clienttest.On(journaltest.NewFairLeasing(j), servertest.WithTickets))
		for i := range n {
			if err := waits.Enqueue(paced(t), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
				t.Fatal(err)
			}
		}
		stop := clienttest.Run(t, waits)
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
		stopFree := clienttest.Run(t, free)
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
