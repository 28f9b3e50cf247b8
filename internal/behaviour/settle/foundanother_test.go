package settle_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestFoundObjectAnswersOneOperation: Reconcile finds an object that another operation of the journal has as its answer, such as that of an equal instalment. It proves
// nothing, and the operation stays held.
func TestFoundObjectAnswersOneOperation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, found string // the answer to the first operation, and what is found for the second
		path         string // of the second
		settles      bool
	}{
		"the same object":              {`{"id":"ch_1","amount":100}`, `{"id":"ch_1","amount":100,"refunded":false}`, "/v1/charges", false},
		"the same object, in a list":   {`{"id":"ch_1"}`, `{"data":[{"id":"ch_1"}],"has_more":false}`, "/v1/charges", false},
		"the same object, in a member": {`{"payments":{"id":"ch_1"}}`, `{"id":"ch_1"}`, "/v1/charges", false},
		"another object":               {`{"id":"ch_1"}`, `{"id":"ch_2"}`, "/v1/charges", true},
		"an id of another kind":        {`{"id":1}`, `{"id":1}`, "/v1/refunds", true},
		"no id":                        {`{"ok":true}`, `{"ok":true}`, "/v1/charges", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: c.first}, {Status: 500, Header: "Stripe-Should-Retry: false", Body: `{"error":{"type":"api_error"}}`}}}
				client, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Profile = profile.StripeV1()
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Note: "found", Answer: &persist.Answer{Status: 200, Body: []byte(c.found)}}, nil
					}
				})
				clienttest.Do(t, client, clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "{}"), "order:1")
				_, err := client.DoKey(clienttest.Request(t, http.MethodPost, "https://api.example.com"+c.path, "{}"), "order:2")
				if err == nil {
					t.Fatal("the second is not held")
				}
				var told error
				for _, err := range client.Resume(t.Context()) {
					told = err
				}
				rec := clienttest.Lookup(t, client, "order:2")
				switch {
				case c.settles && rec.FinalEffect() != persist.EffectHappened:
					t.Errorf("%v, %v", rec.State, told)
				case !c.settles && (rec.State != persist.StateHeld || told == nil || !strings.Contains(told.Error(), `"order:1"`)):
					t.Errorf("%v, %v", rec.State, told)
				}
			})
		})
	}
}

// unread is a journal with a record that this client cannot read, as of another seal key.
type unread struct{ persist.Journal }

// List lists that record, too.
func (j unread) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		if slices.Contains(q.States, persist.StateConfirmed) && !yield(persist.Record{}, fmt.Errorf("order:1: %w", persist.ErrSealed)) {
			return
		}
		for rec, err := range j.Journal.List(ctx, q) {
			if !yield(rec, err) {
				return
			}
		}
	}
}

// TestFoundObjectMayBeOfAnUnreadOne: while an ended operation of the place cannot be read, what Reconcile finds may be its answer, and proves nothing. (Invariant 65.)
func TestFoundObjectMayBeOfAnUnreadOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500, Header: "Stripe-Should-Retry: false", Body: `{"error":{"type":"api_error"}}`}}}
		client, _ := clienttest.New(t, w, clienttest.On(unread{memory.New()}, func(cfg *oncehttp.Config) {
			cfg.Profile = profile.StripeV1()
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200, Body: []byte(`{"id":"ch_1"}`)}}, nil
			}
		}))
		if _, err := client.DoKey(clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "{}"), "order:2"); err == nil {
			t.Fatal("it is not held")
		}
		var told error
		for _, err := range client.Resume(t.Context()) {
			told = err
		}
		if rec := clienttest.Lookup(t, client, "order:2"); rec.State != persist.StateHeld || told == nil || !strings.Contains(told.Error(), "may be the answer to another operation") {
			t.Errorf("%v, %v", rec.State, told)
		}
	})
}
