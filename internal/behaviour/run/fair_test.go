package run_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// most is a transport that notes how many sends are under way at most, for each host.
type most struct {
	to        http.RoundTripper
	mu        sync.Mutex
	now, ever map[string]int
}

func (m *most) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Host
	m.mu.Lock()
	m.now[host]++
	m.ever[host] = max(m.ever[host], m.now[host])
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.now[host]--
		m.mu.Unlock()
	}()
	return m.to.RoundTrip(req)
}

// at is how many sends to a host are under way, and how many were at most.
func (m *most) at(host string) (now, ever int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now[host], m.ever[host]
}

func watched(to http.RoundTripper) *most {
	return &most{to: to, now: map[string]int{}, ever: map[string]int{}}
}

// TestRunIsFair: a slow API with a long backlog does not keep another from its turn, and never has more workers than
// OriginWorkers.
func TestRunIsFair(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]time.Duration{0: 0, 6: 0, 8: 20 * time.Second} { // a worker is free at once, or within one attempt
		synctest.Test(t, func(t *testing.T) {
			slow, quick := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 20 * time.Second}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			rt := watched(wiretest.ByHost{"slow.example": slow, "quick.example": quick})
			c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) { cfg.OriginWorkers = limit })
			clienttest.EnqueueAt(t, c, "slow.example", 200)
			stop := clienttest.Run(t, c)
			time.Sleep(time.Second)
			start := time.Now()
			clienttest.EnqueueAt(t, c, "quick.example", 20)
			time.Sleep(want + time.Millisecond)
			if quick.Count() != 20 {
				t.Errorf("limit %d: %d of 20 were sent after %v, while another API is slow", limit, quick.Count(), time.Since(start))
			}
			time.Sleep(20 * time.Minute)
			if err := stop(); err != nil || slow.Count() != 200 {
				t.Errorf("limit %d: %v, %d of 200 were sent to the slow one", limit, err, slow.Count())
			}
			bound := limit
			if limit == 0 {
				bound = 7
			}
			if _, ever := rt.at("slow.example"); ever != bound {
				t.Errorf("limit %d: up to %d at once to the slow one, want %d", limit, ever, bound)
			}
		})
	}
}

// TestRunBesideAPIsThatHang: an API that never answers does not keep another from its turn, whenever that has something to
// send: OriginWorkers is less than ResumeWorkers if nobody sets it. Beside several that hang a lower one does it.
func TestRunBesideAPIsThatHang(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ workers, limit, hang, bound int }{
		{0, 0, 1, 7}, {2, 0, 1, 1}, {3, 0, 1, 2}, {16, 0, 1, 14}, {24, 0, 1, 21}, {0, 3, 2, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			healthy := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			hosts := wiretest.ByHost{"healthy.example": healthy}
			rt := watched(hosts)
			c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) { cfg.ResumeWorkers, cfg.OriginWorkers = tc.workers, tc.limit })
			for i := range tc.hang {
				host := fmt.Sprintf("hangs%d.example", i)
				hosts[host] = &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Hour}}}
				clienttest.EnqueueAt(t, c, host, 100)
			}
			stop := clienttest.Run(t, c)
			for i := range 50 { // for longer than the first operations have all their attempts
				time.Sleep(3 * time.Second)
				for n := range 5 {
					key := oncehttp.Key(fmt.Sprintf("%d.%d", i, n))
					if err := c.Enqueue(clienttest.Request(t, "POST", "https://healthy.example/", "{}"), key); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if sent := healthy.Count(); sent != 5*(i+1) {
					t.Fatalf("%+v: %d of %d were sent at once, while others hang", tc, sent, 5*(i+1))
				}
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if _, ever := rt.at("hangs0.example"); ever != tc.bound {
				t.Errorf("%+v: up to %d at once to one that hangs", tc, ever)
			}
		})
	}
}

// TestRunSharesTheWorkers: two slow APIs have half of the workers each.
func TestRunSharesTheWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 10 * time.Second}}}
		rt := watched(slow)
		c, _ := clienttest.New(t, rt, nil)
		clienttest.EnqueueAt(t, c, "one.example", 40)
		clienttest.EnqueueAt(t, c, "two.example", 8)
		stop := clienttest.Run(t, c)
		time.Sleep(9 * time.Second)
		one, _ := rt.at("one.example")
		two, _ := rt.at("two.example")
		if one != 4 || two != 4 {
			t.Errorf("%d and %d at once, want 4 and 4 of 8 workers", one, two)
		}
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil || slow.Count() != 48 {
			t.Errorf("%v, %d of 48 were sent", err, slow.Count())
		}
	})
}

