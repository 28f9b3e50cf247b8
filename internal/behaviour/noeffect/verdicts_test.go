// Package noeffect_test holds that each error has one verdict, and that "no effect" is said only where there is none.
package noeffect_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// stood is an operation under the key "k", as it stands before a call.
type stood struct {
	reply  wiretest.Reply // to its first send
	before func(t *testing.T, c *oncehttp.Client)
	effect persist.Effect // of one that has ended
	ended  bool           // final, and not abandoned
	answer bool           // its answer is kept
	goesOn bool           // it is pending
}

// standings are the states of an operation that a call can meet.
func standings() map[string]stood {
	lost, problem := wiretest.Reply{Err: wiretest.ErrLost}, "Content-Type: application/problem+json"
	settle := func(r oncehttp.Resolution) func(*testing.T, *oncehttp.Client) {
		return func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, clienttest.SettleAsSeen(c, t.Context(), "k", r))
		}
	}
	sweep := func(t *testing.T, c *oncehttp.Client) {
		time.Sleep(48 * time.Hour)
		if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	happened, absent := oncehttp.Resolution{Effect: oncehttp.EffectHappened}, oncehttp.Resolution{Effect: oncehttp.EffectAbsent}
	answered := oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200}}
	return map[string]stood{
		"pending":                   {reply: lost, goesOn: true},
		"held":                      {reply: wiretest.Reply{Status: 301}},
		"succeeded":                 {reply: wiretest.Reply{Status: 201}, effect: oncehttp.EffectHappened, ended: true, answer: true},
		"succeeded and swept":       {reply: wiretest.Reply{Status: 201}, before: sweep, effect: oncehttp.EffectHappened, ended: true},
		"accepted":                  {reply: wiretest.Reply{Status: 202}, effect: oncehttp.EffectHappened, ended: true, answer: true},
		"refused":                   {reply: wiretest.Reply{Status: 402, Header: problem}, effect: oncehttp.EffectRefused, ended: true, answer: true},
		"refused, not stored":       {reply: wiretest.Reply{Status: 418}, effect: oncehttp.EffectRefused, ended: true, answer: true},
		"refused and swept":         {reply: wiretest.Reply{Status: 404}, before: sweep, effect: oncehttp.EffectRefused, ended: true},
		"mismatched":                {reply: wiretest.Mismatch(), ended: true},
		"settled as happened":       {reply: lost, before: settle(happened), effect: oncehttp.EffectHappened, ended: true},
		"settled with its answer":   {reply: lost, before: settle(answered), effect: oncehttp.EffectHappened, ended: true, answer: true},
		"settled as absent":         {reply: lost, before: settle(absent), effect: oncehttp.EffectAbsent, ended: true},
		"settled as absent, by 301": {reply: wiretest.Reply{Status: 301}, before: settle(absent), effect: oncehttp.EffectAbsent, ended: true},
		"abandoned": {reply: lost, before: func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Abandon(t.Context(), "k"))
		}},
	}
}

// verdictOf is what a call must be told of an operation. nil: it succeeds, or goes on with the operation.
func (s stood) verdictOf(call string) error {
	same := strings.HasPrefix(call, "same")
	switch {
	case call == "same Enqueue" && s.goesOn:
		return nil
	case !s.ended:
		return oncehttp.ErrOutcomeUnknown
	case s.effect == oncehttp.EffectAbsent && !strings.HasPrefix(call, "other"):
		return oncehttp.ErrNoEffect
	case same && strings.HasSuffix(call, "Enqueue") && s.effect == oncehttp.EffectHappened:
		return nil
	case same && !strings.HasSuffix(call, "Enqueue") && s.answer:
		return nil
	}
	return oncehttp.ErrFinal
}

// asks are the calls that name the key and have a request.
func asks() map[string]func(*oncehttp.Client, *http.Request) error {
	return map[string]func(*oncehttp.Client, *http.Request) error{
		"DoKey":   func(c *oncehttp.Client, req *http.Request) error { _, err := c.DoKey(req, "k"); return err },
		"Enqueue": func(c *oncehttp.Client, req *http.Request) error { return c.Enqueue(req, "k") },
		"Do": func(c *oncehttp.Client, req *http.Request) error {
			_, err := c.Do(req.WithContext(oncehttp.ContextWithKey(req.Context(), "k")))
			return err
		},
		"RoundTrip": func(c *oncehttp.Client, req *http.Request) error {
			req.Header.Set("Idempotency-Key", "k")
			_, err := c.Transport().RoundTrip(req)
			return err
		},
	}
}

