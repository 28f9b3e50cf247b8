package oncehttp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// What GoCardless answers to a repeat, as its SDKs read it.
const alreadyDone = `{"error":{"type":"invalid_state","code":409,"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM/1 2"}}]}}`

// TestAlreadyDone: it is a success, and its answer is one same-origin GET away.
func TestAlreadyDone(t *testing.T) {
	t.Parallel()
	done := reply{status: 409, header: "Content-Type: application/json", body: alreadyDone}
	found := reply{status: 200, body: `{"payments":{"id":"PM/1 2"}}`}
	rows := []struct {
		name         string
		replies      []reply
		status, gets int
		body         string
	}{
		{"at once", []reply{done, found}, 200, 1, found.body},
		{"after a lost answer", []reply{{err: errLost}, done, found}, 200, 1, found.body},
		{"the lookup fails once", []reply{done, {err: errLost}, found}, 200, 2, found.body},
		{"the lookup fails", []reply{done, {status: 500}, {status: 404}}, 409, 2, alreadyDone},
		{"no id", []reply{{status: 409, body: strings.Replace(alreadyDone, "conflicting_resource_id", "other", 1)}}, 409, 0, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: r.replies}
				signed := 0
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
					cfg.Profile = profile.GoCardless()
					cfg.Authorize = func(req *http.Request) error { signed++; req.Header.Set("Authorization", "Bearer x"); return nil }
				})
				resp, err := c.DoKey(post(t, `{"amount":1}`), "k")
				if err != nil || resp.StatusCode != r.status {
					t.Fatalf("%v, want status %d", err, r.status)
				}
				if got := read(t, resp); r.body != "" && got != r.body {
					t.Errorf("body %s, want %s", got, r.body)
				}
				res := oncehttp.ResultOf(resp)
				if !res.AlreadyDone || res.Outcome != oncehttp.OutcomeConfirmed || res.Sends != w.count() {
					t.Errorf("result %+v with %d GETs", res, r.gets)
				}
				gets := 0
				for _, s := range w.sends {
					if s.method == "GET" {
						gets++
						if s.url != "https://api.example.com/payments/PM%2F1%202" || s.key != "" || s.body != "" || s.header.Get("Authorization") == "" {
							t.Errorf("looked up with %+v", s)
						}
					}
				}
				if gets != r.gets || signed != w.count() {
					t.Errorf("%d GETs, want %d; %d of %d requests had credentials", gets, r.gets, signed, w.count())
				}
				again, err := c.DoKey(post(t, `{"amount":1}`), "k")
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
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 409, body: `{"error":{"type":"invalid_state","errors":[{"reason":"mandate_is_inactive"}]}}`}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.GoCardless() })
		resp, err := c.DoKey(post(t, "{}"), "k")
		if err != nil || resp.StatusCode != 409 || w.count() != 1 || oncehttp.ResultOf(resp).AlreadyDone {
			t.Errorf("%v after %d sends, want the 409 itself after one", err, w.count())
		}
	})
}

