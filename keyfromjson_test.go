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

// TestKeyFromJSONRefuses: without a value for each pointer nothing is sent, and the error says what is missing. Where the body
// could not be read, or has a value twice, nobody knows its key, so that an operation may stand under it.
func TestKeyFromJSONRefuses(t *testing.T) {
	t.Parallel()
	noGetBody := pay(t, orderSeven)
	noGetBody.GetBody = nil
	failing := pay(t, orderSeven)
	failing.GetBody = func() (io.ReadCloser, error) { return nil, errLost }
	nothing := pay(t, orderSeven)
	nothing.GetBody = func() (io.ReadCloser, error) { return nil, nil }
	for name, row := range map[string]struct {
		req     *http.Request
		says    string
		verdict error
	}{
		"no value":      {pay(t, `{"order":{}}`), "at /order/id", oncehttp.ErrNoEffect},
		"an empty one":  {pay(t, `{"order":{"id":""}}`), "at /order/id", oncehttp.ErrNoEffect},
		"an object":     {pay(t, `{"order":{"id":{}}}`), "at /order/id", oncehttp.ErrNoEffect},
		"null":          {pay(t, `{"order":{"id":null}}`), "at /order/id", oncehttp.ErrNoEffect},
		"no JSON":       {pay(t, `order=7`), "not JSON", oncehttp.ErrNoEffect},
		"two values":    {pay(t, orderSeven+"{}"), "not JSON", oncehttp.ErrNoEffect},
		"bodiless":      {pay(t, ""), "not JSON", oncehttp.ErrNoEffect},
		"there twice":   {pay(t, `{"order":{"id":7,"id":8}}`), "2 values at /order/id", oncehttp.ErrOutcomeUnknown},
		"an outer one":  {pay(t, `{"order":{"id":7},"order":{}}`), "2 values at /order/id", oncehttp.ErrOutcomeUnknown},
		"no GetBody":    {noGetBody, "GetBody", oncehttp.ErrOutcomeUnknown},
		"GetBody fails": {failing, "GetBody", oncehttp.ErrOutcomeUnknown},
		"no body":       {nothing, "GetBody", oncehttp.ErrOutcomeUnknown},
	} {
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 201}}}
			c, _ := newClient(t, w, fromOrder)
			_, err := c.Do(row.req)
			if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, row.verdict) || w.count() != 0 || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v after %d sends, want ErrKeyInvalid and %v that says %s", name, err, w.count(), row.verdict, row.says)
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

// TestKeyFromJSONOfAPaidOrder: the order was paid, and a request for it whose key cannot be made is not told that nothing happened.
func TestKeyFromJSONOfAPaidOrder(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, on(j, fromOrder))
		first, err := c.Do(post(t, orderSeven))
		if err != nil {
			t.Fatal(err)
		}
		_ = first.Body.Close()
		for name, call := range map[string]func(*http.Request) error{
			"Do":        func(req *http.Request) error { _, err := c.Do(req); return err },
			"Transport": func(req *http.Request) error { _, err := c.Transport().RoundTrip(req); return err },
		} {
			again := post(t, orderSeven)
			again.GetBody = nil
			err := call(again)
			if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) || w.count() != 1 {
				t.Errorf("%s: %v after %d sends, want ErrKeyInvalid and ErrOutcomeUnknown after 1", name, err, w.count())
			}
		}
	})
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
