package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/reconcile"
)

const formType, jsonType = "application/x-www-form-urlencoded", "application/json"

// played is one reconciler at the mock that plays its API.
type played struct {
	api    *profile.Profile // which the mock plays
	own    *profile.Profile // the client's; nil: api
	ask    func(reconcile.Asker) reconcile.Func
	kind   string
	path   string
	body   string
	others []string // bodies of further operations of the same caller, which come after it
	lost   mockserver.Fault
	none   mockserver.Fault // with which nothing is made
	query  string           // of the request with which nothing is made
	tries  int              // attempts of a call
	found  string           // what the settled answer holds
}

// order sends the operation once, at url.
func (c *played) order(t *testing.T, client *oncehttp.Client, url string) (body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", c.kind)
	resp, err := client.DoKey(req, "order-o1")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// post makes something else at the mock, as the caller.
func (c *played) post(t *testing.T, transport http.RoundTripper, url, caller, key, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {c.kind}, "Authorization": {caller}, "Idempotency-Key": {key}}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("another operation: %s", resp.Status)
	}
}

// play sends the operation, lets the window pass, and resumes. The operation met the fault; made says whether it took effect.
func (c *played) play(t *testing.T, fault mockserver.Fault, query string, made bool) {
	server := mockserver.New(mockserver.Config{Profile: c.api, Script: []mockserver.Fault{fault}})
	defer server.Close()
	pipe := server.Pipe()
	transport, asker := pipe.Transport(), authorized()
	defer transport.CloseIdleConnections()
	asker.Client = &http.Client{Transport: transport}
	own := c.api
	if c.own != nil {
		own = c.own
	}
	ask, asked := c.ask(asker), 0
	client, err := oncehttp.New(oncehttp.Config{
		Journal: memory.New(), Profile: own, Transport: transport, Origins: []string{"http://127.0.0.1:*", "http://mock.test"}, Authorize: asker.Authorize,
		Reconcile: func(ctx context.Context, rec persist.Record) (oncehttp.Resolution, error) {
			asked++
			return ask(ctx, rec)
		},
		Retry: oncehttp.Policy{MaxAttempts: c.tries},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := c.order(t, client, pipe.URL+c.path+query); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatalf("%v, want ErrOutcomeUnknown", err)
	}
	if c.api.Reference == nil { // else the number is taken
		c.post(t, transport, pipe.URL+c.path, "Bearer another", "order-o1", c.body)
	}
	for i, body := range c.others {
		c.post(t, transport, pipe.URL+c.path, "Bearer k", fmt.Sprintf("other-%d", i), body)
	}
	others := server.Ledger().Snapshot().Effects
	time.Sleep(48 * time.Hour)
	for range 2 { // the first pass may hold the operation, since its window is over
		for res, err := range client.Resume(t.Context()) {
			if res.Outcome == oncehttp.OutcomeNotSent || errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("said that there was no effect: %+v, %v", res, err)
			}
		}
	}
	rec, err := client.Lookup(t.Context(), "order-o1")
	body, again := c.order(t, client, pipe.URL+c.path+query)
	switch settled := rec.State == persist.StateSettled && rec.Effect == oncehttp.EffectHappened && rec.Answer != nil; {
	case err != nil:
		t.Error(err)
	case made && (!settled || again != nil || !strings.Contains(body, c.found) || body != string(rec.Answer.Body)):
		t.Errorf("%s, %s, answer %+v; then %q, %v; want it settled, with %s", rec.State, rec.Effect, rec.Answer, body, again, c.found)
	case !made && (rec.State != persist.StateHeld || !errors.Is(again, oncehttp.ErrOutcomeUnknown)):
		t.Errorf("%s, %s; then %v; want it held", rec.State, rec.Effect, again)
	}
	if asked == 0 {
		t.Error("the reconciler was not asked")
	}
	if now := server.Ledger().Snapshot().Effects; now != others {
		t.Errorf("%d effects after the passes, %d before", now, others)
	}
}

// both plays the operation that took effect, and the one that did not: that one stays unknown.
func (c *played) both(t *testing.T) {
	t.Parallel()
	t.Run("made", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { c.play(t, c.lost, "", true) }) })
	t.Run("nothing made", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { c.play(t, c.none, c.query, false) }) })
}

// Stripe keeps a 500, whether the charge was made or not. The list has it on its second page, and charges of other accounts
// are in other lists.
func TestStripeAtTheMock(t *testing.T) {
	c := played{
		api:  profile.StripeV1(),
		ask:  func(a reconcile.Asker) reconcile.Func { return a.Stripe("/metadata/order", "/amount", "/currency") },
		kind: formType, path: "/v1/charges", body: "amount=100&currency=eur&metadata[order]=o1",
		lost: mockserver.Fault{Kind: mockserver.AnswerAfter, Status: 500}, query: "?fail=500", found: `"id":"v1_charges_1"`,
	}
	for i := range 120 {
		c.others = append(c.others, fmt.Sprintf("amount=100&currency=eur&metadata[order]=p%d", i))
	}
	c.both(t)
}

// Increase finds by its key what was made before the answer was lost.
func TestIncreaseAtTheMock(t *testing.T) {
	increase, _ := profile.ByName("increase")
	c := played{
		api:  increase,
		ask:  func(a reconcile.Asker) reconcile.Func { return a.Increase("/amount", "/account_id") },
		kind: jsonType, path: "/ach_transfers", body: `{"account_id":"account_1","amount":100}`, tries: 1,
		others: []string{`{"account_id":"account_1","amount":100}`},
		lost:   mockserver.Fault{Kind: mockserver.DropAfter}, none: mockserver.Fault{Kind: mockserver.DropBefore}, found: `"idempotency_key":"order-o1"`,
	}
	c.both(t)
}

// GoCardless answers a repeat 409 with the id of what was made. A client whose profile does not take that for success holds
// the operation, and it is settled with the resource itself.
func TestGoCardlessAtTheMock(t *testing.T) {
	careful := profile.GoCardless()
	careful.Unclear, careful.AlreadyDone = careful.AlreadyDone, nil
	c := played{
		api: profile.GoCardless(), own: careful,
		ask:  func(a reconcile.Asker) reconcile.Func { return a.GoCardless() },
		kind: jsonType, path: "/payments", body: `{"payments":{"amount":100}}`, tries: 2,
		lost: mockserver.Fault{Kind: mockserver.DropAfter}, query: "?fail=500", found: `"id":"payments_1"`,
	}
	c.both(t)
}

// An API without keys, whose order numbers are found by a lookup.
func TestByReferenceAtTheMock(t *testing.T) {
	p := profile.None()
	p.Duplicate = []profile.Matcher{{Status: []int{409}, Pointer: "/error/code", Equals: []string{"duplicate"}}}
	p.Reference = &profile.Reference{Path: "/orders?ref={/order}", List: "/data", Same: []profile.Same{{Request: "/order", Resource: "/ref"}, {Request: "/amount", Resource: "/amount"}}}
	c := played{
		api: p, ask: func(a reconcile.Asker) reconcile.Func { return a.ByReference(p) },
		kind: jsonType, path: "/orders", body: `{"order":"o1","amount":100}`, tries: 1, others: []string{`{"order":"o2","amount":100}`},
		lost: mockserver.Fault{Kind: mockserver.DropAfter}, none: mockserver.Fault{Kind: mockserver.DropBefore}, found: `"ref":"o1"`,
	}
	c.both(t)
}
