package guests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// noContext stands for the missing context of a function of the user that is given none.
var noContext context.Context

// place is a function of the user, or the body of a loop.
type place struct {
	set   func(c *cell, cfg *oncehttp.Config)
	start func(c *cell) error
	// journal: it is a method of a journal of the user's own.
	journal bool
	// bare: it gets no context.
	bare bool
	// body: what the request of the operation has for a body; nil: an ordinary one.
	body func(c *cell, req *http.Request)
	// within is the context of the request; nil: an ordinary one.
	within func(c *cell) context.Context
}

// acts reports whether the operation is a person's act, which may end it.
func (c *cell) personActs() bool { return strings.Contains(c.name, " by ") }

// places are the places, by what the user gives: a field of Config, a method of an interface, or the name of a loop. After a space
// comes what tells places of one function apart.
func places() map[string]place {
	all := map[string]place{
		"Config.NewKey": {start: send, set: func(c *cell, cfg *oncehttp.Config) {
			cfg.NewKey = func(req *http.Request) (oncehttp.Key, error) { c.visit(req.Context()); return "payment", nil }
		}},
		"Config.KeepHeader": {start: send, bare: true, body: withCredential, set: func(c *cell, cfg *oncehttp.Config) {
			cfg.KeepHeader = func(string) bool { c.visit(noContext); return false }
		}},
		"Config.KeepHeader of an answer":             {start: send, bare: true, set: atAnswersHeader},
		"Config.KeepHeader of an answer on a worker": {start: work, bare: true, set: atAnswersHeader},
		"Config.ProfileOf": {start: resumeOther, bare: true, set: func(c *cell, cfg *oncehttp.Config) {
			cfg.ProfileOf = func(persist.Record) *profile.Profile { c.visit(noContext); return otherProfile() }
		}},
		"Config.Reconcile": {start: resumeHeld, set: func(c *cell, cfg *oncehttp.Config) {
			cfg.Reconcile = func(ctx context.Context, _ persist.Record) (oncehttp.Resolution, error) {
				c.visit(ctx)
				return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, nil
			}
		}},
		"Request.Body Read": {start: send, bare: true, body: func(c *cell, req *http.Request) {
			req.Body, req.GetBody = &visitingBody{ReadCloser: req.Body, read: func() { c.visit(noContext) }}, nil
		}},
		"Request.Body Close": {start: send, bare: true, body: func(c *cell, req *http.Request) {
			req.Body, req.GetBody = &visitingBody{ReadCloser: req.Body, end: func() { c.visit(noContext) }}, nil
		}},
		"Request.GetBody": {start: send, bare: true, body: func(c *cell, req *http.Request) {
			next := req.GetBody
			req.Body = io.NopCloser(bytes.NewReader(nil)) // it was read before
			req.GetBody = func() (io.ReadCloser, error) { c.visit(noContext); return next() }
		}},
		"Context.Value":                     {start: send, bare: true, within: asked("account")},
		"Context.Value of a call under way": {start: send, bare: true, within: asked("work")},
		"Context.Value of a trace":          {start: send, bare: true, within: asked("clientEvent")},
		"Client.Resume":                     {start: inResume},
		"Client.Unfinished":                 {start: inUnfinished},
	}
	for n := range int32(2) {
		set := atOriginAllowed(n + 1)
		all[fmt.Sprintf("Config.OriginAllowed %d", n+1)] = place{start: send, bare: true, set: set}
		all[fmt.Sprintf("Config.OriginAllowed %d on a worker", n+1)] = place{start: work, bare: true, set: set}
	}
	for name, set := range called {
		all[name] = place{start: send, set: set}
		all[name+" on a worker"] = place{start: work, set: set}
	}
	for name, p := range journalPlaces() {
		all[name] = p
	}
	return all
}

