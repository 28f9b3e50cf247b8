package callbacks_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestGuestsHaveNoKey: what a function of the Config, or the Transport, asks for with the context that it is given is another request
// than the one that ContextWithKey named. The parent of InheritKey, the account and the caller's own values stay.
func TestGuestsHaveNoKey(t *testing.T) {
	t.Parallel()
	type own struct{}
	const payment, token = "https://api.example.com/payments", "https://auth.example.com/token"
	for name, ask := range map[string]func(*oncehttp.Client, *http.Request) (*http.Response, error){
		"Do": (*oncehttp.Client).Do,
		"Transport": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) {
			return c.Transport().RoundTrip(req)
		},
		"StandardClient": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) { return c.StandardClient().Do(req) },
	} {
		for guest := range guestsWithContext {
			t.Run(guest+" asks by "+name, func(t *testing.T) {
				t.Parallel()
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: `{"token":"t"}`}}}
				var c *oncehttp.Client
				asked := 0
				c = newGuest(t, guest, w, func(ctx context.Context) error {
					if asked++; asked > 1 {
						return nil
					}
					if who, _ := oncehttp.AccountFromContext(ctx); who != "alice" || ctx.Value(own{}) != "the caller's" {
						t.Errorf("account %q, own value %v", who, ctx.Value(own{}))
					}
					req, _ := http.NewRequestWithContext(ctx, "POST", token, strings.NewReader("grant"))
					resp, err := ask(c, req)
					if err != nil {
						t.Errorf("the token request: %v", err)
						return nil
					}
					_, _ = io.ReadAll(resp.Body)
					if key := oncehttp.ResultOf(resp).Key; key == "payment" || key == "" {
						t.Errorf("the token request has the key %q", key)
					}
					return nil
				})
				ctx := oncehttp.ContextWithAccount(context.WithValue(t.Context(), own{}, "the caller's"), "alice")
				req := clienttest.Request(t, "POST", payment, "{}").WithContext(oncehttp.ContextWithKey(ctx, "payment"))
				resp, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if got := clienttest.Read(t, resp); asked == 0 || w.Keys()["payment"] != 1 || got == "" {
					t.Errorf("%s was asked %d times; sent: %v", guest, asked, w.Keys())
				}
			})
		}
	}
}

// TestGuestsOfStreamsHaveNoKey: neither has Authorize of a request that is no operation.
func TestGuestsOfStreamsHaveNoKey(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
	var c *oncehttp.Client
	nested := 0
	c, _ = clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			if req.Method != "GET" {
				return nil
			}
			nested++
			out, _ := http.NewRequestWithContext(req.Context(), "POST", "https://auth.example.com/token", strings.NewReader("grant"))
			_, err := c.Do(out)
			return err
		}
	})
	req := clienttest.Request(t, "GET", "https://api.example.com/payments", "").WithContext(oncehttp.ContextWithKey(t.Context(), "payment"))
	if _, err := c.Do(req); err != nil || nested != 1 {
		t.Fatal(err, nested)
	}
	if _, err := c.Lookup(t.Context(), "payment"); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("the token request was journaled under the key of the stream: %v", err)
	}
}

// TestNewKeyAsksForItself: a request without a key that NewKey makes is refused, else NewKey would be called for it, and so on, until
// the program dies. One with a key is sent.
func TestNewKeyAsksForItself(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
	var c *oncehttp.Client
	calls := 0
	c, _ = clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.NewKey = func(req *http.Request) (oncehttp.Key, error) {
			if calls++; calls > 3 {
				return "", errors.New("it calls itself")
			}
			sequence := clienttest.Request(t, "POST", "https://keys.example.com/next", "").WithContext(req.Context())
			_, err := c.Do(sequence)
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("a request of NewKey without a key: %v", err)
			}
			_, err = c.DoKey(sequence, "sequence")
			return "payment", err
		}
	})
	if _, err := c.Do(clienttest.Post(t, "{}")); err != nil || calls != 1 || w.Keys()["payment"] != 1 || w.Keys()["sequence"] != 1 {
		t.Errorf("%v; %d calls, sent %v", err, calls, w.Keys())
	}
}

// TestResumeBesideAStuckCall: an operation whose caller has left, and whose Transport does not return, is left to that call by Resume
// and Lookup says that it is pending; a Do is told that it is in flight. None waits for longer than AttemptTimeout and an eighth.
func TestResumeBesideAStuckCall(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		back := make(chan struct{})
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}, Before: func(int, *http.Request) { <-back }}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = time.Second }))
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
			first <- err
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		began := time.Now()
		for result, err := range c.Resume(t.Context()) {
			t.Errorf("Resume yielded %q, %v", result.Key, err)
		}
		if took := time.Since(began); took > 1125*time.Millisecond {
			t.Errorf("Resume took %v", took)
		}
		began = time.Now()
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrInFlight) || time.Since(began) > 1125*time.Millisecond {
			t.Errorf("Do: %v after %v", err, time.Since(began))
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || w.Count() != 1 {
			t.Errorf("%v, %d sends", rec.State, w.Count())
		}
		close(back)
		if err := <-first; err != nil {
			t.Errorf("the first caller: %v", err)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || w.Count() != 1 {
			t.Errorf("Do once it has ended: %v, %d sends", err, w.Count())
		}
	})
}

// TestObserveOfABlockedOperation: who is told of an operation that a pass cannot act on may ask for it without its context. It does not wait: it is
// told that the operation is in flight, or, where the pass has only listed it, what this client lacks.
func TestObserveOfABlockedOperation(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		var c *oncehttp.Client
		asked := 0
		c, _ = clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Retry.AttemptTimeout = time.Second
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind != oncehttp.EventBlocked || asked > 0 {
					return
				}
				asked++
				began := time.Now()
				_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(context.Background()), "payment")
				told := errors.Is(err, oncehttp.ErrInFlight) || errors.Is(err, oncehttp.ErrConfig)
				if clienttest.ExactlyOne(t, err); !told || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || time.Since(began) > 1125*time.Millisecond {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			}
		}))
		other, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile = otherProfile() }))
		if err := other.Enqueue(clienttest.Post(t, "{}"), "payment"); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { c.Close() })
		for _, err := range c.Resume(t.Context()) {
			if !errors.Is(err, oncehttp.ErrConfig) {
				t.Errorf("Resume: %v", err)
			}
		}
		if asked != 1 || w.Count() != 0 {
			t.Errorf("asked %d times, %d sends", asked, w.Count())
		}
	})
}
