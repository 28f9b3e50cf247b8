package sim

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// config returns the Config of a client in one run of the simulated program. Each account has its own credentials at the server, if Config.Authorize
// gives them.
func (w *world) config(l *life, journal persist.Journal, account int) oncehttp.Config {
	s := &w.plan.Setting
	cfg := oncehttp.Config{
		Operation: oncehttp.Writes,
		Journal:   journal, Account: l.account(account), Profile: s.Profile, Retry: l.variant.retry,
		Transport: w.network(l, account), MaxResponseBytes: l.variant.answers, ResumeWorkers: l.variant.workers,
		EnqueueMaxAge: l.variant.enqueueMaxAge, Lease: l.variant.lease,
		MaxRequestBytes: bodyMax, KeepAnswer: s.KeepAnswer, NewKey: l.variant.newKey(w),
	}
	l.variant.profiles(&cfg, s.Upgrades && l.number%2 == 0)
	l.variant.secrets(&cfg)
	l.variant.company.apply(w, l, &cfg)
	switch {
	case s.Customers == byAccount:
		cfg.Authorize = w.names
	case s.Authorize:
		cfg.Authorize = w.authorize(accountName(account))
	}
	if _, shared := journal.(persist.Claimer); shared || cfg.Authorize != nil {
		cfg.Origins = []string{w.pipe.URL}
	}
	if s.Customers == byCredentials || s.Changes.Accounts > 0 || s.Changes.Builds {
		cfg.Logger = slog.New(slog.DiscardHandler) // Run logs foreign operations, not sendable by it
	}
	if s.Reconcile {
		cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
			return oncehttp.Resolution{Effect: w.model.truth(rec)}, nil
		}
	}
	w.guests(l, &cfg)
	return cfg
}

// accountName returns the name of the account with this number.
func accountName(n int) string { return "account" + strconv.Itoa(n) }

// newKey is Config.NewKey of the simulation: it returns the key of a request without one. With FixedKeys, equal paths have equal keys; otherwise each
// call gets a new key. The keys are not random: the server's faults depend on the key, and must be the same in each run of a seed.
func (w *world) newKey(req *http.Request) (oncehttp.Key, error) {
	if w.plan.Setting.FixedKeys {
		return oncehttp.Key("fixed:" + req.URL.Path), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made[req.URL.Path]++
	return oncehttp.Key(fmt.Sprintf("made:%s:%d", req.URL.Path, w.made[req.URL.Path])), nil
}

// newKey returns Config.NewKey for one run of the simulated program, by this variant of its configuration; nil in runs without it.
func (v variant) newKey(w *world) func(*http.Request) (oncehttp.Key, error) {
	switch {
	case v.keys == keysOfBusiness:
		return oncehttp.KeyFromJSON(oncehttp.NewScope("body"), "/order")
	case v.keys == keysAtRandom, w.plan.Setting.RandomKeys:
		return nil
	}
	return w.newKey
}

// profiles sets the profile for one life, a run of the simulated program. Some lives have the next version of it; upgraded ones compare one more
// header. An operation is sent by the version under which it was begun, see ProfileOf.
func (v variant) profiles(cfg *oncehttp.Config, upgraded bool) {
	before := cfg.Profile
	next := before.Clone()
	next.Version += "-next"
	next.Window.Floor /= 2
	if v.next {
		cfg.Profile = next
	}
	if upgraded {
		cfg.Profile = cfg.Profile.Clone()
		cfg.Profile.Fingerprint = append([]string{versionHeader}, cfg.Profile.Fingerprint...)
	}
	cfg.ProfileOf = func(rec persist.Record) *profile.Profile {
		if rec.ProfileVersion == next.Version {
			return next
		}
		return before
	}
}

// Additions to the requests of some runs: a header, compared by some profiles, another one with a name like a credential's, and a
// parameter. In some lives they are secret.
const (
	versionHeader = "X-Version"
	noteHeader    = "X-Session-Note"
	parameter     = "channel"
)

// secrets sets the names of the headers and parameters that count as credentials in one run of the simulated program, and the one header that is kept
// in spite of its name.
func (v variant) secrets(cfg *oncehttp.Config) {
	cfg.SecretHeaders, cfg.SecretParameters = v.secretHeaders, v.secretParameters
	if v.keepsNote {
		cfg.KeepHeader = func(name string) bool { return strings.EqualFold(name, noteHeader) }
	}
}

// carry adds two headers and a query to req, each with a value made of ref, if the setting says so. Some clients count these as secret, others do
// not.
func (w *world) carry(req *http.Request, ref string) {
	if !w.plan.Setting.Changes.Secrets {
		return
	}
	req.Header.Set(versionHeader, "v-"+ref)
	req.Header.Set(noteHeader, "n-"+ref)
	req.URL.RawQuery = parameter + "=c-" + ref
}

// authorize returns the client's Config.Authorize for a principal, which sets the credentials of each send. It also adds the headers and the query
// that the plan leaves out of the record.
func (w *world) authorize(principal string) func(*http.Request) error {
	return func(req *http.Request) error {
		req.Header.Set("Authorization", principal)
		ref := refOf(req.URL.Path)
		if !w.plan.Setting.Changes.Secrets || req.Method == http.MethodGet {
			return nil
		}
		req.Header.Set(versionHeader, "v-"+ref)
		req.Header.Set(noteHeader, "n-"+ref)
		if req.URL.RawQuery == "" {
			req.URL.RawQuery = parameter + "=c-" + ref
		}
		return nil
	}
}
