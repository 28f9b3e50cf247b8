package guests_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Uses of callbacks and Close that somebody chose who had not seen the code. Each ends within 5 s, sends each key once, and is told the
// truth.

// hostile is what one such use has.
type hostile struct {
	*testing.T
	j      persist.Journal
	server *server
}

// client returns a client on the journal.
func (h *hostile) client(set func(cfg *oncehttp.Config)) *oncehttp.Client {
	cfg := oncehttp.Config{Journal: h.j, Transport: h.server, Retry: policy(), Origins: []string{"https://api.example.com"}}
	if set != nil {
		set(&cfg)
	}
	c, err := oncehttp.New(cfg)
	if err != nil {
		h.Fatal(err)
	}
	return c
}

// told checks that an error has exactly one verdict, and that the operation was not sent where that is "no effect".
func (h *hostile) told(what string, key oncehttp.Key, err error) {
	if err == nil {
		return
	}
	n := 0
	for _, verdict := range []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown} {
		if errors.Is(err, verdict) {
			n++
		}
	}
	if n != 1 {
		h.Errorf("%s: %v matches %d verdicts", what, err, n)
	}
	if sent := h.server.ledger()[string(key)]; errors.Is(err, oncehttp.ErrNoEffect) && sent > 0 {
		h.Errorf("%s: %v; it was sent %d times", what, err, sent)
	}
}

// pay sends a payment.
func pay(ctx context.Context, c *oncehttp.Client, key oncehttp.Key) error {
	return answered(c.DoKey(payment(ctx), key))
}

// hostiles are the uses, by name.
var hostiles = map[string]func(h *hostile){
	"Observe closes the client beside a joiner and a newcomer": closeAtObserve,
	"Authorize sends the request that it was given":            sendOwnRequest,
	"a body waits for its own key in a goroutine":              bodyOfItself,
	"a ring through two clients":                               ringOfTwo,
	"a ring of three keys begun at once":                       ringOfThree,
	"Observe panics after the answer was recorded":             panicAfterTheEnd,
	"a Limiter ends its goroutine in Run, then Shutdown":       exitInRun,
	"Close in a loop that goes on":                             closeInLoop,
	"a context that was kept":                                  keptContext,
	"a mutex around a call, and a call around the mutex":       mutexAround,
	"NewKey without an end":                                    endlessNewKey,
	"a journal that closes its client":                         closingJournal,
	"Authorize asks for its operation with another account":    otherAccountInside,
	"a hundred goroutines of Authorize that nobody waits for":  swarm,
}

// TestHostileUses runs each on memory and bolt.
func TestHostileUses(t *testing.T) {
	t.Parallel()
	for name, use := range hostiles {
		for _, kind := range []string{"memory", "bolt"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					h := &hostile{t, memory.New(), &server{sends: map[string]int{}}}
					if kind == "bolt" {
						j, err := bolt.Open(filepath.Join(dir, "j.db"), bolt.Options{})
						if err != nil {
							t.Fatal(err)
						}
						h.j = j
					}
					began, over := time.Now(), make(chan struct{})
					go func() { defer close(over); use(h) }()
					select {
					case <-over:
					case <-time.After(time.Hour):
						buf := make([]byte, 1<<20)
						t.Fatalf("it hangs:\n%s", buf[:runtime.Stack(buf, true)])
					}
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("it took %v", took)
					}
					for key, n := range h.server.ledger() {
						if n != 1 {
							t.Errorf("%q was sent %d times", key, n)
						}
					}
					synctest.Wait()
					if err := h.j.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// closed checks that a client ends.
func (h *hostile) closed(clients ...*oncehttp.Client) {
	for _, c := range clients {
		if err := c.Close(); err != nil {
			h.Errorf("Close: %v", err)
		}
	}
}

func closeAtObserve(h *hostile) {
	var c *oncehttp.Client
	var inside error
	var all sync.WaitGroup
	c = h.client(func(cfg *oncehttp.Config) {
		cfg.Observe = func(_ context.Context, e oncehttp.Event) {
			if e.Kind != oncehttp.EventAttempt || inside != nil {
				return
			}
			all.Go(func() {
				err := pay(context.Background(), c, "payment")
				h.told("the joiner", "payment", err)
			})
			synctest.Wait()
			inside = c.Close()
			all.Go(func() {
				err := pay(context.Background(), c, "late")
				h.told("the newcomer", "late", err)
				if !errors.Is(err, oncehttp.ErrClosed) {
					h.Errorf("a newcomer: %v", err)
				}
			})
		}
	})
	h.told("the operation", "payment", pay(h.Context(), c, "payment"))
	all.Wait()
	if !errors.Is(inside, oncehttp.ErrStillRunning) {
		h.Errorf("Close inside: %v", inside)
	}
	h.closed(c)
}

func sendOwnRequest(h *hostile) {
	var c *oncehttp.Client
	inside := false
	c = h.client(func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			if inside {
				return nil
			}
			inside = true
			for name, do := range map[string]func(*http.Request) (*http.Response, error){
				"Do": c.Do, "DoKey": func(req *http.Request) (*http.Response, error) { return c.DoKey(req, "payment") },
				"Transport": c.Transport().RoundTrip,
			} {
				_, err := do(req) // its key is in it
				h.told(name, "payment", err)
				if !errors.Is(err, oncehttp.ErrInFlight) {
					h.Errorf("%s of the request itself: %v", name, err)
				}
			}
			_, err := c.DoKey(req, "elsewhere") // it names two keys
			h.told("another key", "elsewhere", err)
			if err == nil {
				h.Error("a request with two keys was sent")
			}
			return nil
		}
	})
	if err := pay(h.Context(), c, "payment"); err != nil {
		h.Error(err)
	}
	h.closed(c)
}

func bodyOfItself(h *hostile) {
	c := h.client(nil)
	req := payment(h.Context())
	var inside error
	visited := false
	req.GetBody, req.Body = nil, &visitingBody{ReadCloser: req.Body, read: func() {
		if visited {
			return
		}
		visited = true
		done := make(chan struct{})
		go func() { defer close(done); inside = pay(context.Background(), c, "payment") }()
		<-done
	}}
	err := answered(c.DoKey(req, "payment"))
	if err != nil || inside != nil { // there is no operation yet while a body is read
		h.Errorf("%v, %v", err, inside)
	}
	h.closed(c)
}

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
	var c *oncehttp.Client
	c = h.client(func(cfg *oncehttp.Config) {
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
