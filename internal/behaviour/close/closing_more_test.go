package close_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
)

// TestCloseLeavesTheJournalToTheLast: what Open opened is closed when the last call has returned, and not before.
func TestCloseLeavesTheJournalToTheLast(t *testing.T) {
	t.Parallel()
	path := testrun.Dir(t) + "/j.db"
	synctest.Test(t, func(t *testing.T) {
		stay, w := make(chan struct{}), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		cfg := oncehttp.Config{
			Transport: w, Retry: oncehttp.Policy{AttemptTimeout: time.Second},
			Origins: []string{"https://api.example.com"}, Authorize: func(*http.Request) error { <-stay; return nil },
		}
		c, err := oncehttp.Open(path, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			clienttest.ExactlyOne(t, err)
		})
		synctest.Wait()
		stillRunning(t, c.Close(), "Config.Authorize")
		if _, err := oncehttp.Open(path, cfg); !errors.Is(err, persist.ErrLocked) {
			t.Errorf("Open of the same journal while a call goes on: %v", err)
		}
		close(stay)
		wg.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		next, err := oncehttp.Open(path, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		if _, err := next.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || w.Count() != 1 {
			t.Errorf("another client: %v, %d sends", err, w.Count())
		}
	})
}

// TestCloseAndStreams: Close waits for a Do of what is not journaled, and cuts it; what passes through Transport is net/http's.
func TestCloseAndStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Delay: 5 * time.Second}}}
		c, _ := clienttest.New(t, w, secondAttempts)
		put := func() *http.Request { // whose time counts from when its body was sent, of which this Transport tells nothing
			req := clienttest.Request(t, "PUT", "https://api.example.com/", "{}")
			req.Body = io.NopCloser(strings.NewReader("{}"))
			return req
		}
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Do(put())
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || time.Since(began) != time.Second {
				t.Errorf("Do: %v after %v", err, time.Since(began))
			}
		})
		wg.Go(func() {
			if _, err := c.Transport().RoundTrip(put()); err != nil || time.Since(began) != 5*time.Second {
				t.Errorf("RoundTrip: %v after %v", err, time.Since(began))
			}
		})
		synctest.Wait()
		if err := c.Close(); err != nil || time.Since(began) != time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		wg.Wait()
	})
}

// TestCloseAfterTheResponse: a call has left when its response is handed over, also where its body streams.
func TestCloseAfterTheResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: "all of it"}}}
		c, _ := clienttest.New(t, w, secondAttempts)
		resp, err := c.Do(clienttest.Request(t, "GET", "https://api.example.com/", ""))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := c.Close(); err != nil || time.Since(began) != 0 {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		if got := clienttest.Read(t, resp); got != "all of it" {
			t.Errorf("the body is %q", got)
		}
	})
}

// TestCrashInAbandon: what an undo asks is user code, too. Its panic goes on in the caller, the place of the operation is free, and
// the next Abandon ends it.
func TestCrashInAbandon(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"Authorize", "Transport", "Limiter.Wait", "Journal.Update", "Journal.Finish", "Journal.Flush", "Journal.Get", "Journal.List"} {
		for how, do := range crashes {
			t.Run(place+" "+how, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					crash := &crasher{place: place, do: do}
					crash.fired = true // until it is to be abandoned
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500}, {Status: 200}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Journal, cfg.Profile, cfg.Retry.MaxAttempts = crashJournal{j, crash}, servertest.Square(t), 1
						if set := crashPlaces[place]; set != nil {
							set(cfg, crash)
						}
					})
					if _, err := c.DoKey(servertest.SquarePay(t), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Fatal(err)
					}
					crash.mu.Lock()
					crash.fired = false
					crash.mu.Unlock()
					var err error
					end := endOf(func() { err = c.Abandon(context.Background(), "k", oncehttp.Undo()) })
					if !crash.hasFired() || end.returned || how == "panic" && end.panicked != crashText {
						t.Errorf("%+v, %v", end, err)
					}
					if err := c.Abandon(t.Context(), "k", oncehttp.Undo()); err != nil && !errors.Is(err, oncehttp.ErrAbandoned) {
						t.Errorf("again: %v", err)
					}
					if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateAbandoned {
						t.Errorf("it is %v", rec.State)
					}
				})
			})
		}
	}
}
