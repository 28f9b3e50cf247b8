package oncehttp_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// guestsWithContext sets, for each function of the Config that a Do calls with a context, one that calls visit with it first.
var guestsWithContext = map[string]func(cfg *oncehttp.Config, visit func(context.Context) error){
	"Authorize": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.Authorize = func(req *http.Request) error { return visit(req.Context()) }
	},
	"Observe": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.Observe = func(ctx context.Context, _ oncehttp.Event) { _ = visit(ctx) }
	},
	"Limiter": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.Limiter = func(string) oncehttp.Limiter { return limiterFunc(visit) }
	},
	"Transport": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		next := cfg.Transport
		cfg.Transport = roundTripFunc(func(req *http.Request) (*http.Response, error) {
			if err := visit(req.Context()); err != nil {
				return nil, err
			}
			return next.RoundTrip(req)
		})
	},
	"Token": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.Profile = tokenProfile()
		cfg.Token = func(ctx context.Context, rec persist.Record) (string, error) { return rec.Key, visit(ctx) }
	},
}

// limiterFunc lets a function be an oncehttp.Limiter.
type limiterFunc func(context.Context) error

// Wait calls the function.
func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// newGuest is a client whose function of this name calls visit.
func newGuest(t *testing.T, name string, rt http.RoundTripper, visit func(context.Context) error) *oncehttp.Client {
	t.Helper()
	c, _ := newClient(t, rt, func(cfg *oncehttp.Config) { guestsWithContext[name](cfg, visit) })
	return c
}

// tokenProfile is a profile whose tokens Config.Token asks for.
func tokenProfile() *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Token = "with-token", &profile.Token{}
	return p
}
