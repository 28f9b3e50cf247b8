package callbacks_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// guestsWithContext sets, for each function of the Config that a Do calls with a context, one that calls visit with it first.
var guestsWithContext = map[string]func(cfg *oncehttp.Config, visit func(context.Context) error){
	"Authorize": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.Authorize = func(req *http.Request) error { return visit(req.Context()) }
	},
	"Observe": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.Observe = func(ctx context.Context, e oncehttp.Event) {
			if e.Kind != oncehttp.EventEnqueued { // no operation is under way then
				_ = visit(ctx)
			}
		}
	},
	"Limiter": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.Limiter = func(string) oncehttp.Limiter { return clienttest.LimiterFunc(visit) }
	},
	"Transport": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		next := cfg.Transport
		cfg.Transport = wiretest.Func(func(req *http.Request) (*http.Response, error) {
			if err := visit(req.Context()); err != nil {
				return nil, err
			}
			return next.RoundTrip(req)
		})
	},
	"Token": func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.Profile = clienttest.TokenProfile()
		cfg.Token = func(ctx context.Context, rec persist.Record) (string, error) { return rec.Key, visit(ctx) }
	},
}

// newGuest is a client whose function of this name calls visit.
func newGuest(t *testing.T, name string, rt http.RoundTripper, visit func(context.Context) error) *oncehttp.Client {
	t.Helper()
	c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) { guestsWithContext[name](cfg, visit) })
	return c
}