// TestStripe: its matchers, its should-retry header and its stored 500s, row by
// row.
func TestStripe(t *testing.T) {
	t.Parallel()
	lost := reply{err: errLost}
	card := reply{status: 402, body: `{"error":{"type":"card_error","code":"card_declined"}}`}
	inUse := reply{status: 409, body: `{"error":{"code":"idempotency_key_in_use"}}`}
	mismatch := reply{status: 400, body: `{"error":{"type":"idempotency_error"}}`}
	invalid := reply{status: 400, body: `{"error":{"type":"invalid_request_error"}}`}
	lock := reply{status: 429, body: `{"error":{"code":"lock_timeout"}}`}
	ok := reply{status: 200, body: "{}"}
	hint := func(r reply, say string) reply { r.header = "Stripe-Should-Retry: " + say; return r }
	mark := func(r reply) reply { r.header = "Idempotent-Replayed: true"; return r }
	rows := []struct {
		name    string
		replies []reply
		status  int // zero: an error
		sends   int
		is      error
		state   persist.State
	}{
		{"declined", []reply{card}, 402, 1, nil, persist.StateConfirmed},
		{"lost, then declined", []reply{lost, card}, 402, 2, nil, persist.StateConfirmed},
		{"lost, then a bad request", []reply{lost, invalid, ok}, 200, 3, nil, persist.StateConfirmed},
		{"lost, then a replayed bad request", []reply{lost, mark(invalid)}, 400, 2, nil, persist.StateConfirmed},
		{"bad request", []reply{invalid}, 400, 1, nil, persist.StateConfirmed},
		{"in use, then done", []reply{inUse, inUse, ok}, 200, 3, nil, persist.StateConfirmed},
		{"lock timeout", []reply{lock, ok}, 200, 2, nil, persist.StateConfirmed},
		{"in use for ever", []reply{inUse}, 0, 6, oncehttp.ErrInFlight, persist.StatePending},
		{"mismatch", []reply{mismatch}, 0, 1, oncehttp.ErrKeyReused, persist.StateMismatched},
		{"lost, then mismatch", []reply{lost, mismatch}, 0, 2, oncehttp.ErrKeyReused, persist.StateHeld},
		{"500, then done", []reply{{status: 500}, ok}, 200, 2, nil, persist.StateConfirmed},
		{"500, said to be final", []reply{hint(reply{status: 500}, "false")}, 0, 1, oncehttp.ErrStoredError, persist.StateHeld},
		{"500, said to be worth another", []reply{hint(reply{status: 500}, "true"), ok}, 200, 2, nil, persist.StateConfirmed},
		{"500, replayed", []reply{{status: 500}, mark(reply{status: 500})}, 0, 2, oncehttp.ErrStoredError, persist.StateHeld},
		{"500, shouted", []reply{hint(reply{status: 500}, "FALSE ")}, 0, 1, oncehttp.ErrStoredError, persist.StateHeld},
		{"500, mumbled", []reply{hint(reply{status: 500}, "maybe"), ok}, 200, 2, nil, persist.StateConfirmed},
		{"429, said to be final", []reply{hint(reply{status: 429}, "false")}, 0, 1, oncehttp.ErrRefused, forgotten},
		{"409, said to be final", []reply{hint(inUse, "false")}, 0, 1, oncehttp.ErrInFlight, persist.StatePending},
		{"400, said to be worth another", []reply{hint(invalid, "true"), ok}, 200, 2, nil, persist.StateConfirmed},
		{"403, said to be worth another", []reply{hint(reply{status: 403}, "true"), ok}, 200, 2, nil, persist.StateConfirmed},
		{"lost, then 403 said to be final", []reply{lost, hint(reply{status: 403}, "false")}, 0, 2, oncehttp.ErrOutcomeUnknown, persist.StatePending},
		{"done, whatever it says", []reply{hint(ok, "true")}, 200, 1, nil, persist.StateConfirmed},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: r.replies}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() })
				resp, err := c.DoKey(post(t, "amount=1"), "k")
				if (err == nil) != (r.status != 0) || err == nil && resp.StatusCode != r.status || !errors.Is(err, r.is) || w.count() != r.sends {
					t.Fatalf("%v after %d sends; want status %d, %v after %d", err, w.count(), r.status, r.is, r.sends)
				}
				if err != nil {
					exactlyOne(t, err)
				}
				rec, err := c.Lookup(t.Context(), "k")
				if r.state == forgotten {
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, {status: status, header: "Stripe-Should-Retry: " + say}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() })
				if _, err := c.DoKey(post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
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
	bubble(t, func(t *testing.T) {
		big := reply{status: 400, body: `{"error":{"type":"idempotency_error","pad":"` + strings.Repeat("x", 2000) + `"}}`}
		w := &wire{replies: []reply{big}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.MaxResponseBytes = profile.StripeV1(), 100 })
		if _, err := c.DoKey(post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
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
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 422, header: header}}}
			c, _ := newClient(t, w, nil)
			_, err := c.DoKey(post(t, "{}"), "k")
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
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 409, body: alreadyDone}, {status: 404}, {status: 404}, {err: errLost}, {status: 409, body: alreadyDone}, {status: 404}}}
		byHost := map[string]*profile.Profile{"api.example.com": profile.GoCardless(), "other.example.com:8443": profile.StripeV1()}
		c, j := newClient(t, w, func(cfg *oncehttp.Config) { cfg.ProfileByHost, cfg.Retry.MaxAttempts = byHost, 1 })
		if resp, err := c.DoKey(post(t, "{}"), "a"); err != nil || !oncehttp.ResultOf(resp).AlreadyDone {
			t.Errorf("%v", err)
		}
		if _, err := c.DoKey(post(t, "{}"), "b"); err == nil {
			t.Error("no error")
		}
		for url, want := range map[string]string{
			"https://API.example.com/": "gocardless", "https://other.example.com:8443/": "stripe", "https://other.example.com/": "draft-07",
		} {
			if rec, err := c.Prepare(request(t, "POST", url, ""), "x"); err != nil || rec.Profile != want {
				t.Errorf("%s: profile %q (%v), want %s", url, rec.Profile, err, want)
			}
		}
		later, err := oncehttp.New(oncehttp.Config{Journal: j, Transport: w})
		if err != nil {
			t.Fatal(err)
		}
		defer later.Close()
		time.Sleep(time.Minute)
		if resp, err := later.DoKey(post(t, "{}"), "b"); err != nil || !oncehttp.ResultOf(resp).AlreadyDone {
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{status: 201}}}
				first, j := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = own(func(*profile.Profile) {}) })
				if err := first.Enqueue(post(t, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				asked := 0
				next, _ := newClient(t, w, on(survivors(t, j), func(cfg *oncehttp.Config) {
					cfg.ProfileOf = func(rec persist.Record) *profile.Profile {
						if asked++; rec.Key != "k" || rec.Profile != "own" {
							t.Errorf("asked for %q under %q", rec.Profile, rec.Key)
						}
						return r.p
					}
				}))
				got := resume(t, next)["k"]
				if (got.err == nil) != r.ok || !r.ok && !errors.Is(got.err, oncehttp.ErrConfig) || (w.count() == 1) != r.ok || asked == 0 {
					t.Errorf("%v after %d sends; asked %d times", got.err, w.count(), asked)
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, {status: 402, header: mark, body: "declined"}}}
				c, _ := newClient(t, w, nil)
				resp, err := c.DoKey(post(t, "{}"), "k")
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
