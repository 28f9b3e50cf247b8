package run

import (
	"context"
	"net/http"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file counts the visits of a client in functions of its Config, and in its Transport.

// countNewKey has NewKey counted while it runs, and refused once the client is closed. The NewKey of KeyFromJSON only reads, so it is never
// refused. countNewKey is called after fill, since fill inspects NewKey.
func countNewKey(c *Config, v *visits) {
	f, ours := c.reader.Keys.New, c.ReadsKey
	if c.randomKeys {
		return
	}
	c.reader.Keys.New = func(req *http.Request) (string, bool, error) {
		if !ours && v.isClosed() {
			return "", false, errNoNewKey
		}
		v.begin("Config.NewKey")
		defer v.end("Config.NewKey")
		return f(req)
	}
}

// countVisits replaces the functions of the Config by ones that count themselves in v while they run. So Close can say in which function of the user
// a call still is. It is called once, before fill.
func countVisits(c *Config, v *visits) {
	if f := c.Token; f != nil {
		c.Token = func(ctx context.Context, rec persist.Record) (string, error) {
			v.begin("Config.Token")
			defer v.end("Config.Token")
			return f(ctx, rec)
		}
	}
	if f := c.Authorize; f != nil {
		c.Authorize = func(req *http.Request) error {
			v.begin("Config.Authorize")
			defer v.end("Config.Authorize")
			return f(req)
		}
	}
	if f := c.Reconcile; f != nil {
		c.Reconcile = func(ctx context.Context, rec persist.Record) (Resolution, error) {
			v.begin("Config.Reconcile")
			defer v.end("Config.Reconcile")
			return f(ctx, rec)
		}
	}
	if f := c.OnResult; f != nil {
		c.OnResult = func(ctx context.Context, rec persist.Record) error {
			v.begin("Config.OnResult")
			defer v.end("Config.OnResult")
			return f(ctx, rec)
		}
	}
	if f := c.Observe; f != nil {
		// The count is looked up once: Observe is called at every step.
		running := v.guest("Config.Observe")
		c.Observe = func(ctx context.Context, e *Event) {
			running.Add(1)
			defer running.Add(-1)
			f(ctx, e)
		}
	}
	// instrument.go counts by it: what the methods of an Instrument return is called later, and counted, too.
	c.instrumenting = v.guest("Config.Instrument")
	countMoreVisits(c, v)
}

// countMoreVisits does the work of countVisits for the functions of the Config from which no call of the client is expected.
func countMoreVisits(c *Config, v *visits) {
	if f := c.Operation; f != nil {
		c.Operation = func(req *http.Request) bool {
			v.begin("Config.Operation")
			defer v.end("Config.Operation")
			return f(req)
		}
	}
	if f := c.KeepHeader; f != nil {
		c.KeepHeader = func(name string) bool {
			v.begin("Config.KeepHeader")
			defer v.end("Config.KeepHeader")
			return f(name)
		}
	}
	if f := c.ProfileOf; f != nil {
		c.ProfileOf = func(rec persist.Record) *profile.Profile {
			v.begin("Config.ProfileOf")
			defer v.end("Config.ProfileOf")
			return f(rec)
		}
	}
	if f := c.OriginAllowed; f != nil {
		c.OriginAllowed = func(origin string) bool {
			v.begin("Config.OriginAllowed")
			defer v.end("Config.OriginAllowed")
			return f(origin)
		}
	}
	if f := c.Limiter; f != nil {
		c.Limiter = func(origin string) Limiter {
			v.begin("Config.Limiter")
			defer v.end("Config.Limiter")
			limiter := f(origin)
			// A nil pointer in the interface is no limiter: whoever asks for it sees it as it is.
			if limiter == nil || isNil(limiter) {
				return limiter
			}
			return countedLimiter{limiter, v}
		}
	}
}

// countedLimiter is a limiter of the user's.
type countedLimiter struct {
	Limiter
	visits *visits
}

// Wait calls the user's limiter, and counts the call while it runs: Close can then say that it waits for it.
func (l countedLimiter) Wait(ctx context.Context) error {
	l.visits.begin("the Wait of a Limiter")
	defer l.visits.end("the Wait of a Limiter")
	return l.Limiter.Wait(ctx)
}

// counted returns a Transport that counts its sends in v. A Transport of net/http heeds its context and stays as
// it is: Close need not name it.
func counted(rt http.RoundTripper, v *visits) http.RoundTripper {
	if _, std := rt.(*http.Transport); std {
		return rt
	}
	return countedTransport{rt, v}
}

// countedTransport is a Transport of the user's.
type countedTransport struct {
	http.RoundTripper
	visits *visits
}

// uncounted returns the user's own Transport, without the wrapper that counted has put around it; any other one as it is.
func uncounted(rt http.RoundTripper) http.RoundTripper {
	if c, is := rt.(countedTransport); is {
		return c.RoundTripper
	}
	return rt
}

// RoundTrip sends by the user's Transport, and counts the call while it runs: Close can then say that it waits for it.
func (t countedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.visits.begin("Config.Transport")
	defer t.visits.end("Config.Transport")
	return t.RoundTripper.RoundTrip(req)
}
