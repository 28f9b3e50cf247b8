package callbacks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// TestTurnsAreLent: what Authorize or Token waits for may be an operation that waits for its own turn behind those that it is called
// for. All nine are sent, at once, with the context that the function got and without it.
func TestTurnsAreLent(t *testing.T) {
	t.Parallel()
	const awaited = "api.example.com8"
	for _, guest := range []string{"Authorize", "Token"} {
		for _, own := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, own context %t", guest, own), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					var c *oncehttp.Client
					queued := make(chan struct{}) // closed when the operation waits behind the others
					visit := func(ctx context.Context, key string) error {
						if key == awaited {
							return nil
						}
						<-queued
						if !own {
							ctx = context.Background()
						}
						resp, err := c.DoKey(clienttest.Request(t, "POST", "https://api.example.com/", "{}").WithContext(ctx), awaited)
						if err == nil {
							resp.Body.Close()
						}
						return err
					}
					c, _ = clienttest.New(t, w, func(cfg *oncehttp.Config) {
						if guest == "Authorize" {
							cfg.Authorize = func(req *http.Request) error { return visit(req.Context(), wiretest.Key(req.Header)) }
							return
						}
						cfg.Profile = clienttest.TokenProfile()
						cfg.Token = func(ctx context.Context, rec persist.Record) (string, error) { return rec.Key, visit(ctx, rec.Key) }
					})
					clienttest.EnqueueAt(t, c, "api.example.com", 8)
					stop := clienttest.Run(t, c)
					if err := c.Enqueue(clienttest.Request(t, "POST", "https://api.example.com/", "{}"), awaited); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					close(queued)
					began := time.Now()
					time.Sleep(time.Second / 2)
					if w.Count() != 9 || len(w.Keys()) != 9 {
						t.Errorf("%d of 9 sent after %v: %v", w.Count(), time.Since(began), w.Keys())
					}
					if err := stop(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestQueueBehindGuests: what is queued behind operations that are in a function of the user goes back to the journal within two
// thirds of a lease, and another process sends it. They stay claimed, are sent by nobody else, and once the function returns.
func TestQueueBehindGuests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		one, two := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		back := make(chan struct{})
		stuck, _ := clienttest.New(t, one, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.ResumeWorkers = 1
			cfg.Retry.AttemptTimeout = time.Hour
			cfg.Authorize = func(*http.Request) error { <-back; return nil }
		}))
		clienttest.EnqueueAt(t, stuck, "api.example.com", 6)
		stop := clienttest.Run(t, stuck)
		claimed := func() (n int) {
			for rec, err := range j.List(t.Context(), persist.Query{States: []persist.State{persist.StatePending}}) {
				if err != nil {
					t.Error(err)
				}
				if rec.Leased("", time.Now()) {
					n++
				}
			}
			return n
		}
		before := claimed()
		time.Sleep(20*time.Second + time.Millisecond)
		if after := claimed(); before < 4 || after != 2 {
			t.Errorf("%d claimed at first, %d after two thirds of a lease; want 4 at least, and 2", before, after)
		}
		other, _ := clienttest.New(t, two, clienttest.On(journaltest.NewLeasing(j), clienttest.AddsNothing))
		stopOther := clienttest.Run(t, other)
		time.Sleep(30 * time.Second)
		if two.Count() != 4 || one.Count() != 0 {
			t.Errorf("another process sent %d of 4, this one %d", two.Count(), one.Count())
		}
		close(back)
		synctest.Wait()
		time.Sleep(time.Second)
		if one.Count() != 2 || len(one.Keys()) != 2 {
			t.Errorf("%v was sent once Authorize had returned, want two", one.Keys())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := stopOther(); err != nil {
			t.Error(err)
		}
	})
}

// TestTransportHoldsItsTurn: what a Transport, or Observe, waits for may be an operation that waits for its turn behind the sends. It
// is told that that is in flight, AttemptTimeout and an eighth later at most, and all nine are sent once.
func TestTransportHoldsItsTurn(t *testing.T) {
	t.Parallel()
	const awaited = "api.example.com8"
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own context %t", own), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				var c *oncehttp.Client
				queued := make(chan struct{}) // closed when the operation waits behind the others
				c, _ = clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Retry.AttemptTimeout = time.Second
					cfg.Transport = wiretest.Func(func(req *http.Request) (*http.Response, error) {
						if wiretest.Key(req.Header) == awaited {
							return w.RoundTrip(req)
						}
						<-queued
						ctx := req.Context()
						if !own {
							ctx = context.Background()
						}
						began := time.Now()
						_, err := c.DoKey(clienttest.Request(t, "POST", "https://api.example.com/", "{}").WithContext(ctx), awaited)
						if err != nil && !errors.Is(err, oncehttp.ErrInFlight) || time.Since(began) > 1125*time.Millisecond {
							t.Errorf("%v after %v", err, time.Since(began))
						}
						return w.RoundTrip(req)
					})
				})
				clienttest.EnqueueAt(t, c, "api.example.com", 8)
				stop := clienttest.Run(t, c)
				if err := c.Enqueue(clienttest.Request(t, "POST", "https://api.example.com/", "{}"), awaited); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				close(queued)
				time.Sleep(5 * time.Second)
				if w.Count() != 9 || len(w.Keys()) != 9 {
					t.Errorf("%d of 9 sent: %v", w.Count(), w.Keys())
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestTurnsAreLentAtHops: Authorize of a request that follows a redirect lends its turn, too.
func TestTurnsAreLentAtHops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const awaited = "api.example.com8"
		there, w := "Location: https://api.example.com/there", &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		var c *oncehttp.Client
		queued := make(chan struct{}) // closed when the operation waits behind the others
		c, _ = clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Transport = wiretest.Func(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path != "/there" && wiretest.Key(req.Header) != awaited {
					return (&wiretest.Wire{Replies: []wiretest.Reply{{Status: 307, Header: there}}}).RoundTrip(req)
				}
				return w.RoundTrip(req)
			})
			cfg.Authorize = func(req *http.Request) error {
				if req.URL.Path != "/there" {
					return nil
				}
				<-queued
				_, err := c.DoKey(clienttest.Request(t, "POST", "https://api.example.com/", "{}").WithContext(req.Context()), awaited)
				return err
			}
		})
		clienttest.EnqueueAt(t, c, "api.example.com", 8)
		stop := clienttest.Run(t, c)
		if err := c.Enqueue(clienttest.Request(t, "POST", "https://api.example.com/", "{}"), awaited); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(queued)
		time.Sleep(time.Second / 2)
		if w.Count() != 9 || len(w.Keys()) != 9 {
			t.Errorf("%d of 9 sent: %v", w.Count(), w.Keys())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