// atOriginAllowed visits at the nth call of that function: it is called before there is an operation, too.
func atOriginAllowed(n int32) func(c *cell, cfg *oncehttp.Config) {
	return func(c *cell, cfg *oncehttp.Config) {
		var calls atomic.Int32
		cfg.OriginAllowed = func(string) bool {
			if c.armed.Load() && calls.Add(1) == n {
				c.visit(noContext)
			}
			return true
		}
	}
}

// atAnswersHeader visits when it is asked of a header of the answer.
func atAnswersHeader(c *cell, cfg *oncehttp.Config) {
	cfg.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
		resp, err := c.server.RoundTrip(req)
		if err == nil {
			resp.Header.Set("X-Auth-Token", "abc")
		}
		return resp, err
	})
	cfg.KeepHeader = func(name string) bool {
		if name == "X-Auth-Token" {
			c.visit(noContext)
		}
		return false
	}
}

// called are the functions that every send calls with a context.
var called = map[string]func(c *cell, cfg *oncehttp.Config){
	"Config.Authorize": func(c *cell, cfg *oncehttp.Config) {
		cfg.Authorize, cfg.Origins = func(req *http.Request) error { c.visit(req.Context()); return nil }, []string{"https://api.example.com"}
	},
	"Config.Observe": func(c *cell, cfg *oncehttp.Config) {
		cfg.Observe = func(ctx context.Context, e oncehttp.Event) {
			if e.Kind != oncehttp.EventBegun {
				c.visit(ctx)
			}
		}
	},
	"Instrument.Operation": func(c *cell, cfg *oncehttp.Config) { cfg.Instrument = visitingSpans{operation: c.visit} },
	"Instrument.Attempt":   func(c *cell, cfg *oncehttp.Config) { cfg.Instrument = visitingSpans{attempt: c.visit} },
	"Config.Limiter": func(c *cell, cfg *oncehttp.Config) {
		cfg.Limiter = func(string) oncehttp.Limiter { c.visit(noContext); return nil }
	},
	"Limiter.Wait": func(c *cell, cfg *oncehttp.Config) {
		cfg.Limiter = func(string) oncehttp.Limiter { return limiter{c} }
	},
	"Config.Token": func(c *cell, cfg *oncehttp.Config) {
		cfg.Profile = tokenProfile()
		cfg.Token = func(ctx context.Context, rec persist.Record) (string, error) { c.visit(ctx); return rec.Key, nil }
	},
	"Config.Transport": func(c *cell, cfg *oncehttp.Config) {
		cfg.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
			c.visit(req.Context())
			return c.server.RoundTrip(req)
		})
	},
	"Response.Body Read": func(c *cell, cfg *oncehttp.Config) {
		cfg.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := c.server.RoundTrip(req)
			if err == nil {
				resp.Body = &visitingBody{ReadCloser: resp.Body, read: func() { c.visit(req.Context()) }}
			}
			return resp, err
		})
	},
	"Response.Body Close": func(c *cell, cfg *oncehttp.Config) {
		cfg.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := c.server.RoundTrip(req)
			if err == nil {
				resp.Body = &visitingBody{ReadCloser: resp.Body, end: func() { c.visit(req.Context()) }}
			}
			return resp, err
		})
	},
}

// send sends the payment.
func send(c *cell) error {
	ctx := c.ctx
	if c.place.within != nil {
		ctx = c.place.within(c)
	}
	req := payment(ctx)
	if c.place.body != nil {
		c.place.body(c, req)
	}
	if c.name != "Config.NewKey" {
		req = withKey(req, "payment")
	}
	return answered(c.client.Do(req))
}

// work enqueues the payment, and lets Run send it.
func work(c *cell) error {
	if err := c.client.Enqueue(payment(c.ctx), "payment"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- c.client.Run(ctx) }()
	for range 60 {
		select {
		case err := <-result:
			return err
		case <-time.After(50 * time.Millisecond):
		}
		if rec, err := c.inner.Get(c.ctx, persist.ID{Key: "payment"}); err == nil && rec.State.Final() && c.visited.Load() {
			break
		}
	}
	cancel()
	return <-result
}

