// Package close_test holds that Close ends everything, in its time, and that a panic of the user's code leaves nothing behind.
package close_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestClose: nothing more is started, what is on the wire comes to its end, waits
// are cut, and afterwards nothing of the client runs (a bubble ends only then).
func TestClose(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 10 * time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		waiting, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 50"}}}, clienttest.On(j))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "wired"); err != nil {
				t.Errorf("on the wire: %v", err)
			}
		})
		wg.Go(func() {
			_, err := waiting.DoKey(clienttest.Post(t, "{}"), "waiting")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("waiting: %v", err)
			}
		})
		time.Sleep(time.Second)
		start := time.Now()
		if err := waiting.Close(); err != nil || time.Since(start) != 0 {
			t.Errorf("the wait was cut after %v, %v", time.Since(start), err)
		}
		if err := c.Close(); err != nil || time.Since(start) != 9*time.Second {
			t.Errorf("the answer was waited for %v, %v", time.Since(start), err)
		}
		wg.Wait()
		for name, err := range map[string]error{
			"Do": func() error { _, err := c.Do(clienttest.Post(t, "{}")); return err }(), "Enqueue": c.Enqueue(clienttest.Post(t, "{}"), "new"),
			"DoKey": func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "new"); return err }(),
		} {
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) || !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("%s after Close: %v", name, err)
			}
		}
		_, err := c.DoKey(clienttest.Post(t, "{}"), "waiting")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("a key that stands, after Close: %v", err)
		}
		if err := c.Run(t.Context()); !errors.Is(err, oncehttp.ErrClosed) {
			t.Errorf("Run after Close: %v", err)
		}
		yielded := 0
		for _, err := range c.Resume(t.Context()) {
			yielded++
			var e *oncehttp.Error
			if !errors.Is(err, oncehttp.ErrClosed) || errors.As(err, &e) {
				t.Errorf("Resume after Close: %v", err)
			}
		}
		if err := c.Close(); err != nil || w.Count() != 1 || yielded != 1 {
			t.Errorf("a second Close: %v; %d sends, %d yielded", err, w.Count(), yielded)
		}
		// The other's keys are free: nothing is left under way.
		next, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j))
		if _, err := next.DoKey(clienttest.Post(t, "{}"), "waiting"); err != nil {
			t.Errorf("another client: %v", err)
		}
	})
}

// TestCloseIsBounded by the attempt timeout; then what goes on is cut.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}}}, func(cfg *oncehttp.Config) {
			cfg.Retry.AttemptTimeout = time.Minute
			cfg.Reconcile = func(ctx context.Context, _ persist.Record) (oncehttp.Resolution, error) {
				<-ctx.Done()
				return oncehttp.Resolution{}, ctx.Err()
			}
		})
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "held")
		var wg sync.WaitGroup
		wg.Go(func() { clienttest.Resume(t, c) })
		time.Sleep(time.Second)
		start := time.Now()
		if err := c.Close(); err != nil || time.Since(start) != time.Minute {
			t.Errorf("Close took %v, %v; want the attempt timeout", time.Since(start), err)
		}
		wg.Wait()
	})
}

// TestCloseOfOneOfTwo: on one journal, who joined the call of a client that
// closes goes on by itself.
func TestCloseOfOneOfTwo(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 50"}, {Status: 201}}}
		first, _ := clienttest.New(t, w, clienttest.On(j))
		second, _ := clienttest.New(t, w, clienttest.On(j))
		var wg sync.WaitGroup
		for i, c := range []*oncehttp.Client{first, second} {
			wg.Go(func() {
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if (i == 0) != errors.Is(err, oncehttp.ErrClosed) {
					t.Errorf("client %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		first.Close()
		wg.Wait()
		if w.Count() != 2 {
			t.Errorf("%d sends", w.Count())
		}
	})
}

// TestGoexit: a function that ends the goroutine (as t.FailNow does) leaves nobody
// waiting for ever. It ends the caller's own goroutine only where that makes the
// attempts, because its context cannot end.
func TestGoexit(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"own goroutine": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				if leaves {
					ctx = t.Context()
				}
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) {
					cfg.Authorize = func(*http.Request) error { time.Sleep(time.Second); runtime.Goexit(); return nil }
				})
				var wg sync.WaitGroup
				wg.Go(func() {
					_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
					if !leaves {
						t.Error("the goroutine went on")
					}
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("first: %v", err)
					}
				})
				synctest.Wait()
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k") // joins
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("joined: %v", err)
				}
				wg.Wait()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestCloseOwnedJournal: what Open opened is closed with the client.
