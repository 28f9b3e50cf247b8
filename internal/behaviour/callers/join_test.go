package callers_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
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

// unresolved leaves an operation under a generated key whose answer was lost.
func unresolved(t *testing.T, j persist.Journal) oncehttp.Key {
	t.Helper()
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
	_, err := c.Do(clienttest.Post(t, "{}"))
	var e *oncehttp.Error
	if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Minute)
	return e.Key
}

// TestKeylessWhileItIsTakenUp: from the first moment of a Resume, or of a
// Settle, the standing operation is in doubt as it was before.
func TestKeylessWhileItIsTakenUp(t *testing.T) {
	t.Parallel()
	take := map[string]func(*testing.T, *oncehttp.Client, oncehttp.Key){
		"Resume": func(t *testing.T, c *oncehttp.Client, _ oncehttp.Key) { clienttest.Resume(t, c) },
		"DoKey": func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			_, _ = c.DoKey(clienttest.Post(t, "{}"), key)
		},
		"Settle": func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			_ = c.Settle(t.Context(), key, oncehttp.Resolution{Effect: oncehttp.EffectHappened})
		},
	}
	for name, f := range take {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := &journaltest.Faulty{Journal: memory.New()}
				key := unresolved(t, j)
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				tried, within := 0, false
				hook := func() error {
					if within {
						return nil
					}
					within = true
					defer func() { within = false }()
					if !taken(t, c, key) {
						return nil
					}
					tried++
					_, err := c.Do(clienttest.Post(t, "{}"))
					if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || len(w.Keys()) > 1 {
						t.Errorf("a keyless request meanwhile: %v, keys on the wire %v", err, w.Keys())
					}
					return nil
				}
				j.OnGet, j.OnUpdate, j.OnFinish, j.OnBegun = hook, hook, hook, hook
				f(t, c, key)
				if tried == 0 {
					t.Error("no keyless request was made meanwhile")
				}
				for k := range w.Keys() {
					if k != string(key) {
						t.Errorf("sent under %q, want %q only", k, key)
					}
				}
			})
		})
	}
}

// taken reports whether a call has the operation of a key.
func taken(t *testing.T, c *oncehttp.Client, key oncehttp.Key) bool {
	t.Helper()
	return clienttest.Lookup(t, c, key).LeaseOwner != ""
}

// TestConcurrentKeyless: two requests that are the same by nature are two
// operations, also where both are under way at once.
func TestConcurrentKeyless(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := c.Do(clienttest.Post(t, "{}")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if w.Count() != 8 || len(w.Keys()) != 8 {
			t.Errorf("%d sends under %d keys, want 8 of each", w.Count(), len(w.Keys()))
		}
	})
}

// TestJoinWhatDoesNotDrive: a Do that comes while its operation is being settled,
// reconciled or looked at waits for that, and then goes by what it finds.
func TestJoinWhatDoesNotDrive(t *testing.T) {
	t.Parallel()
	authorized := func(req *http.Request) error { return nil }
	rows := []struct {
		name   string
		reply  wiretest.Reply // of the first Do
		config func(*oncehttp.Config)
		act    func(t *testing.T, c *oncehttp.Client)
		status int
		is     error
	}{
		{"Settle", wiretest.Reply{Err: wiretest.ErrLost}, nil, func(t *testing.T, c *oncehttp.Client) {
			if err := clienttest.AbsentAsSeen(c, t.Context(), "k"); err != nil {
				t.Error(err)
			}
		}, 0, oncehttp.ErrSettled},
		{"Settle with an answer", wiretest.Reply{Err: wiretest.ErrLost}, nil, func(t *testing.T, c *oncehttp.Client) {
			_ = c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200}})
		}, 200, nil},
		{"Abandon", wiretest.Reply{Err: wiretest.ErrLost}, nil, func(t *testing.T, c *oncehttp.Client) { _ = c.Abandon(t.Context(), "k") }, 0, oncehttp.ErrAbandoned},
		{"a Settle that fails", wiretest.Reply{Err: wiretest.ErrLost}, nil, func(t *testing.T, c *oncehttp.Client) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := c.Settle(ctx, "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err == nil {
				t.Error("no error")
			}
		}, 201, nil},
		{"Reconcile: happened", wiretest.Reply{Status: 301}, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{Effect: oncehttp.EffectHappened}, nil
			}
		}, func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, 0, oncehttp.ErrSettled},
		{"Reconcile: absent", wiretest.Reply{Status: 301}, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, nil
			}
		}, func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, 0, oncehttp.ErrSettled},
		{"Reconcile: still unknown", wiretest.Reply{Status: 301}, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{}, nil
			}
		}, func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, 0, oncehttp.ErrHeld},
		{"a Resume without credentials", wiretest.Reply{Err: wiretest.ErrLost}, nil, func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, 201, nil},
		{"a Resume with credentials", wiretest.Reply{Err: wiretest.ErrLost}, func(cfg *oncehttp.Config) { cfg.Authorize = authorized },
			func(t *testing.T, c *oncehttp.Client) { clienttest.Resume(t, c) }, 201, nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { joinWhatDoesNotDrive(t, r.reply, r.config, r.act, r.status, r.is) })
		})
	}
}