// withCredential has a header of which KeepHeader is asked, and for which the journal's secret is read.
func withCredential(_ *cell, req *http.Request) { req.Header.Set("X-Api-Key", "abc") }

// inResume calls in the body of a loop over Resume.
func inResume(c *cell) (err error) {
	if err := c.client.Enqueue(payment(c.ctx), "payment"); err != nil {
		return err
	}
	for _, failed := range c.client.Resume(c.ctx) {
		c.visit(noContext)
		err = errors.Join(err, failed)
	}
	return err
}

// inUnfinished calls in the body of a loop over Unfinished, and sends then.
func inUnfinished(c *cell) (err error) {
	if err := c.client.Enqueue(payment(c.ctx), "payment"); err != nil {
		return err
	}
	for _, failed := range c.client.Unfinished(c.ctx) {
		c.visit(noContext)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, send(c))
}

// resumeHeld resumes a payment that is held, and that nobody has sent.
func resumeHeld(c *cell) error {
	if err := c.client.Enqueue(payment(c.ctx), "payment"); err != nil {
		return err
	}
	rec, err := c.inner.Get(c.ctx, persist.ID{Key: "payment"})
	if err != nil {
		return err
	}
	rec.State, rec.HoldReason, rec.MaybeSent, rec.FirstSent = persist.StateHeld, persist.HoldUnclear, true, time.Now()
	if _, err := c.inner.Update(c.ctx, rec); err != nil {
		return err
	}
	return resume(c, c.ctx, "")
}

// otherProfile is a profile that only Config.ProfileOf and a client of its own know.
func otherProfile() *profile.Profile {
	p := profile.Draft07()
	p.Name = "other"
	return p
}

// tokenProfile is a profile whose tokens Config.Token asks for.
func tokenProfile() *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Token = "with-token", &profile.Token{}
	return p
}

// resumeOther resumes a payment that was begun under that profile.
func resumeOther(c *cell) error {
	other, err := oncehttp.New(oncehttp.Config{Journal: c.inner, Transport: c.server, Profile: otherProfile(), Retry: policy()})
	if err != nil {
		return err
	}
	err = other.Enqueue(payment(c.ctx), "payment")
	return errors.Join(err, other.Close(), resume(c, c.ctx, ""))
}

// visitingBody calls a function before each Read, or before Close.
type visitingBody struct {
	io.ReadCloser
	read, end func()
}

// Read calls read, and reads.
func (b *visitingBody) Read(p []byte) (int, error) {
	if b.read != nil {
		b.read()
	}
	return b.ReadCloser.Read(p)
}

// Close calls end, and closes.
func (b *visitingBody) Close() error {
	if b.end != nil {
		b.end()
	}
	return b.ReadCloser.Close()
}

// limiter visits while it waits.
type limiter struct{ c *cell }

// Wait visits.
func (l limiter) Wait(ctx context.Context) error { l.c.visit(ctx); return nil }

// roundTrip lets a function be a Transport.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// visitingContext visits when it is asked for a value of a key whose type has this in its name.
type visitingContext struct {
	context.Context
	c   *cell
	key string
}

// asked gives the request of an operation such a context.
func asked(key string) func(c *cell) context.Context {
	return func(c *cell) context.Context { return &visitingContext{c.ctx, c, key} }
}

// Value visits.
func (v *visitingContext) Value(key any) any {
	if strings.Contains(fmt.Sprintf("%T", key), v.key) {
		v.c.visit(noContext)
	}
	return v.Context.Value(key)
}

// visitingSpans is an Instrument that visits in the methods that are set.
type visitingSpans struct{ operation, attempt func(context.Context) }

func (v visitingSpans) Operation(ctx context.Context, _ oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	return visitIn(ctx, v.operation)
}

func (v visitingSpans) Attempt(ctx context.Context, _ oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	return visitIn(ctx, v.attempt)
}

func visitIn(ctx context.Context, visit func(context.Context)) (context.Context, func(oncehttp.Event)) {
	if visit != nil {
		visit(ctx)
	}
	return ctx, nil
}
