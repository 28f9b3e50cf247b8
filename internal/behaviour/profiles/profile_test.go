// Package profiles_test holds how an API's profile is read: its answers, its endpoints, its methods, and an API without keys.
package profiles_test

import (
	"errors"
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
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAlreadyDone: it is a success, and its answer is one same-origin GET away.
func TestAlreadyDone(t *testing.T) {
	t.Parallel()
	done := wiretest.Reply{Status: 409, Header: "Content-Type: application/json", Body: wiretest.AlreadyDone}
	found := wiretest.Reply{Status: 200, Body: `{"payments":{"id":"PM/1 2"}}`}
	rows := []struct {
		name         string
		replies      []wiretest.Reply
		status, gets int
		body         string
	}{
		{"after a lost answer", []wiretest.Reply{{Err: wiretest.ErrLost}, done, found}, 200, 1, found.Body},
		{"the lookup fails once", []wiretest.Reply{{Err: wiretest.ErrLost}, done, {Err: wiretest.ErrLost}, found}, 200, 2, found.Body},
		{"the lookup fails", []wiretest.Reply{{Err: wiretest.ErrLost}, done, {Status: 500}, {Status: 404}}, 409, 2, wiretest.AlreadyDone},
		{"no id", []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 409, Body: strings.Replace(wiretest.AlreadyDone, "conflicting_resource_id", "other", 1)}}, 409, 0, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: r.replies}
				signed := 0
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Profile = profile.GoCardless()
					cfg.Authorize = func(req *http.Request) error { signed++; req.Header.Set("Authorization", "Bearer x"); return nil }
				})
				resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k")
				if err != nil || resp.StatusCode != r.status {
					t.Fatalf("%v, want status %d", err, r.status)
				}
				if got := clienttest.Read(t, resp); r.body != "" && got != r.body {
					t.Errorf("body %s, want %s", got, r.body)
				}
				res := oncehttp.ResultOf(resp)
				if !res.AlreadyDone || res.Outcome != oncehttp.OutcomeConfirmed || res.Sends != w.Count()-r.gets {
					t.Errorf("result %+v with %d GETs", res, r.gets)
				}
				gets := 0
				for _, s := range w.Sends {
					if s.Method == "GET" {
						gets++
						if s.URL != "https://api.example.com/payments/PM%2F1%202" || s.Key != "" || s.Body != "" || s.Header.Get("Authorization") == "" {
							t.Errorf("looked up with %+v", s)
						}
					}
				}
				if gets != r.gets || signed != w.Count() {
					t.Errorf("%d GETs, want %d; %d of %d requests had credentials", gets, r.gets, signed, w.Count())
				}
				again, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k")
				if err != nil || again.StatusCode != r.status || !oncehttp.ResultOf(again).AlreadyDone || oncehttp.ResultOf(again).Source != oncehttp.SourceJournal {
					t.Errorf("from the journal: %v, %+v", err, oncehttp.ResultOf(again))
				}
			})
		})
	}
}

// TestBusinessConflict: a 409 that is the API's final word is no key conflict.
func TestBusinessConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 409, Body: `{"error":{"type":"invalid_state","errors":[{"reason":"mandate_is_inactive"}]}}`}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.GoCardless() })
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err != nil || resp.StatusCode != 409 || w.Count() != 1 || oncehttp.ResultOf(resp).AlreadyDone {
			t.Errorf("%v after %d sends, want the 409 itself after one", err, w.Count())
		}
	})
}

