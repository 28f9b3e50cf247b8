package lease_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// updating is a journal that counts Updates.
type updating struct {
	*memory.Journal
	updates atomic.Int32
}

func (u *updating) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	u.updates.Add(1)
	return u.Journal.Update(ctx, rec)
}

// seeing is a transport that looks up each operation when it is sent. Its path is its key.
type seeing struct {
	j     persist.Journal
	takes time.Duration
	mu    sync.Mutex
	sent  map[string]int
	bad   []string // keys of what was sent while the journal said that it was not
}

func (s *seeing) RoundTrip(req *http.Request) (*http.Response, error) {
	key := req.URL.Path[1:]
	for rec := range s.j.List(req.Context(), persist.Query{AllAccounts: true, Key: key}) {
		s.mu.Lock()
		s.sent[key]++
		if !rec.MaybeSent || rec.FirstSent.IsZero() || rec.FirstSent.After(time.Now()) {
			s.bad = append(s.bad, rec.Key)
		}
		s.mu.Unlock()
	}
	select {
	case <-time.After(s.takes):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// enqueue enqueues n operations: k0, k1, and so on.
func (s *seeing) enqueue(t *testing.T, c *oncehttp.Client, n int) {
	t.Helper()
	for i := range n {
		key := fmt.Sprint("k", i)
		if err := c.Enqueue(clienttest.Request(t, "POST", "https://one.example/"+key, "{}"), oncehttp.Key(key)); err != nil {
			t.Fatal(err)
		}
	}
}

// of is how often a key was sent.
func (s *seeing) of(key oncehttp.Key) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[string(key)]
}

// TestRunMarksWithTheClaim: where a claim marks what it takes as maybe sent, Run writes each operation twice in all, and
// nothing is sent whose record does not say so; of an API that takes no key the mark is a write of its own.
func TestRunMarksWithTheClaim(t *testing.T) {
	t.Parallel()
	for updates, prof := range map[int32]*profile.Profile{0: profile.Draft07(), 10: profile.None()} {
		synctest.Test(t, func(t *testing.T) {
			j := &updating{Journal: memory.New()}
			s := &seeing{j: j, takes: 10 * time.Second, sent: map[string]int{}}
			c, _ := clienttest.New(t, s, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile = prof }))
			s.enqueue(t, c, 10)
			stop := clienttest.Run(t, c)
			time.Sleep(time.Minute)
			if err := stop(); err != nil || len(s.bad) > 0 {
				t.Errorf("%v; sent, and not marked: %v", err, s.bad)
			}
			confirmed := 0
			for rec := range j.List(t.Context(), persist.Query{AllAccounts: true, States: []persist.State{persist.StateConfirmed}}) {
				if confirmed++; rec.Attempts != 1 || !rec.MaybeSent {
					t.Errorf("%s: %d attempts, maybe sent %t", rec.Key, rec.Attempts, rec.MaybeSent)
				}
			}
			if n := j.updates.Load(); confirmed != 10 || n != updates {
				t.Errorf("%s: %d of 10 are confirmed, with %d Updates, want %d", prof.Name, confirmed, n, updates)
			}
		})
	}
}

// aCall is one that ends or runs an operation, and how often that is sent in all.
type aCall struct {
	call  func(*testing.T, *oncehttp.Client) error
	sends int
}

// callsOn are the calls on an operation that Run has claimed, or is claiming.
func callsOn(key oncehttp.Key) map[string]aCall {
	return map[string]aCall{
		"Abandon": {func(t *testing.T, c *oncehttp.Client) error { return c.Abandon(t.Context(), key) }, 0},
		"Settle": {func(t *testing.T, c *oncehttp.Client) error {
			return c.Settle(t.Context(), key, oncehttp.Resolution{Effect: oncehttp.EffectHappened})
		}, 0},
		"Do": {func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.DoKey(clienttest.Request(t, "POST", "https://one.example/"+string(key), "{}"), key)
			return err
		}, 1},
	}
}