// operators are the calls that name the operation by its key alone.
func operators() map[string]func(context.Context, *oncehttp.Client) error {
	return map[string]func(context.Context, *oncehttp.Client) error{
		"Settle": func(ctx context.Context, c *oncehttp.Client) error {
			return c.Settle(ctx, "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
		},
		"Settle with nonsense": func(ctx context.Context, c *oncehttp.Client) error {
			return c.Settle(ctx, "k", oncehttp.Resolution{Effect: oncehttp.EffectRefused})
		},
		"Abandon": func(ctx context.Context, c *oncehttp.Client) error { return c.Abandon(ctx, "k") },
		"Abandon with a long note": func(ctx context.Context, c *oncehttp.Client) error {
			return c.Abandon(ctx, "k", oncehttp.WithNote(strings.Repeat("n", 2000)))
		},
		"Rekey with no reason": func(ctx context.Context, c *oncehttp.Client) error {
			return clienttest.RekeyAsSeen(c, ctx, "k", "k2", "")
		},
		"Rekey": func(ctx context.Context, c *oncehttp.Client) error {
			return clienttest.RekeyAsSeen(c, ctx, "k", "k2", "a test")
		},
	}
}

// TestVerdicts walks every state of an operation, every content and every call: each error matches exactly one verdict, the
// right one, says no more of the effect than is true, and after "no effect" and "final" nothing is sent any more.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	end()
	contents := map[string]func(t *testing.T) *http.Request{
		"same":  func(t *testing.T) *http.Request { return clienttest.Post(t, "{}") },
		"other": func(t *testing.T) *http.Request { return clienttest.Post(t, `{"other":1}`) },
		"unread": func(t *testing.T) *http.Request {
			req := clienttest.Post(t, "{}")
			req.ContentLength = 1 << 40
			return req
		},
		"late": func(t *testing.T) *http.Request { return clienttest.Post(t, "{}").WithContext(ended) },
	}
	for name, s := range standings() {
		for content, request := range contents {
			for call, ask := range asks() {
				if content == "late" && call == "Enqueue" {
					continue // it does not look at its context where the operation exists
				}
				s.walk(t, name, content+" "+call, func(t *testing.T, c *oncehttp.Client) error { return ask(c, request(t)) })
			}
		}
		for call, f := range operators() {
			s.walk(t, name, "key "+call, func(t *testing.T, c *oncehttp.Client) error { return f(t.Context(), c) })
		}
	}
}

// walk lets one call meet the operation.
func (s stood) walk(t *testing.T, name, call string, f func(*testing.T, *oncehttp.Client) error) {
	t.Run(name+"/"+call, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{s.reply, {Err: wiretest.ErrLost}}}
			c, _ := clienttest.New(t, w, clienttest.OneAttempt)
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
			if s.before != nil {
				s.before(t, c)
			}
			err := f(t, c)
			want := s.verdictOf(call)
			if s.verdictIsOpen(call) && err == nil { // the operator's call ends it
				return
			}
			if err == nil || want == nil {
				if (err == nil) != (want == nil) {
					t.Errorf("%v, want %v", err, want)
				}
				return
			}
			var e *oncehttp.Error
			if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, want) || e.Key != "k" {
				t.Fatalf("%v, want %v and the key", err, want)
			}
			if want == oncehttp.ErrFinal && e.Effect() != s.effect {
				t.Errorf("%v: effect %q, want %q", err, e.Effect(), s.effect)
			}
			if strings.HasPrefix(call, "other") != errors.Is(err, oncehttp.ErrKeyReused) && name != "mismatched" {
				t.Errorf("%v: ErrKeyReused", err)
			}
			if sends := w.Count(); want != oncehttp.ErrOutcomeUnknown {
				time.Sleep(time.Hour)
				if got := clienttest.Resume(t, c); w.Count() != sends || len(got) != 0 {
					t.Errorf("after %v %d were sent: %v", err, w.Count()-sends, got)
				}
			}
		})
	})
}

// verdictIsOpen reports whether the call may end the operation.
func (s stood) verdictIsOpen(call string) bool {
	return strings.HasPrefix(call, "key") && (!s.ended || s.effect == oncehttp.EffectAbsent && strings.HasSuffix(call, "Rekey"))
}

// TestVerdictsOnNothing: an operation that is not there is "no effect" for a call that would begin it, and unknown to one that
// expects it.
func TestVerdictsOnNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.OneAttempt)
		for name, f := range operators() {
			if err := f(t.Context(), c); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || strings.Contains(name, "with") == errors.Is(err, persist.ErrNotFound) {
				t.Errorf("%s: %v, want ErrOutcomeUnknown", name, err)
			} else {
				clienttest.ExactlyOne(t, err)
			}
		}
		for name, call := range map[string]func() error{
			"Lookup":          func() error { _, err := c.Lookup(t.Context(), "k"); return err },
			"of no key":       func() error { _, err := c.Lookup(t.Context(), ""); return err },
			"Settle, nothing": func() error { return c.Settle(t.Context(), "k", oncehttp.Resolution{}) },
		} {
			err := call()
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("%s: %v, want ErrOutcomeUnknown and persist.ErrNotFound", name, err)
			}
		}
		large := clienttest.Post(t, "{}")
		large.ContentLength = 1 << 40
		_, err := c.Prepare(large, "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("Prepare: %v, want ErrNoEffect", err)
		}
	})
}

// TestNextGenerationIsNamed by the error of another request, after a refusal and where it was settled as absent; only where
// the API takes such a key.
func TestNextGenerationIsNamed(t *testing.T) {
	t.Parallel()
	for name, s := range standings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{s.reply}}, clienttest.OneAttempt)
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
				if s.before != nil {
					s.before(t, c)
				}
				_, err := c.DoKey(clienttest.Post(t, `{"other":1}`), "k")
				free := s.effect == oncehttp.EffectRefused || s.effect == oncehttp.EffectAbsent
				if free != strings.Contains(err.Error(), `"k:gen=2"`) {
					t.Errorf("%v names the next generation: %v", err, !free)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402}}}, clienttest.OneAttempt)
		for key, next := range map[oncehttp.Key]string{"a:gen=2": `"a:gen=3"`, "a:gen=1": `"a:gen=1:gen=2"`, "a:gen=x": `"a:gen=x:gen=2"`, ":gen=2": `":gen=2:gen=2"`} {
			_, _ = c.DoKey(clienttest.Post(t, "{}"), key)
			_, err := c.DoKey(clienttest.Post(t, `{"other":1}`), key)
			if err == nil || !strings.Contains(err.Error(), next) {
				t.Errorf("%q: %v, want it to name %s", key, err, next)
			}
		}
	})
}
