package neighbours_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// server is a transport that answers by a function.
type server func(req *http.Request, body string) wiretest.Reply

func (s server) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	return (&wiretest.Wire{Replies: []wiretest.Reply{s(req, string(body))}}).RoundTrip(req)
}

// beside is a journal of another process: the records are shared, the table of calls in flight is not.
type beside struct {
	persist.Journal
	persist.Attachment
	forgotten func() // runs once after the first Forget, before it returns
}

func (b *beside) Attach(create func() any) any { return b.Attachment.Attach(create) }

func (b *beside) Forget(ctx context.Context, rec persist.Record) error {
	err := b.Journal.Forget(ctx, rec)
	if f := b.forgotten; err == nil && f != nil {
		b.forgotten = nil
		f()
	}
	return err
}

// A call that gave its operation up says "no effect" only if nobody has begun it again meanwhile.
func TestNeighbourForgotten(t *testing.T) {
	t.Parallel()
	ends := map[string]wiretest.Reply{"refused connection": {Refused: true}, "401": {Status: 401}, "429": {Status: 429}, "bare 404": {Status: 404, Empty: true}}
	calls := map[string]func(c *oncehttp.Client, req *http.Request) (*http.Response, error){
		"Do": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) { return c.Do(req) },
		"Transport": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) {
			return c.Transport().RoundTrip(req)
		},
	}
	meanwhile := map[string]func(t *testing.T, other *oncehttp.Client, req *http.Request) error{
		"enqueued": func(t *testing.T, other *oncehttp.Client, req *http.Request) error { return other.Enqueue(req, "") },
		"other enqueued": func(t *testing.T, other *oncehttp.Client, _ *http.Request) error {
			return other.Enqueue(clienttest.Post(t, "[]"), "k-1")
		},
		"enqueued and sent": func(t *testing.T, other *oncehttp.Client, req *http.Request) error {
			err := other.Enqueue(req, "")
			for _, failed := range other.Resume(t.Context()) {
				err = errors.Join(err, failed)
			}
			return err
		},
		"enqueued and abandoned": func(t *testing.T, other *oncehttp.Client, req *http.Request) error {
			return errors.Join(other.Enqueue(req, ""), other.Abandon(t.Context(), "k-1"))
		},
		"done": func(_ *testing.T, other *oncehttp.Client, req *http.Request) error {
			_, err := other.Do(req)
			return err
		},
	}
	for end, answer := range ends {
		for call, do := range calls {
			for what, act := range meanwhile {
				t.Run(end+"/"+call+"/"+what, func(t *testing.T) {
					t.Parallel()
					keyed := func() *http.Request {
						req := clienttest.Post(t, "{}")
						req.Header.Set("Idempotency-Key", "k-1")
						return req
					}
					store := memory.New()
					other, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, func(cfg *oncehttp.Config) { cfg.Journal = &beside{Journal: store} })
					mine := &beside{Journal: store, forgotten: func() {
						if err := act(t, other, keyed()); err != nil {
							t.Errorf("meanwhile: %v", err)
						}
					}}
					c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{answer}}, func(cfg *oncehttp.Config) { cfg.Journal, cfg.Retry.MaxAttempts = mine, 1 })
					resp, err := do(c, keyed())
					if mine.forgotten != nil {
						t.Fatalf("nothing was forgotten: %v, %v", resp, err)
					}
					if err == nil && resp.StatusCode == 201 {
						return // the other's answer
					}
					if err == nil { // a Transport's caller is shown the refusal as it is
						if r := oncehttp.ResultOf(resp); r.Effect == oncehttp.EffectAbsent || r.Effect == oncehttp.EffectRefused {
							t.Errorf("%d says %v, %q of what another process began", resp.StatusCode, r.Outcome, r.Effect)
						}
						return
					}
					clienttest.ExactlyOne(t, err)
					if errors.Is(err, oncehttp.ErrNoEffect) {
						t.Errorf("%v, though another process began it", err)
					}
				})
			}
		}
	}
}

// ErrNotSent is said only of what was never handed to the network, in no run and by no attempt.
func TestNeighbourNotSent(t *testing.T) {
	t.Parallel()
	gone := wiretest.Reply{Refused: true}
	for _, first := range []wiretest.Reply{{Status: 401}, {Status: 403}, {Status: 407}, {Status: 429}, {Status: 421}, {Status: 503}, {Err: wiretest.ErrLost}, {Status: 404, Empty: true}} {
		for _, way := range []string{"Enqueue, Resume, Do", "Enqueue, Resume, Resume", "Enqueue, Resume, Transport", "one Do", "PUT without a key", "DELETE without a key", "HEAD"} {
			t.Run(fmt.Sprintf("%d %v/%s", first.Status, first.Err, way), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{first, gone}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 2 })
					err := notSent(t, c, way)
					if w.Count() > 2 && strings.HasPrefix(way, "Enqueue") && errors.Is(err, oncehttp.ErrNoEffect) {
						t.Errorf("%v of what was enqueued", err)
					}
					if errors.Is(err, oncehttp.ErrNotSent) {
						t.Errorf("%v, and it was sent", err)
					}
					if err != nil {
						clienttest.ExactlyOne(t, err)
					}
				})
			})
		}
	}
}

