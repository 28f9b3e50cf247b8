package guests_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
)

func ringOfTwo(h *hostile) {
	for _, own := range []bool{true, false} {
		var clients [2]*oncehttp.Client
		keys := [2]oncehttp.Key{oncehttp.Key(fmt.Sprint("a", own)), oncehttp.Key(fmt.Sprint("b", own))}
		var visits atomic.Int32
		for i := range clients {
			clients[i] = h.client(func(cfg *oncehttp.Config) {
				cfg.Authorize = func(req *http.Request) error {
					if visits.Add(1) > 2 { // an attempt that such a wait outlasts is made again
						return nil
					}
					ctx := req.Context()
					if !own {
						ctx = context.Background()
					}
					h.told("inside", keys[1-i], pay(ctx, clients[1-i], keys[1-i]))
					return nil
				}
			})
		}
		if err := pay(h.Context(), clients[0], keys[0]); err != nil {
			h.Errorf("own context %t: %v", own, err)
		}
		h.closed(clients[:]...)
	}
}

func ringOfThree(h *hostile) {
	next := map[string]oncehttp.Key{"a": "b", "b": "c", "c": "a"}
	var c *oncehttp.Client
	var arrived sync.WaitGroup
	arrived.Add(3)
	var seen sync.Map
	c = h.client(func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			key := req.Header.Get("Idempotency-Key")
			if _, again := seen.LoadOrStore(key, true); again {
				return nil
			}
			arrived.Done()
			arrived.Wait()
			done := make(chan struct{})
			go func() {
				defer close(done)
				h.told("inside "+key, next[key], pay(context.Background(), c, next[key]))
			}()
			<-done
			return nil
		}
	})
	var all sync.WaitGroup
	for key := range next {
		all.Go(func() { h.told(key, oncehttp.Key(key), pay(h.Context(), c, oncehttp.Key(key))) })
	}
	all.Wait()
	for key := range next {
		if err := pay(h.Context(), c, oncehttp.Key(key)); err != nil {
			h.Errorf("%s again: %v", key, err)
		}
	}
	h.closed(c)
}

func panicAfterTheEnd(h *hostile) {
	panics := true
	c := h.client(func(cfg *oncehttp.Config) {
		cfg.Observe = func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventFinished && panics {
				panics = false
				panic("the user's")
			}
		}
	})
	func() {
		defer func() {
			if recover() == nil {
				h.Error("the panic does not reach the caller")
			}
		}()
		_ = pay(h.Context(), c, "payment")
	}()
	if err := pay(h.Context(), c, "payment"); err != nil {
		h.Errorf("the same key again: %v", err)
	}
	h.closed(c)
}

func exitInRun(h *hostile) {
	var exits atomic.Int32
	c := h.client(func(cfg *oncehttp.Config) {
		cfg.Limiter = func(string) oncehttp.Limiter {
			if exits.Add(1) <= 2 {
				runtime.Goexit()
			}
			return nil
		}
	})
	for i := range 5 {
		if err := c.Enqueue(payment(h.Context()), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
			h.Fatal(err)
		}
	}
	ran := make(chan error, 1)
	go func() { ran <- c.Run(h.Context()) }()
	time.Sleep(time.Second)
	if sent := len(h.server.ledger()); sent != 3 {
		h.Errorf("%d sent of the three that did not crash", sent)
	}
	ctx, cancel := context.WithTimeout(h.Context(), time.Second)
	defer cancel()
	if err := c.Shutdown(ctx); err != nil {
		h.Error(err)
	}
	if err := <-ran; !errors.Is(err, oncehttp.ErrClosed) {
		h.Errorf("Run: %v", err)
	}
	h.closed(c)
}
