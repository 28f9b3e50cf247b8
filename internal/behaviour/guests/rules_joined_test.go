package guests_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
)

// gift is what one caller got.
type gift struct {
	resp *http.Response
	err  error
}

// TestRuleJoinersAreApart: in each place three others ask for the payment that is under way. Each has its own error, answer and map of
// headers, which it changes at once, and is told of the sends that the server had.
func TestRuleJoinersAreApart(t *testing.T) {
	t.Parallel()
	at := places()
	delete(at, "persist.Claimer.Now") // which no call passes meanwhile
	ruleCells(t, at, []string{"answered", "failed", "lost"}, func(r *rule, variant string) {
		var mu sync.Mutex
		r.tune = onceOnly
		r.prepare = func() {
			r.server.delay = time.Second / 4
			r.server.loses.Store(variant == "lost")
			if variant == "failed" {
				r.server.status = 503
			}
		}
		r.ask.do = func(_ *cell, ctx context.Context, _ oncehttp.Key) error {
			for range 3 {
				r.extra.Go(func() {
					resp, err := r.client.DoKey(payment(ctx), "payment")
					mu.Lock()
					r.gifts = append(r.gifts, gift{resp, err})
					mu.Unlock()
				})
			}
			time.Sleep(time.Millisecond) // until they have joined
			return nil
		}
	}, func(r *rule, _ string, e ending) {
		r.apart(append(slices.Clone(r.gifts), gift{err: e.err}))
	})
}

// apart checks that no gift shares anything with another, and that each tells the truth about the sends.
func (r *rule) apart(gifts []gift) {
	sent := r.server.ledger()["payment"]
	seen := map[any]bool{}
	mine := func(what string, of any) {
		if v := reflect.ValueOf(of); v.IsNil() {
			return
		} else if at := any(v.Pointer()); seen[at] {
			r.Errorf("two have one %s", what)
		} else {
			seen[at] = true
		}
	}
	for _, g := range gifts {
		var e *oncehttp.Error
		switch {
		case g.resp != nil:
			res := oncehttp.ResultOf(g.resp)
			mine("header map of a response", g.resp.Header)
			if g.resp.Header.Get("X-Id") != "7" && r.name != "Config.Reconcile" {
				r.Errorf("a header: %v", g.resp.Header)
			}
			if g.resp.Header != nil {
				g.resp.Header.Set("X-Id", "8")
			}
			if res.Sends > sent || sent > 0 && res.Sends < 1 || sent == 1 && res.Sends != 1 {
				r.Errorf("a response tells of %d sends, joined %t; the server had %d", res.Sends, res.Joined, sent)
			}
			_ = g.resp.Body.Close()
		case errors.As(g.err, &e):
			mine("error", e)
			if e.Answer != nil {
				mine("answer of an error", e.Answer)
				mine("header map of an error", e.Answer.Header)
				if e.Answer.Header != nil {
					e.Answer.Header.Set("X-Id", "8")
				}
			}
			least := 0
			if e.Joined && e.Attempts > 0 && sent > 0 && !errors.Is(e, oncehttp.ErrNotSent) {
				least = 1
			}
			if e.Sends < least || e.Sends > 1 { // one attempt
				r.Errorf("an error tells of %d sends, joined %t: %v; the server had %d", e.Sends, e.Joined, e, sent)
			}
			e.Key, e.Sends, e.Cause = "other", 99, nil
		}
	}
}
