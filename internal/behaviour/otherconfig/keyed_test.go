// Package otherconfig_test holds what becomes of an operation among clients whose Configs differ. Package company has every
// field; here are the rules in depth.
package otherconfig_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// companions are two clients on one journal whose Configs differ. unclear says in which order their requests cannot be compared.
type companions struct {
	one, other                func(*oncehttp.Config)
	unclear, unclearTheOthers bool
	sweptUnclear              bool // the same, of one alone, once it is swept
}

// reversed is the same pair in the other order.
func (c companions) reversed() companions {
	return companions{c.other, c.one, c.unclearTheOthers, c.unclear, false}
}

// plainly changes no Config.
func plainly(*oncehttp.Config) {}

// companyState is what has become of the first client's operation before the second one's call.
type companyState struct {
	first wiretest.Reply
	after func(*testing.T, *oncehttp.Client)
	again bool // one more send with the same key has no second effect
	swept bool
}

var companyStates = map[string]companyState{
	"in doubt": {first: wiretest.Reply{Err: wiretest.ErrLost}, again: true},
	"finished": {first: wiretest.Reply{Status: 201, Body: "{}"}},
	"refused":  {first: wiretest.Reply{Status: 402}},
	"expired":  {first: wiretest.Reply{Err: wiretest.ErrLost}, after: func(*testing.T, *oncehttp.Client) { time.Sleep(48 * time.Hour) }},
	"swept": {first: wiretest.Reply{Status: 201, Body: "{}"}, after: func(t *testing.T, c *oncehttp.Client) {
		time.Sleep(48 * time.Hour)
		if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}, swept: true},
	"absent": {first: wiretest.Reply{Err: wiretest.ErrLost}, after: func(t *testing.T, c *oncehttp.Client) {
		if err := clienttest.AbsentAsSeen(c, t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}},
}

// companyRequest carries everything in which the Configs differ.
func companyRequest(t *testing.T) *http.Request {
	req := clienttest.Request(t, "POST", "https://api.example.com/p?n=1", `{"order":"o1","id":"i1"}`)
	req.Header.Set("Stripe-Account", "acct_1")
	req.Header.Set("X-Tenant", "t1")
	return req
}

// samePairs are pairs whose clients name the key.
func samePairs() map[string]companions {
	tenant := clienttest.WithProfile("x", func(p *profile.Profile) { p.Fingerprint = []string{"X-Tenant"} })
	x := clienttest.WithProfile("x", func(*profile.Profile) {})
	return map[string]companions{
		"carrier none":         {one: clienttest.WithProfile("x", func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Nowhere} }), other: x},
		"a secret parameter":   {one: plainly, other: clienttest.SecretParameters("n"), unclearTheOthers: true},
		"a secret header":      {one: plainly, other: clienttest.SecretHeaders("X-Tenant")},
		"a header that counts": {one: x, other: tenant, sweptUnclear: true},
		"it counts, or is secret": {
			one: tenant, other: clienttest.Together(tenant, clienttest.SecretHeaders("X-Tenant")), unclearTheOthers: true,
		},
		"request bytes": {one: plainly, other: func(cfg *oncehttp.Config) { cfg.MaxRequestBytes = 4 }},
	}
}

// TestCompanyWithAKey: a client whose Config differs from that of the one that began an operation sends it at most once more, under
// the same key and within its window, begins none beside it, and does not say that it had no effect. Where by the rules of one of them
// the request is the same and by those of the other not, the outcome is unknown and the error names the difference.
func TestCompanyWithAKey(t *testing.T) {
	t.Parallel()
	for name, pair := range samePairs() {
		for state, s := range companyStates {
			for order, pair := range map[string]companions{"": pair, ", reversed": pair.reversed()} {
				t.Run(name+", "+state+order, func(t *testing.T) {
					t.Parallel()
					journaltest.Each(t, func(t *testing.T, j persist.Journal) { sameKey(t, j, pair, s) })
				})
			}
		}
	}
}

// sameKey lets the pair call one after the other, with the same request and key.
func sameKey(t *testing.T, j persist.Journal, pair companions, s companyState) {
	w := &wiretest.Wire{Replies: []wiretest.Reply{s.first, {Status: 201, Body: "{}"}}}
	client := func(change func(*oncehttp.Config)) *oncehttp.Client {
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }, change))
		return c
	}
	first := client(pair.one)
	if _, _ = first.DoKey(companyRequest(t), "k"); w.Count() == 0 {
		return // it cannot begin any
	}
	if s.after != nil {
		s.after(t, first)
	}
	_, err := client(pair.other).DoKey(companyRequest(t), "k")
	if n := w.Count() - 1; n > 1 || n == 1 && !s.again || len(w.Keys()) != 1 || journaltest.Count(t, j) != 1 {
		t.Errorf("sent %d times more, under %v, with %d records: %v", n, w.Keys(), journaltest.Count(t, j), err)
	}
	absent := errors.Is(err, oncehttp.ErrNoEffect)
	switch unclear := errors.Is(err, oncehttp.ErrOutcomeUnknown) && errors.Is(err, oncehttp.ErrConfig); {
	case absent && !errors.Is(err, oncehttp.ErrSettled) && !errors.Is(err, oncehttp.ErrBodyTooLarge):
		t.Errorf("no effect is said: %v", err)
	case unclear != (pair.unclear || pair.sweptUnclear && s.swept):
		t.Errorf("%v, want that it cannot be told: %v", err, !unclear)
	}
}

