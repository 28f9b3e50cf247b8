package pages_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// bare are a page, and nothing, in the place of a body.
func bare(status int, header string) map[string]wiretest.Reply {
	return map[string]wiretest.Reply{
		"HTML":  {Status: status, Body: "<html><h1>404 Not Found</h1><hr>nginx</html>", Header: header},
		"empty": {Status: status, Empty: true, Header: header},
		"blank": {Status: status, Body: " \r\n", Header: header},
	}
}

// TestABarePageRefuses: an HTML or empty 4xx that only its status would make final may be that of something in front of the
// API. Nothing happened: nothing is left of the operation, the call makes no second attempt, and the same key can go on.
func TestABarePageRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oncehttp.Config){"default": func(*oncehttp.Config) {}, "named": clienttest.Protected, "no key": clienttest.TakesNoKey} {
		for _, status := range []int{400, 402, 404, 405, 410, 413, 422} {
			for what, refusal := range bare(status, "Idempotent-Replayed: true\nStripe-Should-Retry: true\nX-Should-Retry: true") {
				t.Run(fmt.Sprint(name, " ", status, " ", what), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := &wiretest.Wire{Replies: []wiretest.Reply{refusal, {Status: 201, Body: "{}"}}}
						c, _ := clienttest.New(t, w, change)
						_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
						if !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrRefused) || w.Count() != 1 {
							t.Fatalf("%v after %d sends, want ErrRefused after one", err, w.Count())
						}
						if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
							t.Errorf("left behind: %v", err)
						}
						if resp, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || resp.StatusCode != 201 {
							t.Errorf("the same key again: %v", err)
						}
					})
				})
			}
		}
	}
}

// TestABarePageSettlesNoDoubt, whatever replay mark, matcher of stored answers or advice it has: the operation goes on.
func TestABarePageSettlesNoDoubt(t *testing.T) {
	t.Parallel()
	for what, refusal := range bare(404, "Idempotent-Replayed: true\nContent-Type: application/problem+json") {
		for name, change := range map[string]func(*oncehttp.Config){"default": func(*oncehttp.Config) {}, "named": func(cfg *oncehttp.Config) {
			cfg.Profile = profile.StripeV1()
			cfg.Profile.Name, cfg.Profile.Stored.Client = "ours", []profile.Matcher{{Status: []int{404}}}
		}} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, refusal, {Status: 201, Body: "{}"}}}
				c, _ := clienttest.New(t, w, change)
				if resp, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || resp.StatusCode != 201 || w.Count() != 3 {
					t.Errorf("%s, %s: %v after %d sends, want the 201 of the third", name, what, err, w.Count())
				}
				w = &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, refusal}}
				c, _ = clienttest.New(t, w, change)
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || clienttest.Lookup(t, c, "k").State != persist.StatePending {
					t.Errorf("%s, %s for ever: %v, record %v", name, what, err, clienttest.Lookup(t, c, "k").State)
				}
			})
		}
	}
}

// TestAnEnqueuedOperationOutlastsBarePages: it stays pending, is tried ever more seldom, every MaxPause at least, and is held
// once EnqueueMaxAge is over.
func TestAnEnqueuedOperationOutlastsBarePages(t *testing.T) {
	t.Parallel()
	for what, refusal := range bare(404, "") {
		for hours, comes := range map[int]bool{20: true, 30: false} {
			t.Run(fmt.Sprint(what, " for ", hours, " h"), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					begun, sends := time.Now(), 0
					c, _ := clienttest.New(t, wiretest.Func(func(req *http.Request) (*http.Response, error) {
						sends++
						if time.Since(begun) > time.Duration(hours)*time.Hour {
							return (&wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}).RoundTrip(req)
						}
						return (&wiretest.Wire{Replies: []wiretest.Reply{refusal}}).RoundTrip(req)
					}), nil)
					if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
						t.Fatal(err)
					}
					stop := clienttest.Run(t, c)
					time.Sleep(2 * time.Minute)
					rec := clienttest.Lookup(t, c, "k")
					for range 60 { // an attempt may be under way
						if rec.State == persist.StatePending && !rec.MaybeSent {
							break
						}
						time.Sleep(time.Second)
						rec = clienttest.Lookup(t, c, "k")
					}
					if rec.State != persist.StatePending || rec.MaybeSent {
						t.Errorf("record %v, maybe sent %t", rec.State, rec.MaybeSent)
					}
					time.Sleep(40 * time.Hour)
					if err := stop(); err != nil {
						t.Errorf("Run: %v", err)
					}
					rec = clienttest.Lookup(t, c, "k")
					if comes && rec.State != persist.StateConfirmed || !comes && rec.HoldReason != persist.HoldExpired {
						t.Errorf("record %v (%s)", rec.State, rec.HoldReason)
					}
					if sends < hours || sends > 4*hours+40 { // at most every 15 minutes, once the pauses have grown
						t.Errorf("%d sends in %d hours", sends, hours)
					}
				})
			})
		}
	}
}

