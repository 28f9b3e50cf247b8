package neighbours_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
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

// bound is an API that honours keys on these methods only.
func bound(methods ...string) *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Methods = "bound", methods
	return p
}

// A request that no key protects is sent once, whatever came of that, in this process and in the next.
func TestNeighbourUnprotected(t *testing.T) {
	t.Parallel()
	first := map[string]wiretest.Reply{
		"lost": {Err: wiretest.ErrLost}, "500": {Status: 500}, "503 with a wait": {Status: 503, Header: "Retry-After: 1"}, "cut": {Status: 200, Body: "{", Cut: true},
		"408": {Status: 408}, "425": {Status: 425}, "a page": {Status: 200, Body: "<html>wait</html>"}, "409": {Status: 409}, "504 empty": {Status: 504},
		"JSON that ends early": {Status: 200, Header: "Content-Type: application/json", Body: `{"id":`}, "too large and a page": {Status: 200, Body: "<html>" + strings.Repeat(" ", 2<<20)},
	}
	for _, method := range []string{"PATCH", "PUT", "DELETE"} {
		for what, answer := range first {
			for _, way := range []string{"Do, Do", "Transport, Transport", "Enqueue, Run", "Do, Resume elsewhere", "Transport, Do elsewhere"} {
				t.Run(method+"/"+what+"/"+way, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { unprotected(t, method, answer, way) })
				})
			}
		}
	}
}

func unprotected(t *testing.T, method string, answer wiretest.Reply, way string) {
	w, store := &wiretest.Wire{Replies: []wiretest.Reply{answer, {Status: 200, Body: "{}"}}}, memory.New()
	life := func() *oncehttp.Client {
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal, cfg.Profile = &beside{Journal: store}, bound("POST") })
		return c
	}
	req := func() *http.Request {
		req := clienttest.Request(t, method, "https://api.example.com/payments/1", "{}")
		req.Header.Set("Idempotency-Key", "k-1")
		return req
	}
	c := life()
	calls := strings.Split(way, ", ")
	for i, call := range calls {
		if strings.HasSuffix(call, "elsewhere") {
			c = life()
		}
		switch call, _, _ := strings.Cut(call, " "); call {
		case "Do":
			if _, err := c.Do(req()); err != nil {
				clienttest.ExactlyOne(t, err)
			}
		case "Transport":
			_, _ = c.Transport().RoundTrip(req())
		case "Enqueue":
			fatal(t, c.Enqueue(req(), ""))
		default:
			_ = onePass(t, c)
			if call == "Run" {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				_ = c.Run(ctx)
				cancel()
			}
		}
		if i == 0 {
			time.Sleep(time.Hour)
		}
	}
	notActed := answer.Status == 425
	if n := w.Count(); n != 1 && !notActed {
		t.Errorf("%d sends", n)
	}
	rec, err := c.Lookup(t.Context(), "k-1")
	if notActed {
		return // the server said that it did not act
	}
	if err != nil || rec.State != persist.StateHeld || rec.Protected {
		t.Errorf("%v (%s), protected %t, %v, want held", rec.State, rec.HoldReason, rec.Protected, err)
	}
}

// The methods of a default profile, and a list that is not known, bind nobody.
func TestNeighbourMethodsUnbound(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*profile.Profile{"default": nil, "named, unknown": bound(), "listed": bound("POST", "PATCH")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: "{}"}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
				_, err := c.DoKey(clienttest.Request(t, "PATCH", "https://api.example.com/payments/1", "{}"), "k-1")
				if err != nil || w.Count() != 2 {
					t.Errorf("%v after %d sends", err, w.Count())
				}
			})
		})
	}
}

