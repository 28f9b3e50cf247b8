package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
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
				bubble(t, func(t *testing.T) {
					w := &wire{replies: []reply{{status: 201}}}
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
						resp, err := c.DoKey(request(t, "POST", "https://api.example.com/", "{}").WithContext(ctx), awaited)
						if err == nil {
							resp.Body.Close()
						}
						return err
					}
					c, _ = newClient(t, w, func(cfg *oncehttp.Config) {
						if guest == "Authorize" {
							cfg.Authorize = func(req *http.Request) error { return visit(req.Context(), keyHeader(req.Header)) }
							return
						}
						cfg.Profile = tokenProfile()
						cfg.Token = func(ctx context.Context, rec persist.Record) (string, error) { return rec.Key, visit(ctx, rec.Key) }
					})
					enqueueAt(t, c, "api.example.com", 8)
					stop := running(t, c)
					if err := c.Enqueue(request(t, "POST", "https://api.example.com/", "{}"), awaited); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					close(queued)
					began := time.Now()
					time.Sleep(time.Second / 2)
					if w.count() != 9 || len(w.keys()) != 9 {
						t.Errorf("%d of 9 sent after %v: %v", w.count(), time.Since(began), w.keys())
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
	bubble(t, func(t *testing.T) {
		j := memory.New()
		one, two := &wire{replies: []reply{{status: 201}}}, &wire{replies: []reply{{status: 201}}}
		back := make(chan struct{})
		stuck, _ := newClient(t, one, on(j, func(cfg *oncehttp.Config) {
			cfg.ResumeWorkers = 1
			cfg.Retry.AttemptTimeout = time.Hour
			cfg.Authorize = func(*http.Request) error { <-back; return nil }
		}))
		enqueueAt(t, stuck, "api.example.com", 6)
		stop := running(t, stuck)
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
		other, _ := newClient(t, two, on(newLeasing(j), addsNothing))
		stopOther := running(t, other)
		time.Sleep(30 * time.Second)
		if two.count() != 4 || one.count() != 0 {
			t.Errorf("another process sent %d of 4, this one %d", two.count(), one.count())
		}
		close(back)
		synctest.Wait()
		time.Sleep(time.Second)
		if one.count() != 2 || len(one.keys()) != 2 {
			t.Errorf("%v was sent once Authorize had returned, want two", one.keys())
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{status: 201}}}
				var c *oncehttp.Client
				queued := make(chan struct{}) // closed when the operation waits behind the others
				c, _ = newClient(t, w, func(cfg *oncehttp.Config) {
					cfg.Retry.AttemptTimeout = time.Second
					cfg.Transport = roundTripFunc(func(req *http.Request) (*http.Response, error) {
						if keyHeader(req.Header) == awaited {
							return w.RoundTrip(req)
						}
						<-queued
						ctx := req.Context()
						if !own {
							ctx = context.Background()
						}
						began := time.Now()
						_, err := c.DoKey(request(t, "POST", "https://api.example.com/", "{}").WithContext(ctx), awaited)
						if err != nil && !errors.Is(err, oncehttp.ErrInFlight) || time.Since(began) > 1125*time.Millisecond {
							t.Errorf("%v after %v", err, time.Since(began))
						}
						return w.RoundTrip(req)
					})
				})
				enqueueAt(t, c, "api.example.com", 8)
				stop := running(t, c)
				if err := c.Enqueue(request(t, "POST", "https://api.example.com/", "{}"), awaited); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				close(queued)
				time.Sleep(5 * time.Second)
				if w.count() != 9 || len(w.keys()) != 9 {
					t.Errorf("%d of 9 sent: %v", w.count(), w.keys())
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
	bubble(t, func(t *testing.T) {
		const awaited = "api.example.com8"
		there, w := "Location: https://api.example.com/there", &wire{replies: []reply{{status: 201}}}
		var c *oncehttp.Client
		queued := make(chan struct{}) // closed when the operation waits behind the others
		c, _ = newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.Transport = roundTripFunc(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path != "/there" && keyHeader(req.Header) != awaited {
					return (&wire{replies: []reply{{status: 307, header: there}}}).RoundTrip(req)
				}
				return w.RoundTrip(req)
			})
			cfg.Authorize = func(req *http.Request) error {
				if req.URL.Path != "/there" {
					return nil
				}
				<-queued
				_, err := c.DoKey(request(t, "POST", "https://api.example.com/", "{}").WithContext(req.Context()), awaited)
				return err
			}
		})
		enqueueAt(t, c, "api.example.com", 8)
		stop := running(t, c)
		if err := c.Enqueue(request(t, "POST", "https://api.example.com/", "{}"), awaited); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(queued)
		time.Sleep(time.Second / 2)
		if w.count() != 9 || len(w.keys()) != 9 {
			t.Errorf("%d of 9 sent: %v", w.count(), w.keys())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