func joinWhatDoesNotDrive(t *testing.T, first wiretest.Reply, config func(*oncehttp.Config), act func(*testing.T, *oncehttp.Client), status int, is error) {
	j := &journaltest.Faulty{Journal: memory.New()}
	w := &wiretest.Wire{Replies: []wiretest.Reply{first, {Status: 201}}}
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.Journal, cfg.Retry.MaxAttempts = j, 1
		if config != nil {
			config(cfg)
		}
	})
	secret := func() *http.Request {
		req := clienttest.Post(t, "{}")
		req.Header.Set("Authorization", "Bearer x")
		return req
	}
	if _, err := c.DoKey(secret(), "k"); err == nil {
		t.Fatal("no error")
	}
	time.Sleep(time.Hour)
	var wg sync.WaitGroup
	joined := journaltest.Once(func() error {
		wg.Go(func() {
			resp, err := c.DoKey(secret(), "k")
			switch {
			case is != nil:
				if clienttest.ExactlyOne(t, err); !errors.Is(err, is) {
					t.Errorf("who joined: %v, want %v", err, is)
				}
			case err != nil || resp.StatusCode != status:
				t.Errorf("who joined: %v, %v; want status %d", resp, err, status)
			}
		})
		synctest.Wait()
		return nil
	})
	looks := false
	j.OnGet = func() error {
		if looks {
			return nil
		}
		looks = true
		defer func() { looks = false }()
		if taken(t, c, "k") { // not the look before it
			return joined()
		}
		return nil
	}
	act(t, c)
	wg.Wait()
}

// TestHeadersOfWhoLeavesAtTheLanding: a caller whose context ends in the moment in
// which the answer arrives gets the answer, and headers of its own, which no other
// caller of the same call can reach.
func TestHeadersOfWhoLeavesAtTheLanding(t *testing.T) {
	t.Parallel()
	const callers = 4
	var (
		joined sync.WaitGroup
		cancel func()
	)
	rt := wiretest.Func(func(req *http.Request) (*http.Response, error) {
		joined.Wait()
		time.Sleep(100 * time.Microsecond) // so that they wait, in all likelihood
		go cancel()
		return (&wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: "X-Id: own"}}}).RoundTrip(req)
	})
	c, _ := clienttest.New(t, rt, nil)
	for i := range 1000 {
		var ctx context.Context
		ctx, cancel = context.WithCancel(context.Background())
		var all sync.WaitGroup
		joined.Add(callers)
		for caller := range callers {
			all.Go(func() {
				req := clienttest.Post(t, "{}")
				if caller > 0 { // one stays
					req = req.WithContext(ctx)
				}
				joined.Done()
				resp, err := c.DoKey(req, oncehttp.Key("k"+strconv.Itoa(i)))
				if err != nil {
					return
				}
				if got := resp.Header["X-Id"]; len(got) != 1 || got[0] != "own" {
					t.Errorf("headers %q, which another caller has written to", got)
				}
				resp.Header["X-Id"][0] = "another's"
				resp.Header.Add("X-Id", "another's")
			})
		}
		all.Wait()
		cancel()
	}
}