// TestCompanyOfAnotherRequest: what counts by the Config of one client only never hands out the answer of another request, and is
// neither sent nor said to have had no effect.
func TestCompanyOfAnotherRequest(t *testing.T) {
	t.Parallel()
	pairs := samePairs()
	tenant := func(req *http.Request) { req.Header.Set("X-Tenant", "t2") }
	for name, differ := range map[string]func(*http.Request){
		"a secret parameter":   func(req *http.Request) { req.URL.RawQuery = "n=2" },
		"a header that counts": tenant, "it counts, or is secret": tenant,
	} {
		for _, state := range []string{"in doubt", "finished", "refused", "swept", "absent"} {
			for order, pair := range map[string]companions{"": pairs[name], ", reversed": pairs[name].reversed()} {
				t.Run(name+", "+state+order, func(t *testing.T) {
					t.Parallel()
					journaltest.Each(t, func(t *testing.T, j persist.Journal) { anotherRequest(t, j, pair, companyStates[state], differ) })
				})
			}
		}
	}
}

// anotherRequest lets the pair call one after the other, under one key, with requests that differ in what only one of them counts.
func anotherRequest(t *testing.T, j persist.Journal, pair companions, s companyState, differ func(*http.Request)) {
	w := &wiretest.Wire{Replies: []wiretest.Reply{s.first, {Status: 201, Body: "{}"}}}
	client := func(change func(*oncehttp.Config)) *oncehttp.Client {
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Account, cfg.KeepAnswer = "shop", time.Hour }, change))
		return c
	}
	first := client(pair.one)
	_, _ = first.DoKey(companyRequest(t), "k")
	if s.after != nil {
		s.after(t, first)
	}
	req := companyRequest(t)
	differ(req)
	resp, err := client(pair.other).DoKey(req, "k")
	var e *oncehttp.Error
	switch {
	case resp != nil || err == nil:
		t.Fatal("the answer of another request")
	case w.Count() != 1 || journaltest.Count(t, j) != 1 || errors.Is(err, oncehttp.ErrNoEffect):
		t.Errorf("%v after %d sends, with %d records", err, w.Count(), journaltest.Count(t, j))
	case errors.Is(err, oncehttp.ErrConfig) && errors.As(err, &e) && e.Answer != nil:
		t.Errorf("%v, with the answer of what may be another request", err)
	}
}

// TestCompanyOfANewerBuild: a record with a value that only a later version knows is not sent by this one, without its key or
// otherwise, and nothing is said of its effect.
func TestCompanyOfANewerBuild(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*persist.Record){
		"recipe":  func(rec *persist.Record) { rec.Recipe = "v9:x" + rec.Recipe },
		"carrier": func(rec *persist.Record) { rec.Carrier = "trailer" },
	} {
		for state, settle := range map[string]func(*persist.Record){
			"pending": func(*persist.Record) {},
			"absent": func(rec *persist.Record) {
				rec.State, rec.Effect, rec.Finished = persist.StateSettled, persist.EffectAbsent, rec.Created
			},
		} {
			t.Run(name+", "+state, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
					rec, err := c.Prepare(clienttest.Post(t, "{}"), "k")
					if err != nil {
						t.Fatal(err)
					}
					write(&rec)
					rec, _, err = j.Begin(t.Context(), rec)
					if settle(&rec); err == nil && rec.State.Final() {
						err = j.Finish(t.Context(), rec)
					}
					if err != nil {
						t.Fatal(err)
					}
					_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
					known := name == "carrier" && state == "absent" // its request can be compared
					if clienttest.ExactlyOne(t, err); !known && !(errors.Is(err, oncehttp.ErrOutcomeUnknown) && errors.Is(err, oncehttp.ErrConfig)) {
						t.Errorf("Do: %v", err)
					}
					for _, err := range c.Resume(context.Background()) {
						if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrConfig) {
							t.Errorf("Resume: %v", err)
						}
					}
					if w.Count() != 0 {
						t.Errorf("sent: %v", w.All())
					}
				})
			})
		}
	}
}