func TestCloseOwnedJournal(t *testing.T) {
	t.Parallel()
	path := testrun.Dir(t) + "/j.db"
	for range 2 {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, err := oncehttp.Open(path, oncehttp.Config{Transport: w})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		_, err = c.DoKey(clienttest.Post(t, "{}"), "k2")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	j := memory.New()
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j))
	c.Close()
	if _, err := j.Get(t.Context(), persist.ID{Key: "k"}); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("a journal of the caller's own was closed: %v", err)
	}
}

// TestCloseLeavesNoConnection: the connections of a client's own Transport end with the client; those of the caller's stay.
func TestCloseLeavesNoConnection(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		var opened atomic.Int32
		closed := make(chan struct{}, 9)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				opened.Add(1)
			case http.StateClosed:
				closed <- struct{}{}
			}
		}
		server.Start()
		cfg, theirs := oncehttp.Config{Journal: memory.New()}, &http.Transport{}
		if !own {
			cfg.Transport = theirs
		}
		c, err := oncehttp.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.DoKey(clienttest.Request(t, "POST", server.URL, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if own {
			select {
			case <-closed:
			case <-time.After(10 * time.Second):
				t.Error("after Close a connection of its own Transport is open")
			}
		} else if _, err := theirs.RoundTrip(clienttest.Request(t, "GET", server.URL, "")); err != nil || opened.Load() != 1 {
			t.Errorf("%v; after Close the caller's Transport has opened %d connections, want 1", err, opened.Load())
		}
		server.Close()
	}
}

// TestNewKeyAfterClose: after Close no NewKey of a user's own is called. Nobody knows the key then, nor what stands under it.
func TestNewKeyAfterClose(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		asked := 0
		c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { asked++; return "made", nil }
		}))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		body := &closedBody{Reader: strings.NewReader("{}")}
		req := clienttest.Post(t, "{}")
		req.Body, req.GetBody = body, nil
		_, err := c.Do(req)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrKeyInvalid) {
			t.Errorf("Do: %v", err)
		}
		if _, err := c.StandardClient().Do(clienttest.Post(t, "{}")); !errors.Is(err, oncehttp.ErrClosed) {
			t.Errorf("by the StandardClient: %v", err)
		}
		if asked != 0 || !body.closed {
			t.Errorf("NewKey was called %d times; the body was closed: %t", asked, body.closed)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "named"); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("under a key of the call's own: %v", err)
		}
	})
}

// closedBody is a body that notes its Close.
type closedBody struct {
	io.Reader
	closed bool
}

func (b *closedBody) Close() error { b.closed = true; return nil }

// TestClosedKeyless: a client that closes its journal, too, says ErrClosed to a call with a key and to one without, whoever makes the keys.
func TestClosedKeyless(t *testing.T) {
	t.Parallel()
	for name, newKey := range map[string]func(*http.Request) (oncehttp.Key, error){"random": nil, "of the request": oncehttp.KeyFromJSON(oncehttp.NewScope("orders"), "/of")} {
		c, err := oncehttp.Open(testrun.Dir(t)+"/journal.db", oncehttp.Config{Transport: &wiretest.Wire{}, Profile: clienttest.OwnProfile(), NewKey: newKey})
		clienttest.Must(t, err)
		clienttest.Must(t, c.Close())
		_, errDo := c.Do(clienttest.Post(t, `{"of":"one"}`))
		_, errKey := c.DoKey(clienttest.Post(t, `{"of":"one"}`), "k")
		for how, err := range map[string]error{"Do": errDo, "DoKey": errKey, "Enqueue": c.Enqueue(clienttest.Post(t, `{"of":"one"}`), "k")} {
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) {
				t.Errorf("keys %s, %s: %v", name, how, err)
			}
		}
	}
}
