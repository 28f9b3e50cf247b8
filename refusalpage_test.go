package oncehttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// bare are a page, and nothing, in the place of a body.
func bare(status int, header string) map[string]reply {
	return map[string]reply{
		"HTML":  {status: status, body: "<html><h1>404 Not Found</h1><hr>nginx</html>", header: header},
		"empty": {status: status, empty: true, header: header},
		"blank": {status: status, body: " \r\n", header: header},
	}
}

// TestABarePageRefuses: an HTML or empty 4xx that only its status would make final may be that of something in front of the
// API. Nothing happened: nothing is left of the operation, the call makes no second attempt, and the same key can go on.
func TestABarePageRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oncehttp.Config){"default": func(*oncehttp.Config) {}, "named": protected, "no key": keyless} {
		for _, status := range []int{400, 402, 404, 405, 410, 413, 422} {
			for what, refusal := range bare(status, "Idempotent-Replayed: true\nStripe-Should-Retry: true\nX-Should-Retry: true") {
				t.Run(fmt.Sprint(name, " ", status, " ", what), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T) {
						w := &wire{replies: []reply{refusal, {status: 201, body: "{}"}}}
						c, _ := newClient(t, w, change)
						_, err := c.DoKey(post(t, "{}"), "k")
						if !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrRefused) || w.count() != 1 {
							t.Fatalf("%v after %d sends, want ErrRefused after one", err, w.count())
						}
						if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
							t.Errorf("left behind: %v", err)
						}
						if resp, err := c.DoKey(post(t, "{}"), "k"); err != nil || resp.StatusCode != 201 {
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, refusal, {status: 201, body: "{}"}}}
				c, _ := newClient(t, w, change)
				if resp, err := c.DoKey(post(t, "{}"), "k"); err != nil || resp.StatusCode != 201 || w.count() != 3 {
					t.Errorf("%s, %s: %v after %d sends, want the 201 of the third", name, what, err, w.count())
				}
				w = &wire{replies: []reply{{err: errLost}, refusal}}
				c, _ = newClient(t, w, change)
				_, err := c.DoKey(post(t, "{}"), "k")
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || lookup(t, c, "k").State != persist.StatePending {
					t.Errorf("%s, %s for ever: %v, record %v", name, what, err, lookup(t, c, "k").State)
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
				bubble(t, func(t *testing.T) {
					begun, sends := time.Now(), 0
					c, _ := newClient(t, roundTripFunc(func(req *http.Request) (*http.Response, error) {
						sends++
						if time.Since(begun) > time.Duration(hours)*time.Hour {
							return (&wire{replies: []reply{{status: 201, body: "{}"}}}).RoundTrip(req)
						}
						return (&wire{replies: []reply{refusal}}).RoundTrip(req)
					}), nil)
					if err := c.Enqueue(post(t, "{}"), "k"); err != nil {
						t.Fatal(err)
					}
					stop := running(t, c)
					time.Sleep(2 * time.Minute)
					rec := lookup(t, c, "k")
					for range 60 { // an attempt may be under way
						if rec.State == persist.StatePending && !rec.MaybeSent {
							break
						}
						time.Sleep(time.Second)
						rec = lookup(t, c, "k")
					}
					if rec.State != persist.StatePending || rec.MaybeSent {
						t.Errorf("record %v, maybe sent %t", rec.State, rec.MaybeSent)
					}
					time.Sleep(40 * time.Hour)
					if err := stop(); err != nil {
						t.Errorf("Run: %v", err)
					}
					rec = lookup(t, c, "k")
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
	page := bare(404, "")["HTML"].body
	for name, r := range map[string]struct {
		change func(*oncehttp.Config)
		reply  reply
		final  bool // else unknown, or refused
	}{
		"text":                     {nil, reply{status: 404, body: "404 page not found\n", header: "Content-Type: text/plain"}, true},
		"text that is called HTML": {nil, reply{status: 404, body: "default backend - 404", header: "Content-Type: text/html"}, true},
		"JSON":                     {nil, reply{status: 402, body: `{"error":"declined"}`}, true},
		"an own 404, empty":        {own, reply{status: 404, empty: true}, true},
		"an own 404, HTML":         {own, reply{status: 404, body: page}, true},
		"no own 410":               {own, reply{status: 410, body: page}, false},
		"named by a matcher":       {named, reply{status: 410, empty: true}, true},
		"not named by a matcher":   {named, reply{status: 404, empty: true}, false},
		"409":                      {nil, reply{status: 409, empty: true}, false},
		"408":                      {nil, reply{status: 408, body: page}, false},
		"429":                      {nil, reply{status: 429, body: page}, false},
	} {
		bubble(t, func(t *testing.T) {
			c, _ := newClient(t, &wire{replies: []reply{r.reply}}, r.change)
			resp, err := c.DoKey(post(t, "{}"), "k")
			if r.final != (err == nil) || err == nil && (resp.StatusCode != r.reply.status || read(t, resp) != r.reply.body) {
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
		bubble(t, func(t *testing.T) {
			c, _ := newClient(t, &wire{replies: []reply{refusal}}, nil)
			resp, err := sdk(t, c, "k")
			if err != nil || resp.StatusCode != 404 || read(t, resp) != refusal.body {
				t.Errorf("%s: %v", what, err)
			}
			if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("%s: left behind: %v", what, err)
			}
			c, _ = newClient(t, &wire{replies: []reply{{err: errLost}, refusal}}, nil)
			if resp, err := sdk(t, c, "k"); err == nil || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%s in doubt: %v, %v", what, resp, err)
			}
		})
	}
}
