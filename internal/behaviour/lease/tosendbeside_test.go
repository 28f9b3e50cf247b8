package lease_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
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

// slow is a journal of which one record is read late, and of which the answer to the first claim comes late.
type slow struct {
	*memory.Journal
	key      string
	reads    time.Duration // before a Begin or Get of the key
	answers  time.Duration // after the first claim that takes something
	answered atomic.Bool
}

func (s *slow) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if rec.Key == s.key && rec.MaybeSent { // of Do
		time.Sleep(s.reads)
	}
	return s.Journal.Begin(ctx, rec)
}

func (s *slow) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if id.Key == s.key {
		time.Sleep(s.reads)
	}
	return s.Journal.Get(ctx, id)
}

func (s *slow) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	claimed, now, err := s.Journal.ClaimToSend(ctx, q, owner, lease, sending, n)
	if len(claimed) > 0 && !s.answered.Swap(true) {
		time.Sleep(s.answers)
	}
	return claimed, now, err
}

// TestClaimBesideCall: an operation that a call is about to end, or to run, while Run claims it, is sent no more by Run, and not given back as never
// sent while it is on the wire; whichever of the two was first, and whether the call is over before the claim is.
func TestClaimBesideCall(t *testing.T) {
	t.Parallel()
	const key = "k3" // the last, of two workers
	orders := map[string]struct{ reads, answers, call, run time.Duration }{
		"the call is first":             {reads: 5 * time.Second, run: time.Second},
		"the call is within the claim":  {answers: 9 * time.Second, call: time.Second},
		"the claim is within the call":  {reads: 5 * time.Second, answers: time.Second, run: time.Second},
		"the call ends after the claim": {reads: 5 * time.Second, answers: 2 * time.Second, call: time.Second},
	}
	for name, call := range callsOn(key) {
		for order, o := range orders {
			t.Run(name+", "+order, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := &slow{Journal: memory.New(), key: key, reads: o.reads, answers: o.answers}
					s := &seeing{j: j, takes: 3 * time.Second, sent: map[string]int{}}
					c, _ := clienttest.New(t, s, clienttest.On(j, slowAnswers, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 1 }))
					s.enqueue(t, c, 4)
					time.AfterFunc(o.call, func() {
						if err := call.call(t, c); err != nil {
							t.Error(err)
						}
					})
					time.Sleep(o.run)
					stop := clienttest.Run(t, c)
					for range 60 { // in which a crash of the process must find the record marked once it was sent
						time.Sleep(time.Second)
						rec := clienttest.Lookup(t, c, key)
						if s.of(key) > 0 && !rec.MaybeSent {
							t.Fatalf("it was sent, and the record says that it was not")
						}
					}
					time.Sleep(10 * time.Minute)
					if err := stop(); err != nil || s.of(key) != call.sends || len(s.bad) > 0 {
						t.Errorf("%v; it was sent %d times, want %d; without a mark: %v", err, s.of(key), call.sends, s.bad)
					}
					if rec := clienttest.Lookup(t, c, key); !rec.State.Final() {
						t.Errorf("it is %v", rec.State)
					}
				})
			})
		}
	}
}

// slowClock is a journal as another process sees it, which is late when it is asked for the time.
type slowClock struct {
	journaltest.Leasing
	late time.Duration
}

func (s *slowClock) Now(ctx context.Context) (time.Time, error) {
	time.Sleep(s.late)
	return s.Leasing.Now(ctx)
}

// TestLeaseBySlowClock: a process that is not certain of the journal's time ends no operation before the lease of another is over for certain.
func TestLeaseBySlowClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{Journal: memory.New()}
		o.begin(2 * time.Minute)
		s := &seeing{j: o, sent: map[string]int{}}
		waiting := map[string]bool{"k0": true, "k1": true, "k2": true} // for the one worker, in whichever order it takes them
		first := wiretest.Func(func(req *http.Request) (*http.Response, error) {
			if delete(waiting, strings.TrimPrefix(req.URL.Path, "/")); len(waiting) == 2 {
				time.Sleep(26 * time.Second)
			}
			time.Sleep(time.Second)
			return s.RoundTrip(req)
		})
		c, _ := clienttest.New(t, first, clienttest.On(o, slowAnswers, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 1 }))
		s.enqueue(t, c, 3)
		stop := clienttest.Run(t, c)
		time.Sleep(20500 * time.Millisecond)
		other, _ := clienttest.New(t, s, clienttest.On(&slowClock{journaltest.Leasing{Journal: o.Journal, Claimer: o.Journal}, 5 * time.Second}))
		key := oncehttp.Key(slices.Max(slices.Collect(maps.Keys(waiting))))
		err := other.Abandon(t.Context(), key)
		if rec := clienttest.Lookup(t, c, key); !rec.Leased("", time.Now()) {
			t.Fatalf("its lease ended at %v, and it is %v", rec.LeaseUntil, time.Now())
		}
		time.Sleep(time.Minute)
		if err == nil && s.of(key) > 0 {
			t.Error("another process has abandoned it before the lease was over, and then it was sent")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