// TestStripe: its matchers, its should-retry header and its stored 500s, row by
// row.
func TestStripe(t *testing.T) {
	t.Parallel()
	lost := wiretest.Reply{Err: wiretest.ErrLost}
	card := wiretest.Reply{Status: 402, Body: `{"error":{"type":"card_error","code":"card_declined"}}`}
	inUse := wiretest.Reply{Status: 409, Body: `{"error":{"code":"idempotency_key_in_use"}}`}
	mismatch := wiretest.Reply{Status: 400, Body: `{"error":{"type":"idempotency_error"}}`}
	invalid := wiretest.Reply{Status: 400, Body: `{"error":{"type":"invalid_request_error"}}`}
	lock := wiretest.Reply{Status: 429, Body: `{"error":{"code":"lock_timeout"}}`}
	ok := wiretest.Reply{Status: 200, Body: "{}"}
	hint := func(r wiretest.Reply, say string) wiretest.Reply { r.Header = "Stripe-Should-Retry: " + say; return r }
	mark := func(r wiretest.Reply) wiretest.Reply { r.Header = "Idempotent-Replayed: true"; return r }
	rows := []struct {
		name    string
		replies []wiretest.Reply
		status  int // zero: an error
		sends   int
		is      error
		state   persist.State
	}{
		{"declined", []wiretest.Reply{card}, 402, 1, nil, persist.StateConfirmed},
		{"lost, then declined", []wiretest.Reply{lost, card}, 402, 2, nil, persist.StateConfirmed},
		{"lost, then a bad request", []wiretest.Reply{lost, invalid, ok}, 200, 3, nil, persist.StateConfirmed},
		{"lost, then a replayed bad request", []wiretest.Reply{lost, mark(invalid)}, 400, 2, nil, persist.StateConfirmed},
		{"bad request", []wiretest.Reply{invalid}, 400, 1, nil, persist.StateConfirmed},
		{"in use, then done", []wiretest.Reply{inUse, inUse, ok}, 200, 3, nil, persist.StateConfirmed},
		{"lock timeout", []wiretest.Reply{lock, ok}, 200, 2, nil, persist.StateConfirmed},
		{"in use for ever", []wiretest.Reply{inUse}, 0, 6, oncehttp.ErrInFlight, persist.StatePending},
		{"mismatch", []wiretest.Reply{mismatch}, 0, 1, oncehttp.ErrKeyReused, persist.StateMismatched},
		{"lost, then mismatch", []wiretest.Reply{lost, mismatch}, 0, 2, oncehttp.ErrKeyReused, persist.StateHeld},
		{"500, then done", []wiretest.Reply{{Status: 500}, ok}, 200, 2, nil, persist.StateConfirmed},
		{"500, said to be final", []wiretest.Reply{hint(wiretest.Reply{Status: 500}, "false")}, 0, 1, oncehttp.ErrStoredError, persist.StateHeld},
		{"500, said to be worth another", []wiretest.Reply{hint(wiretest.Reply{Status: 500}, "true"), ok}, 200, 2, nil, persist.StateConfirmed},
		{"500, replayed", []wiretest.Reply{{Status: 500}, mark(wiretest.Reply{Status: 500})}, 0, 2, oncehttp.ErrStoredError, persist.StateHeld},
		{"500, shouted", []wiretest.Reply{hint(wiretest.Reply{Status: 500}, "FALSE ")}, 0, 1, oncehttp.ErrStoredError, persist.StateHeld},
		{"500, mumbled", []wiretest.Reply{hint(wiretest.Reply{Status: 500}, "maybe"), ok}, 200, 2, nil, persist.StateConfirmed},
		{"429, said to be final", []wiretest.Reply{hint(wiretest.Reply{Status: 429}, "false")}, 0, 1, oncehttp.ErrRefused, clienttest.Unknown},
		{"409, said to be final", []wiretest.Reply{hint(inUse, "false")}, 0, 1, oncehttp.ErrInFlight, persist.StatePending},
		{"400, said to be worth another", []wiretest.Reply{hint(invalid, "true"), ok}, 200, 2, nil, persist.StateConfirmed},
		{"403, said to be worth another", []wiretest.Reply{hint(wiretest.Reply{Status: 403}, "true"), ok}, 200, 2, nil, persist.StateConfirmed},
		{"lost, then 403 said to be final", []wiretest.Reply{lost, hint(wiretest.Reply{Status: 403}, "false")}, 0, 2, oncehttp.ErrOutcomeUnknown, persist.StatePending},
		{"done, whatever it says", []wiretest.Reply{hint(ok, "true")}, 200, 1, nil, persist.StateConfirmed},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: r.replies}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() })
				resp, err := c.DoKey(clienttest.Post(t, "amount=1"), "k")
				if (err == nil) != (r.status != 0) || err == nil && resp.StatusCode != r.status || !errors.Is(err, r.is) || w.Count() != r.sends {
					t.Fatalf("%v after %d sends; want status %d, %v after %d", err, w.Count(), r.status, r.is, r.sends)
				}
				if err != nil {
					clienttest.ExactlyOne(t, err)
				}
				rec, err := c.Lookup(t.Context(), "k")
				if r.state == clienttest.Unknown {
					if !errors.Is(err, persist.ErrNotFound) {
						t.Errorf("record %v, want none", rec.State)
					}
				} else if err != nil || rec.State != r.state {
					t.Errorf("record %v (%v), want %v", rec.State, err, r.state)
				}
			})
		})
	}
}

// TestShouldRetryDoesNotClear: advice never makes an unknown outcome known.
func TestShouldRetryDoesNotClear(t *testing.T) {
	t.Parallel()
	for _, say := range []string{"true", "false"} {
		for _, status := range []int{403, 404, 429, 500} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: status, Header: "Stripe-Should-Retry: " + say}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() })
				if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("lost, then %d with should-retry %s: %v, want unknown", status, say, err)
				}
			})
		}
	}
}

