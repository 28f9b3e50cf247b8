package keyless_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// TestKeyFromJSONIsOneOperation: the same business is one operation however often it is asked for, and another process
// life goes on with it. Other content under the same business is refused.
func TestKeyFromJSONIsOneOperation(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt, clienttest.FromOrder))
		if _, err := c.Do(servertest.Pay(t, clienttest.OrderSeven)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		for range 2 {
			resp, err := c.Do(servertest.Pay(t, clienttest.OrderSeven))
			if err != nil || resp.StatusCode != http.StatusCreated || oncehttp.ResultOf(resp).Key != "idemp:order:7" {
				t.Fatalf("%v, %v", resp, err)
			}
		}
		if _, err := c.Do(servertest.Pay(t, `{"order":{"id":7},"amount":200}`)); !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("another amount: %v, want ErrKeyReused", err)
		}
		if _, err := c.Do(servertest.Pay(t, `{"order":{"id":8},"amount":200}`)); err != nil {
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
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Till(t, mockserver.Config{})
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.FromOrder))
		if _, err := c.Do(servertest.Pay(t, clienttest.OrderSeven)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * 24 * time.Hour)
		if _, err := c.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := c.Do(servertest.Pay(t, clienttest.OrderSeven))
		if !errors.Is(err, oncehttp.ErrAnswerGone) || server.Ledger().Snapshot().Effects != 1 {
			t.Errorf("%v and %d effects; want ErrAnswerGone and 1", err, server.Ledger().Snapshot().Effects)
		}
	})
}

// TestKeyFromJSONRefuses: without a value for each pointer nothing is sent, and the error says what is missing. Where the body
// could not be read, or has a value twice, nobody knows its key, so that an operation may stand under it.
func TestKeyFromJSONRefuses(t *testing.T) {
	t.Parallel()
	noGetBody := servertest.Pay(t, clienttest.OrderSeven)
	noGetBody.GetBody = nil
	failing := servertest.Pay(t, clienttest.OrderSeven)
	failing.GetBody = func() (io.ReadCloser, error) { return nil, wiretest.ErrLost }
	nothing := servertest.Pay(t, clienttest.OrderSeven)
	nothing.GetBody = func() (io.ReadCloser, error) { return nil, nil }
	for name, row := range map[string]struct {
		req     *http.Request
		says    string
		verdict error
	}{
		"no value":      {servertest.Pay(t, `{"order":{}}`), "at /order/id", oncehttp.ErrNoEffect},
		"an empty one":  {servertest.Pay(t, `{"order":{"id":""}}`), "at /order/id", oncehttp.ErrNoEffect},
		"an object":     {servertest.Pay(t, `{"order":{"id":{}}}`), "at /order/id", oncehttp.ErrNoEffect},
		"null":          {servertest.Pay(t, `{"order":{"id":null}}`), "at /order/id", oncehttp.ErrNoEffect},
		"no JSON":       {servertest.Pay(t, `order=7`), "not JSON", oncehttp.ErrNoEffect},
		"two values":    {servertest.Pay(t, clienttest.OrderSeven+"{}"), "not JSON", oncehttp.ErrNoEffect},
		"bodiless":      {servertest.Pay(t, ""), "not JSON", oncehttp.ErrNoEffect},
		"there twice":   {servertest.Pay(t, `{"order":{"id":7,"id":8}}`), "2 values at /order/id", oncehttp.ErrOutcomeUnknown},
		"an outer one":  {servertest.Pay(t, `{"order":{"id":7},"order":{}}`), "2 values at /order/id", oncehttp.ErrOutcomeUnknown},
		"no GetBody":    {noGetBody, "GetBody", oncehttp.ErrOutcomeUnknown},
		"GetBody fails": {failing, "GetBody", oncehttp.ErrOutcomeUnknown},
		"no body":       {nothing, "GetBody", oncehttp.ErrOutcomeUnknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.FromOrder)
			_, err := c.Do(row.req)
			if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, row.verdict) || w.Count() != 0 || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v after %d sends, want ErrKeyInvalid and %v that says %s", name, err, w.Count(), row.verdict, row.says)
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
		key, err := make(clienttest.Post(t, body))
		if err != nil || key != want || seen[key] != "" {
			t.Errorf("%s gives %q, %v; want %q (another: %s)", body, key, err, want, seen[key])
		}
		seen[key] = body
	}
}

// TestKeyFromJSONOfAPaidOrder: the order was paid, and a request for it whose key cannot be made is not told that nothing happened.
func TestKeyFromJSONOfAPaidOrder(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.FromOrder))
		first, err := c.Do(clienttest.Post(t, clienttest.OrderSeven))
		if err != nil {
			t.Fatal(err)
		}
		_ = first.Body.Close()
		for name, call := range map[string]func(*http.Request) error{
			"Do":        func(req *http.Request) error { _, err := c.Do(req); return err },
			"Transport": func(req *http.Request) error { _, err := c.Transport().RoundTrip(req); return err },
		} {
			again := clienttest.Post(t, clienttest.OrderSeven)
			again.GetBody = nil
			err := call(again)
			if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) || w.Count() != 1 {
				t.Errorf("%s: %v after %d sends, want ErrKeyInvalid and ErrOutcomeUnknown after 1", name, err, w.Count())
			}
		}
	})
}

// TestKeyFromJSONLooksBeforeNoEffect: while the order's operation is in doubt, a request whose key cannot be made is no proof
// that nothing happened.
func TestKeyFromJSONLooksBeforeNoEffect(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, clienttest.FromOrder))
		if _, err := c.Do(clienttest.Post(t, clienttest.OrderSeven)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		again := clienttest.Post(t, clienttest.OrderSeven)
		again.GetBody = nil
		_, err := c.Do(again)
		if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want ErrKeyInvalid and ErrOutcomeUnknown", err)
		}
	})
}