// TestLimiter: each send waits for the limiter of its origin, those of Do and later attempts too, and others do not.
func TestLimiter(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		limited, free := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 201}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		one := &clienttest.Pace{Period: time.Minute}
		c, _ := clienttest.New(t, wiretest.ByHost{"limited.example": limited, "free.example": free}, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Retry.MaxElapsed = time.Hour
			cfg.Limiter = func(origin string) oncehttp.Limiter {
				if origin == "https://limited.example:443" {
					return one
				}
				return nil
			}
		}))
		start := time.Now()
		if _, err := c.DoKey(clienttest.Request(t, "POST", "https://limited.example/", "{}"), "do"); err != nil {
			t.Fatal(err)
		}
		clienttest.EnqueueAt(t, c, "limited.example", 3)
		clienttest.EnqueueAt(t, c, "free.example", 3)
		stop := clienttest.Run(t, c)
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for i, s := range limited.All() {
			if at := s.At.Sub(start); at != time.Duration(i)*time.Minute {
				t.Errorf("send %d to the limited one after %v, want one a minute", i, at)
			}
		}
		if limited.Count() != 5 || free.Count() != 3 || free.All()[2].At.Sub(start) > 3*time.Minute {
			t.Errorf("%d sends and %d", limited.Count(), free.Count())
		}
	})
}

// TestLimiterRefuses: what the limiter refuses is not sent, and Do says so.
func TestLimiterRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Limiter = func(string) oncehttp.Limiter { return clienttest.Refuser{} }
		})
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, clienttest.ErrBurst) || w.Count() != 0 {
			t.Errorf("%v after %d sends, want ErrNoEffect and the limiter's error", err, w.Count())
		}
	})
}

// TestRunLimiterRefuses: an operation whose limiter returns an error is left as never sent and due as before, this client's Run tries it ever more seldom, and says
// so each time. Once the limiter lets it start, it is sent.
func TestRunLimiterRefuses(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		var out clienttest.Log
		var told, asked, opened atomic.Int32
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Logger = out.Logger()
			cfg.EnqueueMaxAge = 100 * time.Hour
			cfg.Limiter = func(string) oncehttp.Limiter {
				if asked.Add(1); opened.Load() == 1 {
					return nil
				}
				return clienttest.Refuser{}
			}
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventFinished && errors.Is(e.Err, clienttest.ErrBurst) {
					told.Add(1)
				}
			}
		}))
		clienttest.Enqueue(t, c, 1)
		stop := clienttest.Run(t, c)
		time.Sleep(time.Hour)
		rec := clienttest.Lookup(t, c, "k0")
		if n := told.Load(); n < 5 || n > 120 || asked.Load() > 2*n+2 {
			t.Errorf("asked %d times, told %d times in an hour", asked.Load(), n)
		}
		if rec.MaybeSent || rec.State != persist.StatePending || rec.Attempts != 0 || rec.NextAttempt.After(time.Now()) || w.Count() != 0 {
			t.Errorf("it is %v, maybe sent %t, due at %v, %d sends", rec.State, rec.MaybeSent, rec.NextAttempt, w.Count())
		}
		opened.Store(1)
		time.Sleep(16 * time.Minute)
		if err := stop(); err != nil || w.Count() != 1 || !out.Has("would exceed the burst") {
			t.Errorf("%v, %d sends once it may start; log %s", err, w.Count(), &out)
		}
	})
}

// TestRunStopsWithABacklog: when Run ends, what it has claimed and not begun is free for others at once.
func TestRunStopsWithABacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 10 * time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j)))
		clienttest.EnqueueAt(t, c, "one.example", 100)
		stop := clienttest.Run(t, c)
		time.Sleep(5 * time.Second)
		start := time.Now()
		if err := stop(); err != nil || time.Since(start) != 5*time.Second || w.Count() != 8 {
			t.Errorf("%v after %v and %d sends; want what 8 workers had on the wire", err, time.Since(start), w.Count())
		}
		left := 0
		for rec := range c.Unfinished(t.Context()) {
			if left++; rec.LeaseOwner != "" || rec.MaybeSent {
				t.Fatalf("%s is leased by %q, maybe sent %t", rec.Key, rec.LeaseOwner, rec.MaybeSent)
			}
		}
		if left != 92 {
			t.Errorf("%d left, want 92", left)
		}
	})
}

// damaging is a journal in which one operation of bad.example is damaged, so that nothing of that origin can be claimed.
type damaging struct{ *memory.Journal }

func (d damaging) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	if q.Origin == "https://bad.example:443" {
		return nil, time.Now(), persist.ErrCorrupt
	}
	return d.Journal.ClaimToSend(ctx, q, owner, lease, sending, n)
}

// TestRunBesideDamage: an operation that is damaged keeps no other from its turn, and is told of, now and then.
func TestRunBesideDamage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told int
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Journal, cfg.ResumeWorkers = damaging{memory.New()}, 1
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventBlocked && errors.Is(e.Err, persist.ErrCorrupt) {
					told++
				}
			}
		})
		clienttest.EnqueueAt(t, c, "bad.example", 1)
		clienttest.EnqueueAt(t, c, "good.example", 10)
		stop := clienttest.Run(t, c)
		time.Sleep(11 * time.Second)
		if err := stop(); err != nil || w.Count() != 10 || told == 0 || told > 30 {
			t.Errorf("%v, %d of 10 were sent in 11 s, told %d times", err, w.Count(), told)
		}
	})
}
