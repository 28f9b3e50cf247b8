package oncehttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// fromOrder makes keys of the order's id.
func fromOrder(cfg *oncehttp.Config) {
	cfg.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/order/id")
}

const orderSeven = `{"order":{"id":7},"amount":100}`

// TestKeyFromJSONIsOneOperation: the same business is one operation however often it is asked for, and another process
// life goes on with it. Other content under the same business is refused.
func TestKeyFromJSONIsOneOperation(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		c, _ := newClient(t, transport, on(j, oneAttempt, fromOrder))
		if _, err := c.Do(pay(t, orderSeven)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		for range 2 {
			resp, err := c.Do(pay(t, orderSeven))
			if err != nil || resp.StatusCode != http.StatusCreated || oncehttp.ResultOf(resp).Key != "idemp:order:7" {
				t.Fatalf("%v, %v", resp, err)
			}
		}
		if _, err := c.Do(pay(t, `{"order":{"id":7},"amount":200}`)); !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("another amount: %v, want ErrKeyReused", err)
		}
		if _, err := c.Do(pay(t, `{"order":{"id":8},"amount":200}`)); err != nil {
			t.Errorf("another order: %v", err)
		}
		if snap := server.Ledger().Snapshot(); snap.Effects != 2 || snap.Sends != 3 {
			t.Errorf("%d effects of %d sends, want 2 of 3", snap.Effects, snap.Sends)
		}
	})
}

// TestKeyFromJSONIsNotForgotten: after its answer was swept the key is still known, so that the order is not paid again.
func TestKeyFromJSONIsNotForgotten(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		server, transport := till(t, mockserver.Config{})
		c, _ := newClient(t, transport, on(j, fromOrder))
		if _, err := c.Do(pay(t, orderSeven)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * 24 * time.Hour)
		if _, err := c.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := c.Do(pay(t, orderSeven))
		if !errors.Is(err, oncehttp.ErrAnswerGone) || server.Ledger().Snapshot().Effects != 1 {
			t.Errorf("%v and %d effects; want ErrAnswerGone and 1", err, server.Ledger().Snapshot().Effects)
		}
	})
}

// TestKeyFromJSONRefuses: without a value for each pointer nothing is sent, and the error says what is missing.
func TestKeyFromJSONRefuses(t *testing.T) {
	t.Parallel()
	noGetBody := pay(t, orderSeven)
	noGetBody.GetBody = nil
	failing := pay(t, orderSeven)
	failing.GetBody = func() (io.ReadCloser, error) { return nil, errLost }
	nothing := pay(t, orderSeven)
	nothing.GetBody = func() (io.ReadCloser, error) { return nil, nil }
	for name, row := range map[string]struct {
		req  *http.Request
		says string
	}{
		"no value":      {pay(t, `{"order":{}}`), "at /order/id"},
		"an empty one":  {pay(t, `{"order":{"id":""}}`), "at /order/id"},
		"an object":     {pay(t, `{"order":{"id":{}}}`), "at /order/id"},
		"null":          {pay(t, `{"order":{"id":null}}`), "at /order/id"},
		"no JSON":       {pay(t, `order=7`), "not JSON"},
		"two values":    {pay(t, orderSeven+"{}"), "not JSON"},
		"no GetBody":    {noGetBody, "GetBody"},
		"GetBody fails": {failing, "GetBody"},
		"no body":       {nothing, "GetBody"},
	} {
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 201}}}
			c, _ := newClient(t, w, fromOrder)
			_, err := c.Do(row.req)
			if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrNoEffect) || w.count() != 0 || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v after %d sends, want ErrKeyInvalid that says %s", name, err, w.count(), row.says)
			}
		})
	}
}

// TestKeyFromJSONSpelling: values are told apart as they are spelled, and no two lists of values give one key.
func TestKeyFromJSONSpelling(t *testing.T) {
	t.Parallel()
	make := oncehttp.KeyFromJSON(oncehttp.NewScope("o"), "/a", "/b/0")
	seen := map[oncehttp.Key]string{}
	for body, want := range map[string]oncehttp.Key{
		`{"a":1,"b":[2]}`:        "idemp:o:1:2",
		`{"a":1.0,"b":[2]}`:      "idemp:o:1.0:2",
		`{"a":"1:2","b":["3"]}`:  "idemp:o:1%3A2:3",
		`{"a":"1","b":["2:3"]}`:  "idemp:o:1:2%3A3",
		`{"a":true,"b":[1e400]}`: "idemp:o:true:1e400",
	} {
		key, err := make(post(t, body))
		if err != nil || key != want || seen[key] != "" {
			t.Errorf("%s gives %q, %v; want %q (another: %s)", body, key, err, want, seen[key])
		}
		seen[key] = body
	}
}

// TestKeyFromJSONLooksBeforeNoEffect: while the order's operation is in doubt, a request whose key cannot be made is no proof
// that nothing happened.
func TestKeyFromJSONLooksBeforeNoEffect(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		c, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, on(j, oneAttempt, fromOrder))
		if _, err := c.Do(post(t, orderSeven)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		again := post(t, orderSeven)
		again.GetBody = nil
		_, err := c.Do(again)
		if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want ErrKeyInvalid and ErrOutcomeUnknown", err)
		}
	})
}
