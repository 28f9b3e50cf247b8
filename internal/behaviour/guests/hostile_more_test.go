package guests_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

func closeInLoop(h *hostile) {
	c := h.client(nil)
	for i := range 3 {
		if err := c.Enqueue(payment(h.Context()), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
			h.Fatal(err)
		}
	}
	n := 0
	for rec, err := range c.Unfinished(h.Context()) {
		if n++; n == 1 {
			go func() { _ = c.Shutdown(h.Context()) }()
			synctest.Wait()
		}
		if err != nil {
			continue
		}
		if err := pay(h.Context(), c, oncehttp.Key(rec.Key)); !errors.Is(err, oncehttp.ErrClosed) {
			h.Errorf("Do in the loop of a closed client: %v", err)
		}
	}
	if sent := len(h.server.ledger()); sent != 0 {
		h.Errorf("%d sent after Close", sent)
	}
	h.closed(c)
}

func keptContext(h *hostile) {
	var kept context.Context
	c := h.client(func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			if kept == nil {
				kept = context.WithoutCancel(req.Context())
			}
			return nil
		}
	})
	if err := pay(h.Context(), c, "first"); err != nil {
		h.Fatal(err)
	}
	h.server.mu.Lock()
	h.server.delay = time.Second / 2
	h.server.mu.Unlock()
	var all sync.WaitGroup
	all.Go(func() {
		if err := pay(h.Context(), c, "second"); err != nil {
			h.Errorf("the second: %v", err)
		}
	})
	synctest.Wait()
	if err := pay(kept, c, "second"); err != nil {
		h.Errorf("a joiner with a kept context: %v", err)
	}
	if err := pay(kept, c, "first"); err != nil {
		h.Errorf("its own operation with a kept context: %v", err)
	}
	all.Wait()
	short, cancel := context.WithTimeout(kept, time.Second/10)
	defer cancel()
	if err := c.Run(short); err != nil { // as with any context: nobody waits for it
		h.Errorf("Run with a kept context: %v", err)
	}
	h.closed(c)
}

func mutexAround(h *hostile) {
	lock := make(chan struct{}, 1) // a mutex whose waiters the bubble knows
	var c *oncehttp.Client
	first := true
	c = h.client(func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			if first && req.Header.Get("Idempotency-Key") == "payment" {
				first = false
				lock <- struct{}{} // held by who waits for this very call
				<-lock
			}
			return nil
		}
	})
	lock <- struct{}{}
	var all sync.WaitGroup
	all.Go(func() { h.told("the operation", "payment", pay(h.Context(), c, "payment")) })
	synctest.Wait()
	err := pay(context.Background(), c, "payment") // with the mutex held
	h.told("who holds the mutex", "payment", err)
	if !errors.Is(err, oncehttp.ErrInFlight) {
		h.Errorf("who holds the mutex: %v", err)
	}
	<-lock
	all.Wait()
	if err := pay(h.Context(), c, "payment"); err != nil {
		h.Error(err)
	}
	h.closed(c)
}

func endlessNewKey(h *hostile) {
	var c *oncehttp.Client
	var calls atomic.Int32
	c = h.client(func(cfg *oncehttp.Config) {
		cfg.NewKey = func(req *http.Request) (oncehttp.Key, error) {
			if calls.Add(1) > 100 {
				return "", errors.New("it has no end")
			}
			for name, do := range map[string]func(*http.Request) (*http.Response, error){"Do": c.Do, "Transport": c.Transport().RoundTrip} {
				_, err := do(payment(req.Context()))
				h.told(name, "", err)
				if err == nil {
					h.Errorf("%s in NewKey, without a key, was sent", name)
				}
			}
			return "payment", nil
		}
	})
	if err := answered(c.Do(payment(h.Context()))); err != nil || calls.Load() != 1 {
		h.Errorf("%v, NewKey was called %d times", err, calls.Load())
	}
	h.closed(c)
}

// closesAt is a journal that closes a client in each of its writes, once each.
type closesAt struct {
	persist.Journal
	close func(method string)
}

func (j *closesAt) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	got, begun, err := j.Journal.Begin(ctx, rec)
	j.close("Begin")
	return got, begun, err
}

func (j *closesAt) Finish(ctx context.Context, rec persist.Record) error {
	j.close("Finish")
	return j.Journal.Finish(ctx, rec)
}

func closingJournal(h *hostile) {
	for _, method := range []string{"Begin", "Finish"} {
		var c *oncehttp.Client
		var inside error
		key := oncehttp.Key("at" + method)
		c = h.client(func(cfg *oncehttp.Config) {
			cfg.Journal = &closesAt{h.j, func(at string) {
				if at == method && inside == nil {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second/10)
					defer cancel()
					inside = c.Shutdown(ctx)
				}
			}}
		})
		h.told(method, key, pay(h.Context(), c, key))
		if !errors.Is(inside, context.DeadlineExceeded) {
			h.Errorf("Shutdown in %s: %v", method, inside)
		}
		h.closed(c)
	}
}

func otherAccountInside(h *hostile) {
	var c *oncehttp.Client
	inside := false
	c = h.client(func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			if inside {
				return nil
			}
			inside = true
			other := oncehttp.ContextWithAccount(req.Context(), "bob")
			if err := c.Settle(other, "payment", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); !errors.Is(err, persist.ErrNotFound) {
				h.Errorf("Settle of another's: %v", err)
			}
			if err := pay(other, c, "bob's"); err != nil {
				h.Errorf("bob's: %v", err)
			}
			return nil
		}
	})
	if err := pay(oncehttp.ContextWithAccount(h.Context(), "alice"), c, "payment"); err != nil {
		h.Error(err)
	}
	h.closed(c)
}

func swarm(h *hostile) {
	var c *oncehttp.Client
	var all sync.WaitGroup
	var inside atomic.Bool
	c = h.client(func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			if inside.Swap(true) {
				return nil
			}
			for i := range 100 {
				all.Go(func() {
					key := oncehttp.Key([]string{"payment", "other", "third"}[i%3])
					h.told("of the swarm", key, pay([]context.Context{req.Context(), context.Background()}[i%2], c, key))
				})
			}
			return nil
		}
	})
	if err := pay(h.Context(), c, "payment"); err != nil {
		h.Error(err)
	}
	all.Wait()
	for _, key := range []oncehttp.Key{"payment", "other", "third"} {
		if err := pay(h.Context(), c, key); err != nil {
			h.Errorf("%s again: %v", key, err)
		}
	}
	h.closed(c)
}