// notSent drives one operation in two runs, or in two attempts, and returns the last error.
func notSent(t *testing.T, c *oncehttp.Client, way string) error {
	req := clienttest.Post(t, "{}")
	if method, _, found := strings.Cut(way, " without"); found || way == "HEAD" {
		req = clienttest.Request(t, method, "https://api.example.com/payments", "")
		req.Body, req.ContentLength = http.NoBody, 0
		_, err := c.Do(req)
		return err
	}
	req.Header.Set("Idempotency-Key", "k-1")
	if way == "one Do" {
		_, err := c.Do(req)
		return err
	}
	if err := c.Enqueue(req, ""); err != nil {
		t.Fatal(err)
	}
	pass := func() (failed error) {
		for _, err := range c.Resume(t.Context()) {
			failed = err
		}
		return failed
	}
	_ = pass()
	var failed error
	time.Sleep(time.Hour)
	switch {
	case strings.HasSuffix(way, "Resume"):
		failed = pass()
	case strings.HasSuffix(way, "Do"):
		_, failed = c.Do(req)
	default:
		_, failed = c.Transport().RoundTrip(req)
	}
	return failed
}

// onceShop is an API that accepts each reference once, and finds what was made under it within a minute.
func onceShop() *profile.Profile {
	p := profile.Draft07()
	p.Name = "shop"
	p.Duplicate = []profile.Matcher{{Status: []int{409}, Pointer: "/error", Equals: []string{"duplicate"}}}
	p.Reference = &profile.Reference{Path: "{path}?reference={/reference}", List: "/data", Same: []profile.Same{{Request: "/reference", Resource: "/reference"}}, FoundWithin: time.Minute}
	return p
}

// No other process's send can be on its way when Rekey says that the operation had no effect, whichever call sent it and
// whatever has become of its process.
func TestNeighbourRekeyWaits(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"Do", "Transport", "Resume"} {
		for _, engine := range []string{"memory", "bolt"} {
			t.Run(way+"/"+engine, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { rekeyBeside(t, way, engine) })
			})
		}
	}
}

func rekeyBeside(t *testing.T, way, engine string) {
	var mu sync.Mutex
	var made time.Time
	late := server(func(req *http.Request, _ string) wiretest.Reply {
		mu.Lock()
		defer mu.Unlock()
		if req.Method == "GET" {
			if !made.IsZero() && time.Now().After(made) {
				return wiretest.Reply{Status: 200, Body: `{"data":[{"reference":"r1"}]}`}
			}
			return wiretest.Reply{Status: 200, Body: `{"data":[]}`}
		}
		made = time.Now().Add(4 * time.Minute) // it arrives late, but before its sender gives it up
		return wiretest.Reply{Err: wiretest.ErrLost, Delay: 5*time.Minute - time.Second}
	})
	store := journalOf(t, engine)
	sender, _ := clienttest.New(t, late, func(cfg *oncehttp.Config) {
		cfg.Journal, cfg.Profile, cfg.Retry = &beside{Journal: store}, onceShop(), oncehttp.Policy{MaxAttempts: 1, AttemptTimeout: 5 * time.Minute}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := clienttest.Request(t, "POST", "https://api.example.com/payments", `{"reference":"r1"}`).WithContext(ctx)
	req.Header.Set("Idempotency-Key", "k-1")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		switch way {
		case "Do":
			_, _ = sender.Do(req)
		case "Transport":
			_, _ = sender.Transport().RoundTrip(req)
		case "Resume":
			if err := sender.Enqueue(req, ""); err != nil {
				t.Error(err)
			}
			for range sender.Resume(ctx) {
			}
		}
	}()
	time.Sleep(2 * time.Second) // the request is on its way
	began := time.Now()
	person, _ := clienttest.New(t, late, func(cfg *oncehttp.Config) {
		cfg.Journal, cfg.Profile, cfg.Retry.AttemptTimeout = &beside{Journal: store}, onceShop(), time.Second
	})
	err := clienttest.RekeyAsSeen(person, t.Context(), "k-1", "k-2", "its answer was lost")
	if err == nil || errors.Is(err, oncehttp.ErrNoEffect) {
		t.Errorf("after %v: %v, though it arrived", time.Since(began), err)
	} else {
		clienttest.ExactlyOne(t, err)
	}
	if _, found := person.Lookup(t.Context(), "k-2"); !errors.Is(found, persist.ErrNotFound) {
		t.Errorf("the new key: %v", found)
	}
	cancel()
	<-ended
}

// A call ends with its own context, whoever else waits for the operation and is let wait.
func TestNeighbourOwnContext(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"Resume", "Do", "Transport"} {
		for _, joined := range []string{"Do", "Transport"} {
			t.Run(first+" joined by "+joined, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { ownContext(t, first, joined) })
			})
		}
	}
}

func ownContext(t *testing.T, first, joined string) {
	slow := server(func(*http.Request, string) wiretest.Reply {
		return wiretest.Reply{Status: 201, Body: "{}", Delay: 8 * time.Minute}
	})
	c, _ := clienttest.New(t, slow, func(cfg *oncehttp.Config) {
		cfg.Retry = oncehttp.Policy{AttemptTimeout: 10 * time.Minute, MaxAttempts: 1}
	})
	req := clienttest.Post(t, "{}")
	req.Header.Set("Idempotency-Key", "k-1")
	if err := c.Enqueue(req, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	began, mine := time.Now(), make(chan time.Duration, 1)
	go func() {
		switch first {
		case "Do":
			_, _ = c.Do(req.WithContext(ctx))
		case "Transport":
			_, _ = c.Transport().RoundTrip(req.WithContext(ctx))
		default:
			for range c.Resume(ctx) {
			}
		}
		mine <- time.Since(began)
	}()
	time.Sleep(time.Second)
	var resp *http.Response
	var err error
	if joined == "Do" {
		resp, err = c.Do(req)
	} else {
		resp, err = c.Transport().RoundTrip(req)
	}
	if took := <-mine; took > 4*time.Second {
		t.Errorf("%s took %v, its context 3 s", first, took)
	}
	if err != nil || resp.StatusCode != 201 {
		t.Errorf("who joined got %v, %v", resp, err)
	}
}
