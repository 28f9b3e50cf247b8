package guests_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// ofProfileOf are places in an operation under a profile that Config.ProfileOf gives.
func ofProfileOf() map[string]place {
	all := map[string]place{}
	for name, set := range called {
		if name != "Config.Token" {
			all[name+" of ProfileOf"] = place{start: resumeOther, set: set}
		}
	}
	return all
}

// spoil changes everything in a profile that a request could show.
func spoil(p *profile.Profile) {
	p.Carrier.Name, p.Encoding, p.FirstSent = "X-Other-Key", profile.SFString, "X-First-Sent"
	p.Token, p.Methods = nil, nil
	p.Unclear = []profile.Matcher{{Status: []int{http.StatusCreated}}} // what the server's own answers would be taken for
	for i := range p.InProgress {
		p.InProgress[i] = p.Unclear[0]
	}
	for i := range p.Fingerprint {
		p.Fingerprint[i] = "X-Changed"
	}
	for i := range p.AccountHeaders {
		p.AccountHeaders[i] = "X-Changed"
	}
}

// TestRuleCopied: in each place the profiles, maps and lists that New was given are changed, those of ProfileOf too. The operation and a
// later one go on as before: under their keys, in the same header, each once.
func TestRuleCopied(t *testing.T) {
	t.Parallel()
	all := places()
	maps.Copy(all, ofProfileOf())
	ruleCells(t, all, []string{"Profile", "ProfileByHost"}, func(r *rule, variant string) {
		var change []func()
		r.tune = func(cfg *oncehttp.Config) { change = r.given(cfg, variant == "ProfileByHost") }
		r.ask.do = func(*cell, context.Context, oncehttp.Key) error {
			for _, do := range change {
				do()
			}
			return nil
		}
	}, func(r *rule, _ string, _ ending) {
		if err := answered(r.client.DoKey(payment(r.ctx), "later")); err != nil {
			r.Errorf("a later operation: %v", err)
		}
		if err := r.bare(); err != nil {
			r.Errorf("a request through Transport without a key: %v", err)
		}
		later, err := r.inner.Get(context.Background(), persist.ID{Key: "later"})
		if err != nil || later.Header.Get("Content-Type") == "" {
			r.Errorf("a later record has no Content-Type, which is no credential: %v", err)
		}
		if rec, known := r.record(); known && rec.State == persist.StateHeld {
			r.Errorf("the payment is held: %s", rec.Note)
		}
		ledger := r.server.ledger()
		if ledger["later"] != 1 || ledger["payment"] > 1 || r.server.spoiled > 0 {
			r.Errorf("sent: %v; %d with other headers", ledger, r.server.spoiled)
		}
		for key := range ledger {
			if !slices.Contains([]string{"later", "payment", "payment-again", "made"}, key) {
				r.Errorf("%q was sent", key)
			}
		}
	})
}

// bare sends a POST without a key through the client's Transport. It is an operation as long as Methods says so: then it has a key. (Where
// NewKey is the place, the payment has that key.)
func (r *rule) bare() error {
	if r.name == "Config.NewKey" {
		return nil
	}
	req := payment(r.ctx)
	req.URL.Path = "/bare"
	if err := answered(r.client.Transport().RoundTrip(req)); err != nil {
		return err
	}
	if n := r.server.ledger()["made"]; n != 1 {
		return fmt.Errorf("sent %d times under the key that NewKey makes, want once", n)
	}
	return nil
}

// given gives the configuration values of which all can be changed, and returns what changes them.
func (r *rule) given(cfg *oncehttp.Config, byHost bool) (change []func()) {
	p := cfg.Profile
	if p == nil {
		p = profile.Draft07()
	}
	cfg.Profile = p
	if byHost {
		cfg.Profile, cfg.ProfileByHost = nil, map[string]*profile.Profile{"api.example.com": p}
		hosts, other := cfg.ProfileByHost, p.Clone()
		spoil(other)
		change = append(change, func() { hosts["api.example.com"] = other })
	}
	cfg.Methods, cfg.SecretHeaders = []string{http.MethodPost}, []string{"X-Secret"}
	methods, secrets := cfg.Methods, cfg.SecretHeaders
	change = append(change, func() { spoil(p); methods[0], secrets[0] = http.MethodPut, "Content-Type" })
	if cfg.NewKey == nil {
		cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return "made", nil }
	}
	if cfg.OriginAllowed == nil {
		cfg.Origins = []string{"https://api.example.com"}
		origins := cfg.Origins
		change = append(change, func() { origins[0] = "https://elsewhere.example.com" })
	}
	if strings.HasSuffix(r.name, " of ProfileOf") {
		other := otherProfile()
		cfg.ProfileOf = func(persist.Record) *profile.Profile { return other }
		change = append(change, func() { spoil(other) })
	}
	return change
}
