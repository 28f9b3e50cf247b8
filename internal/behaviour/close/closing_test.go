package close_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// closingBound is the longest time that Close may take where AttemptTimeout is a second.
const closingBound = 3 * time.Second

// stillRunning checks an error of Close, which names who still runs.
func stillRunning(t *testing.T, err error, names ...string) {
	t.Helper()
	if !errors.Is(err, oncehttp.ErrStillRunning) {
		t.Errorf("Close: %v", err)
		return
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("Close: %v; want %s", err, name)
		}
	}
}

// secondAttempts bounds an attempt by a second.
func secondAttempts(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = time.Second }

// TestCloseInside of user code is ErrStillRunning, a second after the cut, and names the function; the call goes on, and the client
// is over once it has returned.
func TestCloseInside(t *testing.T) {
	t.Parallel()
	for _, place := range crashesOf() {
		for _, how := range []string{"Do", "Resume", "Run"} {
			if how == "Do" && !slices.Contains(placesOfDo(), place) || how != "Do" && !slices.Contains(crashesOfPasses(), place) {
				continue
			}
			t.Run(place+" "+how, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) { closeInside(t, j, place, how) })
			})
		}
	}
}

// placesOfDo are the places that a Do reaches.
func placesOfDo() []string {
	return crashesOf("ProfileOf", "Answer.Close", "Journal.Get", "Journal.Secret", "Journal.Forget", "Journal.List", "Journal.Flush", "Journal.Sweep", "Journal.Update")
}

func closeInside(t *testing.T, j persist.Journal, place, how string) {
	var c *oncehttp.Client
	var inside error
	took := time.Duration(-1)
	shut := func() {
		began := time.Now()
		inside = c.Close()
		took = time.Since(began)
	}
	var crash *crasher
	var server *ledgerServer
	if how == "Do" {
		c, crash, server, _ = crashClient(t, j, place, func() { shut() })
		req := crashRequest(t, t.Context(), crash)
		req.Header.Set("X-Api-Key", "abc")
		var err error
		if place == "NewKey" {
			_, err = c.Do(req)
		} else {
			_, err = c.DoKey(req, "k1")
		}
		if err != nil {
			clienttest.ExactlyOne(t, err)
		}
	} else {
		c, crash, server, _ = enqueueCrash(t, j, place, func() { shut() })
		if how == "Resume" {
			for range c.Resume(t.Context()) {
			}
		} else if err := c.Run(t.Context()); !errors.Is(err, oncehttp.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
	}
	if !crash.hasFired() || took < 0 {
		t.Fatalf("%s was not reached", place)
	}
	if stillRunning(t, inside); took > closingBound {
		t.Errorf("Close took %v", took)
	}
	began := time.Now()
	if err := c.Close(); err != nil || time.Since(began) != 0 {
		t.Errorf("once all have returned: %v after %v", err, time.Since(began))
	}
	if server.sends("k1") > 1 {
		t.Errorf("%d sends", server.sends("k1"))
	}
}

// TestCloseNames what is not waited for: the function of the user.
func TestCloseNames(t *testing.T) {
	t.Parallel()
	for place, name := range map[string]string{
		"Authorize": "Config.Authorize", "NewKey": "Config.NewKey", "Token": "Config.Token", "Observe attempt": "Config.Observe",
		"Limiter": "Config.Limiter", "Limiter.Wait": "the Wait of a Limiter", "Transport": "Config.Transport",
		"Body.Read": "the body of a request", "KeepHeader": "Config.KeepHeader", "Journal.Begin": "Do",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c *oncehttp.Client
				var crash *crasher
				var err error
				c, crash, _, _ = crashClient(t, memory.New(), place, func() { err = c.Close() })
				req := crashRequest(t, t.Context(), crash)
				req.Header.Set("X-Api-Key", "abc")
				if place == "NewKey" {
					_, _ = c.Do(req)
				} else {
					_, _ = c.DoKey(req, "k")
				}
				stillRunning(t, err, name)
			})
		})
	}
}