// TestAnswersThatStayFinal: text and JSON, what a matcher names, and what the profile calls the API's own. What waits, waits.
func TestAnswersThatStayFinal(t *testing.T) {
	t.Parallel()
	own := func(cfg *oncehttp.Config) {
		cfg.Profile = profile.Draft07()
		cfg.Profile.Name, cfg.Profile.Own.Bare = "ours", []int{404}
	}
	named := func(cfg *oncehttp.Config) {
		cfg.Profile = profile.Draft07()
		cfg.Profile.Name, cfg.Profile.BusinessConflict = "ours", []profile.Matcher{{Status: []int{410}}}
	}
	page := bare(404, "")["HTML"].Body
	for name, r := range map[string]struct {
		change func(*oncehttp.Config)
		reply  wiretest.Reply
		final  bool // else unknown, or refused
	}{
		"text":                     {nil, wiretest.Reply{Status: 404, Body: "404 page not found\n", Header: "Content-Type: text/plain"}, true},
		"text that is called HTML": {nil, wiretest.Reply{Status: 404, Body: "default backend - 404", Header: "Content-Type: text/html"}, true},
		"JSON":                     {nil, wiretest.Reply{Status: 402, Body: `{"error":"declined"}`}, true},
		"an own 404, empty":        {own, wiretest.Reply{Status: 404, Empty: true}, true},
		"an own 404, HTML":         {own, wiretest.Reply{Status: 404, Body: page}, true},
		"no own 410":               {own, wiretest.Reply{Status: 410, Body: page}, false},
		"named by a matcher":       {named, wiretest.Reply{Status: 410, Empty: true}, true},
		"not named by a matcher":   {named, wiretest.Reply{Status: 404, Empty: true}, false},
		"409":                      {nil, wiretest.Reply{Status: 409, Empty: true}, false},
		"408":                      {nil, wiretest.Reply{Status: 408, Body: page}, false},
		"429":                      {nil, wiretest.Reply{Status: 429, Body: page}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}, r.change)
			resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if r.final != (err == nil) || err == nil && (resp.StatusCode != r.reply.Status || clienttest.Read(t, resp) != r.reply.Body) {
				t.Errorf("%s: %v, final %t", name, err, r.final)
			}
			if waits := name == "409" || name == "408"; waits != errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestPlainCallersSeeABareRefusal as the response that it is, and nothing is left pending; in doubt they see the error.
func TestPlainCallersSeeABareRefusal(t *testing.T) {
	t.Parallel()
	for what, refusal := range bare(404, "") {
		synctest.Test(t, func(t *testing.T) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{refusal}}, nil)
			resp, err := clienttest.SDK(t, c, "k")
			if err != nil || resp.StatusCode != 404 || clienttest.Read(t, resp) != refusal.Body {
				t.Errorf("%s: %v", what, err)
			}
			if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("%s: left behind: %v", what, err)
			}
			c, _ = clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, refusal}}, nil)
			if resp, err := clienttest.SDK(t, c, "k"); err == nil || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%s in doubt: %v, %v", what, resp, err)
			}
		})
	}
}
