package guests_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
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
	cfg := oncehttp.Config{Journal: h.j, Transport: h.server, Retry: policy(), Origins: []string{"https://api.example.com"}, Operation: oncehttp.Writes}
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
				dir := testrun.Dir(t)
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