// TestCloseInALoop over Unfinished or Resume: it names the loop, which ends.
func TestCloseInALoop(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		for _, over := range []string{"Unfinished", "Resume"} {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.On(j, secondAttempts))
			for i := range 3 {
				if err := c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint(over, i))); err != nil {
					t.Fatal(err)
				}
			}
			var errs []error
			var inside error
			body := func(err error) {
				if errs = append(errs, err); len(errs) == 1 {
					inside = c.Close()
				}
			}
			began := time.Now()
			if over == "Unfinished" {
				for _, err := range c.Unfinished(t.Context()) {
					body(err)
				}
			} else {
				for _, err := range c.Resume(t.Context()) {
					body(err)
				}
			}
			stillRunning(t, inside, "the body of a loop over "+over)
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("%s: it took %v", over, took)
			}
			if last := errs[len(errs)-1]; over == "Unfinished" && !errors.Is(last, oncehttp.ErrClosed) {
				t.Errorf("%s: %d times, the last error is %v", over, len(errs), last)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestCloseBesideAuthorize that does not return: two Closes and a Shutdown end, each at its time, and one more when all is over.
func TestCloseBesideAuthorize(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		stay := make(chan struct{})
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, secondAttempts, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(*http.Request) error { <-stay; return nil }
		}))
		var wg, closes sync.WaitGroup
		wg.Go(func() {
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) && !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("Do: %v", err)
			}
		})
		synctest.Wait()
		began := time.Now()
		for range 2 {
			closes.Go(func() {
				err := c.Close()
				if stillRunning(t, err, "Config.Authorize"); time.Since(began) != 2*time.Second {
					t.Errorf("Close took %v", time.Since(began))
				}
			})
		}
		closes.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			err := c.Shutdown(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, oncehttp.ErrStillRunning) || time.Since(began) != time.Second/2 {
				t.Errorf("Shutdown: %v after %v", err, time.Since(began))
			}
		})
		closes.Wait()
		wg.Go(func() {
			if err := c.Close(); !errors.Is(err, oncehttp.ErrStillRunning) {
				t.Errorf("a Close later: %v", err)
			}
		})
		synctest.Wait()
		close(stay)
		wg.Wait()
		if err := c.Close(); err != nil || w.Count() != 0 {
			t.Errorf("at the end: %v, %d sends", err, w.Count())
		}
	})
}