// TestMatchersAndCutBodies: a matcher that needs a body which is too large to keep
// decides nothing, rather than no.
func TestMatchersAndCutBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big := wiretest.Reply{Status: 400, Body: `{"error":{"type":"idempotency_error","pad":"` + strings.Repeat("x", 2000) + `"}}`}
		w := &wiretest.Wire{Replies: []wiretest.Reply{big}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.MaxResponseBytes = profile.StripeV1(), 100 })
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want unknown: it may have been the mismatch", err)
		}
	})
}

// TestHeaderWords: a matcher's word must stand whole in a value.
func TestHeaderWords(t *testing.T) {
	t.Parallel()
	for header, conflict := range map[string]bool{
		"Content-Type: application/problem+json":                  true,
		"Content-Type: Application/Problem+JSON; charset=utf-8":   true,
		"Content-Type: application/problem+jsonx":                 false,
		"Content-Type: x-application/problem+json":                false,
		"Content-Type: application/json":                          false,
		"Link: </doc>; rel=describedby":                           true,
		"Link: </a>; rel=next\nLink: </doc>; rel=\"describedby\"": true,
		"Link: </doc>; rel=describedbyme":                         false,
		"":                                                        false,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 422, Header: header}}}
			c, _ := clienttest.New(t, w, nil)
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if errors.Is(err, oncehttp.ErrKeyReused) != conflict || (err != nil) != conflict {
				t.Errorf("422 with %q: %v, want a conflict: %v", header, err, conflict)
			}
		})
	}
}

// TestProfileByHost: one client and one journal for many APIs; a record is driven
// by the profile that it recorded, also when the client's has changed since.
func TestProfileByHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 409, Body: wiretest.AlreadyDone}, {Status: 200, Body: `{"amount":1}`}, {Err: wiretest.ErrLost}, {Status: 409, Body: wiretest.AlreadyDone}, {Status: 404}}}
		byHost := map[string]*profile.Profile{"api.example.com": profile.GoCardless(), "other.example.com:8443": profile.StripeV1()}
		c, j := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.ProfileByHost, cfg.Retry.MaxAttempts = byHost, 1 })
		if resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "a"); err != nil || !oncehttp.ResultOf(resp).AlreadyDone {
			t.Errorf("%v", err)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "b"); err == nil {
			t.Error("no error")
		}
		for url, want := range map[string]string{
			"https://API.example.com/": "gocardless", "https://other.example.com:8443/": "stripe", "https://other.example.com/": "draft-07",
		} {
			if rec, err := c.Prepare(clienttest.Request(t, "POST", url, ""), "x"); err != nil || rec.Profile != want {
				t.Errorf("%s: profile %q (%v), want %s", url, rec.Profile, err, want)
			}
		}
		later, err := oncehttp.New(oncehttp.Config{Journal: j, Transport: w})
		if err != nil {
			t.Fatal(err)
		}
		defer later.Close()
		time.Sleep(time.Minute)
		if resp, err := later.DoKey(clienttest.Post(t, "{}"), "b"); err != nil || !oncehttp.ResultOf(resp).AlreadyDone {
			t.Errorf("a record of another profile was not read by it: %v", err)
		}
	})
}

// TestProfileOf: a profile that a client does not know is asked of Config.ProfileOf, with the record; what is not the record's,
// or cannot be used, counts as not known, and nothing is sent.
func TestProfileOf(t *testing.T) {
	t.Parallel()
	own := func(change func(*profile.Profile)) *profile.Profile {
		p := profile.Draft07()
		p.Name = "own"
		change(p)
		return p
	}
	for name, r := range map[string]struct {
		p  *profile.Profile
		ok bool
	}{
		"its own":         {own(func(*profile.Profile) {}), true},
		"none":            {nil, false},
		"another name":    {profile.Draft07(), false},
		"another version": {own(func(p *profile.Profile) { p.Version = "2" }), false},
		"not usable":      {own(func(p *profile.Profile) { p.Carrier.Name = "" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				first, j := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = own(func(*profile.Profile) {}) })
				if err := first.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				asked := 0
				next, _ := clienttest.New(t, w, clienttest.On(journaltest.Survivors(t, j), func(cfg *oncehttp.Config) {
					cfg.ProfileOf = func(rec persist.Record) *profile.Profile {
						if asked++; rec.Key != "k" || rec.Profile != "own" {
							t.Errorf("asked for %q under %q", rec.Profile, rec.Key)
						}
						return r.p
					}
				}))
				got := clienttest.Resume(t, next)["k"]
				if (got.Err == nil) != r.ok || !r.ok && !errors.Is(got.Err, oncehttp.ErrConfig) || (w.Count() == 1) != r.ok || asked == 0 {
					t.Errorf("%v after %d sends; asked %d times", got.Err, w.Count(), asked)
				}
			})
		})
	}
}