// TestClaimedIsEnded: what Run has claimed and not begun may be ended, or run, by a call meanwhile. Then Run sends it no more.
func TestClaimedIsEnded(t *testing.T) {
	t.Parallel()
	const key = "k3" // the last, of two workers
	for name, c := range callsOn(key) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := memory.New()
				s := &seeing{j: j, takes: 8 * time.Second, sent: map[string]int{}}
				client, _ := clienttest.New(t, s, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 1 }))
				s.enqueue(t, client, 4)
				stop := clienttest.Run(t, client)
				time.Sleep(12 * time.Second) // leases were renewed after 10 s; a worker takes the last after 16 s
				if rec := clienttest.Lookup(t, client, key); rec.LeaseOwner == "" || !rec.MaybeSent || s.of(key) != 0 {
					t.Fatalf("leased by %q, maybe sent %t, %d sends; want it claimed and not begun", rec.LeaseOwner, rec.MaybeSent, s.of(key))
				}
				if err := c.call(t, client); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Minute)
				if err := stop(); err != nil || s.of(key) != c.sends {
					t.Errorf("%v; it was sent %d times, want %d", err, s.of(key), c.sends)
				}
				if rec := clienttest.Lookup(t, client, key); !rec.State.Final() {
					t.Errorf("it is %v", rec.State)
				}
			})
		})
	}
}

// TestClaimedElsewhere: what Run has claimed and not begun is another's once its lease has ended and another has claimed it.
func TestClaimedElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{Journal: memory.New()}
		o.begin(2 * time.Minute)
		s := &seeing{j: o, takes: time.Hour, sent: map[string]int{}}
		c, _ := clienttest.New(t, s, clienttest.On(o, func(cfg *oncehttp.Config) { cfg.ResumeWorkers, cfg.Retry.AttemptTimeout = 1, 2*time.Hour }))
		s.enqueue(t, c, 4)
		stop := clienttest.Run(t, c)
		time.Sleep(31 * time.Second)
		claimed, now, err := o.Journal.Claim(t.Context(), persist.Query{AllAccounts: true}, "another", time.Hour, 4)
		if err != nil || len(claimed) == 0 {
			t.Fatalf("another process claimed %d, error %v", len(claimed), err)
		}
		before := map[string]int{} // those on the wire
		for _, rec := range claimed {
			before[rec.Key] = s.of(oncehttp.Key(rec.Key))
		}
		for _, rec := range claimed {
			if !rec.MaybeSent {
				t.Errorf("%s: the process that claimed it before may have sent it, and the record does not say so", rec.Key)
			}
			rec.State, rec.Finished, rec.Answer = persist.StateConfirmed, now, &persist.Answer{Status: 201, At: now}
			rec.LeaseOwner = ""
			if err := o.Finish(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, rec := range claimed {
			if n := s.of(oncehttp.Key(rec.Key)) - before[rec.Key]; n != 0 || len(claimed) < 3 {
				t.Errorf("%s was sent %d times more, after another process had confirmed it", rec.Key, n)
			}
		}
	})
}

// TestClaimLeavesUnusedToken: a claim marks nothing that has a token with which it was never sent: that may be too old, and a
// new one is fetched.
func TestClaimLeavesUnusedToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var fetched atomic.Int32
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}, {Status: 429}, {Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			clienttest.OneAttempt(cfg)
			cfg.Profile = servertest.Ticketed()
			cfg.Profile.Token = &profile.Token{}
			cfg.Token = func(context.Context, persist.Record) (string, error) { return fmt.Sprint("t", fetched.Add(1)), nil }
		})
		clienttest.Enqueue(t, c, 1)
		stop := clienttest.Run(t, c)
		time.Sleep(time.Hour)
		sent := w.All()
		if err := stop(); err != nil || len(sent) != 3 || sent[0].Key != "t1" || sent[1].Key != "t2" || sent[2].Key != "t2" {
			t.Errorf("%v; sent with %v, want t1, of which the connection failed, and t2 from then on", err, w.Keys())
		}
	})
}

// TestMarkGrowsOld: the window of what waits after it was claimed begins when a worker takes it, and not with the claim.
func TestMarkGrowsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		s := &seeing{j: j, takes: time.Second, sent: map[string]int{}}
		limiter := &clienttest.Pace{Period: 6 * time.Minute}
		c, _ := clienttest.New(t, s, clienttest.On(j, slowAnswers, func(cfg *oncehttp.Config) {
			cfg.Limiter = func(string) oncehttp.Limiter { return limiter }
			cfg.ResumeWorkers, cfg.Profile = 1, profile.Draft07()
			cfg.Profile.Window = profile.Window{Floor: 20 * time.Minute}
		}))
		s.enqueue(t, c, 4)
		stop := clienttest.Run(t, c)
		time.Sleep(2 * time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, key := range []oncehttp.Key{"k0", "k1", "k2", "k3"} {
			if rec := clienttest.Lookup(t, c, key); rec.State != persist.StateConfirmed {
				t.Errorf("%s is %v (%s) after %d sends", key, rec.State, rec.HoldReason, s.of(key))
			}
		}
	})
}