// TestClosedStartsNothing: every call of a closed client is ErrClosed, with a verdict; what passes through Transport is net/http.
func TestClosedStartsNothing(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		if err := c.Enqueue(clienttest.Post(t, "{}"), "stands"); err != nil {
			t.Fatal(err)
		}
		rec := clienttest.Lookup(t, c, "stands")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		absent := oncehttp.Resolution{Effect: oncehttp.EffectAbsent}
		_, errDo := c.Do(clienttest.Post(t, "{}"))
		_, errGet := c.Do(clienttest.Request(t, "GET", "https://api.example.com/", ""))
		_, errTrip := c.Transport().RoundTrip(clienttest.Post(t, `{"other":1}`))
		_, errPrepare := c.Prepare(clienttest.Post(t, "{}"), "new")
		_, errCapture := c.Capture(t.Context(), "new", func(hc *http.Client) error { _, err := hc.Do(clienttest.Post(t, "{}")); return err })
		_, errLookup := c.Lookup(t.Context(), "stands")
		_, errRedrive := c.Redrive(t.Context(), "stands")
		_, errUnsettle := c.Unsettle(t.Context(), "stands", "why")
		for name, got := range map[string]struct {
			err     error
			unknown bool
		}{
			"Do": {errDo, false}, "a GET by Do": {errGet, false}, "RoundTrip": {errTrip, false}, "Prepare": {errPrepare, false}, "Lookup": {errLookup, true},
			"Capture": {errCapture, true}, "Redrive": {errRedrive, true}, "Unsettle": {errUnsettle, true},
			"Enqueue":         {c.Enqueue(clienttest.Post(t, "{}"), "new"), false},
			"Enqueue, stands": {c.Enqueue(clienttest.Post(t, "{}"), "stands"), true},
			"Settle":          {c.Settle(t.Context(), "stands", absent, oncehttp.AsSeen(rec)), true},
			"Erase":           {c.Erase(t.Context(), "stands"), true},
			"Abandon":         {c.Abandon(t.Context(), "stands"), true},
			"Rekey":           {c.Rekey(t.Context(), "stands", "new", "why", oncehttp.AsSeen(rec)), true},
			"Assign":          {c.Assign(t.Context(), "stands", oncehttp.AsSeen(rec)), true},
		} {
			clienttest.ExactlyOne(t, got.err)
			if !errors.Is(got.err, oncehttp.ErrClosed) || errors.Is(got.err, oncehttp.ErrOutcomeUnknown) != got.unknown {
				t.Errorf("%s: %v", name, got.err)
			}
		}
		_, errSweep := c.Sweep(t.Context())
		for name, err := range map[string]error{
			"Sweep": errSweep, "Run": c.Run(t.Context()), "Unfinished": last(c.Unfinished(t.Context())), "Resume": last(c.Resume(t.Context())),
		} {
			if !errors.Is(err, oncehttp.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := c.Flush(t.Context()); err != nil || w.Count() != 0 {
			t.Errorf("Flush: %v; %d sends after Close", err, w.Count())
		}
		if _, err := c.StandardClient().Do(clienttest.Request(t, "GET", "https://api.example.com/", "")); err != nil || w.Count() != 1 {
			t.Errorf("a GET through Transport: %v, %d sends", err, w.Count())
		}
	})
}

// last returns the last error of a loop.
func last[T any](over func(func(T, error) bool)) (err error) {
	over(func(_ T, e error) bool { err = e; return true })
	return err
}

// TestCloseOfJoiners: who joined gets the answer that is on the wire. Who waits for another client's call leaves at the cut, and that
// goes on; another client's joiner takes the call over.
func TestCloseOfJoiners(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		answers time.Duration // of the first attempt; the next one is answered at once
		begins  int           // which client begins
		errs    [2]error      // of the client that is closed, and the other
		sends   int
	}{
		{"answered in time", time.Second / 2, 0, [2]error{nil, nil}, 1},
		{"answered in time, joined", time.Second / 2, 1, [2]error{nil, nil}, 1},
		{"not answered", time.Minute, 0, [2]error{oncehttp.ErrClosed, nil}, 2},
		{"not answered, joined", 2 * time.Second, 1, [2]error{oncehttp.ErrClosed, nil}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: row.answers}, {Status: 201}}}
				var clients [2]*oncehttp.Client
				for i := range clients {
					clients[i], _ = clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
						cfg.Retry.AttemptTimeout = time.Second
						if i == 1 {
							cfg.Retry.AttemptTimeout = time.Hour
						}
					}))
				}
				var wg sync.WaitGroup
				for i := range 4 { // two of each client
					who := (i + row.begins) % 2
					wg.Go(func() {
						_, err := clients[who].DoKey(clienttest.Post(t, "{}"), "k")
						if !errors.Is(err, row.errs[who]) {
							t.Errorf("client %d: %v, want %v", who, err, row.errs[who])
						}
						if err != nil {
							if clienttest.ExactlyOne(t, err); errors.Is(err, oncehttp.ErrNoEffect) { // final, where the other client was faster
								t.Errorf("client %d: %v", who, err)
							}
						}
					})
					synctest.Wait()
				}
				began := time.Now()
				if err := clients[0].Close(); err != nil || time.Since(began) > time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				wg.Wait()
				if w.Count() != row.sends {
					t.Errorf("%d sends, want %d", w.Count(), row.sends)
				}
			})
		})
	}
}