// TestReplayMarks: after a lost answer, a 402 that carries one of the marks in use settles the matter. What looks like
// a mark and says otherwise does not.
func TestReplayMarks(t *testing.T) {
	t.Parallel()
	for mark, replayed := range map[string]bool{
		"Idempotent-Replayed: true":            true,
		"Idempotency-Replayed: true":           true,
		"X-Idempotent-Replayed: true":          true,
		"X-Idempotency-Replayed: True":         true,
		"Request-Idempotency: true":            true,
		"Idempotent-Response: true":            true,
		"X-Idempotency-Cache-Hit: true":        true,
		"Idempotency-Status: replayed":         true,
		"X-Idempotency-Status: replayed":       true,
		"X-Idempotent-Replayed: false":         false,
		"X-Idempotency-Cache-Hit: false":       false,
		"Idempotency-Status: ignored":          false,
		"X-Idempotency-Status: processed":      false,
		"Idempotency-Key: k":                   false, // some servers repeat the key in every answer
		"Repeatability-Result: accepted":       false, // given to the first request, too
		"Original-Request: req_1":              false, // it is a replay only where it is not the Request-Id
		"X-GCS-Idempotence-Key: k":             false,
		"Idempotent-Replayed: not-true-at-all": false,
	} {
		t.Run(mark, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 402, Header: mark, Body: "declined"}}}
				c, _ := clienttest.New(t, w, nil)
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				switch {
				case !replayed:
					if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("%v, want it unknown", err)
					}
				case err != nil || resp.StatusCode != 402 || oncehttp.ResultOf(resp).Source != oncehttp.SourceReplay:
					t.Errorf("%v, want the replayed 402", err)
				}
			})
		})
	}
}

// TestAnUnusualKeyIsTold once, where the profile does not say which keys its API takes. It is sent all the same.
func TestAnUnusualKeyIsTold(t *testing.T) {
	t.Parallel()
	long, usual := oncehttp.Key("idemp:"+strings.Repeat("o", 59)), oncehttp.Key("idemp:order:a%2Fb~c=1"+strings.Repeat("x", 43))
	for name, r := range map[string]struct {
		profile string
		keys    []oncehttp.Key
		lines   int
	}{
		"too long":               {"mollie", []oncehttp.Key{long}, 1},
		"too long, twice":        {"mollie", []oncehttp.Key{long, long + "2"}, 1},
		"a bracket":              {"mollie", []oncehttp.Key{"order[7]"}, 1},
		"usual":                  {"mollie", []oncehttp.Key{usual, "k1"}, 0},
		"the API says its limit": {"zuora", []oncehttp.Key{long}, 0},
		"of no API":              {"draft-07", []oncehttp.Key{long}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, log := wiretest.Paid(), &clienttest.Log{}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
				cfg.Logger = log.Logger()
				if cfg.Profile = profile.Draft07(); r.profile != "draft-07" {
					cfg.Profile = clienttest.Named(t, r.profile)
				}
			})
			for _, key := range r.keys {
				clienttest.Do(t, c, clienttest.Request(t, "POST", "https://api.example.com/payments", "{}"), key)
			}
			if n := strings.Count(log.String(), "may not take"); n != r.lines || w.Count() != len(r.keys) {
				t.Errorf("%d lines after %d sends, want %d: %s", n, w.Count(), r.lines, log)
			}
		})
	}
}

// TestProfileByHostOfAnAbsoluteName: a host with a final dot, as in Kubernetes, is the same host, in the request and in the configuration.
func TestProfileByHostOfAnAbsoluteName(t *testing.T) {
	t.Parallel()
	for _, configured := range []string{"api.example.com", "api.example.com.", "api.example.com:443", "api.example.com.:443"} {
		for _, host := range []string{"api.example.com", "api.example.com.", "api.example.com.:443", "API.example.com."} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: `{"status":"CREATED"}`}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.ProfileByHost = map[string]*profile.Profile{configured: clienttest.Named(t, "paypal-orders")}
				})
				_, err := c.DoKey(clienttest.Request(t, "POST", "https://"+host+"/v2/checkout/orders", `{"intent":"CAPTURE"}`), "k")
				if rec := clienttest.Lookup(t, c, "k"); err != nil || rec.Profile != "paypal-orders" || w.Sends[0].Header.Get("PayPal-Request-Id") != "k" {
					t.Errorf("%s for %s: %v, profile %s", configured, host, err, rec.Profile)
				}
			})
		}
	}
	two := map[string]*profile.Profile{"api.example.com": profile.StripeV1(), "api.example.com.": profile.GoCardless()}
	if _, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), ProfileByHost: two}); !errors.Is(err, oncehttp.ErrConfig) {
		t.Errorf("two profiles for one host: %v", err)
	}
}