// A final answer that is too large to keep is not asked for again where the server would execute the request again.
func TestNeighbourLargeAnswers(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 4096)
	for _, status := range []int{400, 402, 404, 410, 422, 418} {
		for _, kind := range []string{"text/plain", "application/json", "application/octet-stream", ""} {
			for _, way := range []string{"Do", "Transport", "elsewhere", "Enqueue"} {
				t.Run(fmt.Sprintf("%d/%s/%s", status, kind, way), func(t *testing.T) {
					t.Parallel()
					body := large
					if kind == "application/json" {
						body = `{"detail":"` + large + `"}`
					}
					w, store := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Header: "Content-Type: " + kind, Body: body}, {Status: 201, Body: "{}"}}}, memory.New()
					life := func() *oncehttp.Client {
						c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal, cfg.MaxResponseBytes = &beside{Journal: store}, 100 })
						return c
					}
					c := life()
					resp, err := c.DoKey(clienttest.Post(t, "{}"), "k-1")
					if err != nil || resp.StatusCode != status || clienttest.Read(t, resp) != body {
						t.Fatalf("%v, %v", resp, err)
					}
					req := clienttest.Post(t, "{}")
					req.Header.Set("Idempotency-Key", "k-1")
					switch way {
					case "Do":
						_, err = c.Do(req)
					case "Transport":
						_, err = c.StandardClient().Do(req)
					case "elsewhere":
						c = life()
						_, err = c.Do(req)
					case "Enqueue":
						err = c.Enqueue(req, "")
					}
					clienttest.ExactlyOne(t, err)
					var e *oncehttp.Error
					if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrFinal) || e.Effect() != oncehttp.EffectRefused || e.Answer == nil || e.Answer.Status != status {
						t.Errorf("%v", err)
					}
					if w.Count() != 1 {
						t.Errorf("%d sends", w.Count())
					}
					if rec := clienttest.Lookup(t, c, "k-1"); rec.Answer == nil || rec.Answer.Stored || !rec.Answer.BodyDropped {
						t.Errorf("%+v", rec.Answer)
					}
				})
			}
		}
	}
}

// Keys of the business, whoever makes them, do not pass by what stands in doubt under a key that was made before.
func TestNeighbourKeysPutIn(t *testing.T) {
	t.Parallel()
	own := func(req *http.Request) (oncehttp.Key, error) { return "order-5", nil }
	fromJSON := oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/order")
	ways := map[string]func(t *testing.T, c *oncehttp.Client) error{
		"Do": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.Do(clienttest.Post(t, `{"order":"5"}`))
			return err
		},
		"Transport": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.Transport().RoundTrip(clienttest.Post(t, `{"order":"5"}`))
			return err
		},
	}
	for name, newKey := range map[string]func(*http.Request) (oncehttp.Key, error){"KeyFromJSON": fromJSON, "NewKey": own} {
		for _, state := range []string{"in doubt", "held", "unreported", "rekeyed"} {
			for _, engine := range []string{"memory", "bolt"} {
				for way, call := range ways {
					t.Run(name+"/"+state+"/"+engine+"/"+way, func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { keysPutIn(t, newKey, state, engine, call) })
					})
				}
			}
		}
	}
}

func keysPutIn(t *testing.T, newKey func(*http.Request) (oncehttp.Key, error), state, engine string, call func(*testing.T, *oncehttp.Client) error) {
	w, j := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}, journalOf(t, engine)
	before, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal, cfg.Retry.MaxAttempts = j, 1 })
	var e *oncehttp.Error
	if _, err := before.Do(clienttest.Post(t, `{"order":"5"}`)); !errors.As(err, &e) {
		t.Fatal(err)
	}
	made, stands := e.Key, e.Key
	time.Sleep(time.Hour)
	switch state {
	case "held":
		w.Replies[1] = wiretest.Reply{Status: 302, Header: "Location: https://other.example.com/"}
		_ = onePass(t, before)
	case "unreported":
		fatal(t, onePass(t, before))
	case "rekeyed":
		fatal(t, clienttest.AbsentAsSeen(before, t.Context(), made))
		fatal(t, clienttest.RekeyAsSeen(before, t.Context(), made, "new-key", "lost"))
		stands = "new-key"
	}
	sends := w.Count()
	w.Replies = []wiretest.Reply{{Status: 201, Body: "{}"}}
	after, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal, cfg.NewKey = j, newKey })
	err := call(t, after)
	clienttest.ExactlyOne(t, err)
	if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) || e.Key != stands || w.Count() != sends {
		t.Errorf("%v after %d more sends, want one that names %s", err, w.Count()-sends, stands)
	}
	if _, err := after.DoKey(clienttest.Post(t, `{"order":"5"}`), stands); state == "unreported" && err != nil {
		t.Errorf("the key that was named: %v", err)
	}
	if state == "unreported" {
		before := w.Count()
		if err := call(t, after); err != nil || w.Count() != before+1 {
			t.Errorf("once it was told: %v after %d sends", err, w.Count()-before)
		}
	}
}
