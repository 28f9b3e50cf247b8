package mockserver_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
)

// ticket is a Verify that takes each value of the header Ticket once.
func ticket() func(*http.Request, []byte) error {
	var mu sync.Mutex
	used := map[string]bool{}
	return func(req *http.Request, body []byte) error {
		mu.Lock()
		defer mu.Unlock()
		value := req.Header.Get("Ticket")
		switch {
		case value == "":
			return errors.New("no ticket")
		case req.Method == http.MethodPost && len(body) == 0:
			return errors.New("no body")
		case used[value]:
			return errors.New("the ticket was used")
		}
		used[value] = true
		return nil
	}
}

func withTicket(value string) http.Header { return http.Header{"Ticket": {value}} }

// TestVerify: a request that Verify refuses is answered 401 with the reason, has no effect and claims no key; a good one
// under the same key has its effect, and a good retry gets the answer of the first.
func TestVerify(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Verify: ticket()}, func(server *mockserver.Server, c *client) {
		refused := func(r request, reason string) {
			t.Helper()
			got := c.Do(r)
			if got.Status != http.StatusUnauthorized || !strings.Contains(got.Body, reason) || got.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%d %s, want 401 with %q", got.Status, got.Body, reason)
			}
		}
		refused(request{Key: "k1"}, "no ticket")
		refused(request{Method: "GET", Path: "/payments/p1"}, "no ticket")
		if n := server.Ledger().Snapshot().Effects; n != 0 {
			t.Errorf("%d effects of refused requests", n)
		}
		// Another body than that of the refused request: the key was not claimed by it.
		good := request{Key: "k1", Body: `{"reference":"other"}`, Header: withTicket("a")}
		first := c.Do(good)
		refused(good, "was used")
		good.Header = withTicket("b")
		if again := c.Do(good); first.Status != http.StatusCreated || again.Body != first.Body || server.Ledger().Effects("k1") != 1 {
			t.Errorf("%d %s, then %s, with %d effects", first.Status, first.Body, again.Body, server.Ledger().Effects("k1"))
		}
		if got := c.Do(request{Method: "GET", Path: "/_ledger"}); got.Status != http.StatusOK {
			t.Errorf("the ledger: %d", got.Status)
		}
		if got := c.Do(request{Method: "GET", Path: "/payments/payments_1", Header: withTicket("c")}); got.Status != http.StatusOK {
			t.Errorf("a signed GET: %d %s", got.Status, got.Body)
		}
	})
}

// TestVerifyFaults: a fault that answers before a request is handled leaves its signature unused; one that delivers a
// request again has the second delivery refused, also where no key protects it.
func TestVerifyFaults(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		fault   mockserver.Fault
		effects int
	}{
		{mockserver.Fault{Kind: mockserver.Answer}, 1},
		{mockserver.Fault{Kind: mockserver.DropBefore}, 1},
		{mockserver.Fault{Kind: mockserver.Duplicate}, 1},
		{mockserver.Fault{Kind: mockserver.Duplicate, Delay: time.Second}, 1},
		{mockserver.Fault{Kind: mockserver.Late, Delay: time.Second}, 1},
		{mockserver.Fault{Kind: mockserver.None}, 1},
	} {
		cfg := mockserver.Config{Verify: ticket(), Script: []mockserver.Fault{f.fault}}
		mocktest.Bubble(t, cfg, func(server *mockserver.Server, c *client) {
			c.Do(request{Header: withTicket("a")}) // no key: each run is an effect
			time.Sleep(2 * time.Second)
			synctest.Wait()
			c.Do(request{Header: withTicket("a")})
			if n := server.Ledger().Snapshot().Effects; n != f.effects {
				t.Errorf("%v: %d effects, want %d", f.fault.Kind, n, f.effects)
			}
		})
	}
}

// TestVerifyAfterRedirect: Verify sees the path that was asked for, which is what was signed, not where it leads.
func TestVerifyAfterRedirect(t *testing.T) {
	t.Parallel()
	seen := ""
	verify := func(req *http.Request, _ []byte) error { seen = req.URL.Path; return nil }
	mocktest.Bubble(t, mockserver.Config{Verify: verify}, func(_ *mockserver.Server, c *client) {
		if got := c.Do(request{Path: "/moved/payments"}); got.Status != http.StatusCreated || seen != "/moved/payments" {
			t.Errorf("%d, and Verify saw %s", got.Status, seen)
		}
	})
}

// TestCaller: keys belong to whom Caller names, whatever the Authorization header says.
func TestCaller(t *testing.T) {
	t.Parallel()
	caller := func(req *http.Request) string { return req.Header.Get("Merchant") }
	mocktest.Bubble(t, mockserver.Config{Caller: caller}, func(server *mockserver.Server, c *client) {
		for _, r := range []struct{ merchant, authorization string }{{"m1", "a"}, {"m1", "b"}, {"m2", "b"}} {
			c.Do(request{Key: "k1", Header: http.Header{"Merchant": {r.merchant}, "Authorization": {r.authorization}}})
		}
		if n := server.Ledger().Snapshot().Effects; n != 2 {
			t.Errorf("%d effects, want one for each of two merchants", n)
		}
	})
}

// TestVerifyLeavesTheBody: a Handler reads the body of a request that Verify has looked at, also of a GET.
func TestVerifyLeavesTheBody(t *testing.T) {
	t.Parallel()
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	mocktest.Bubble(t, mockserver.Config{Verify: ticket(), Handler: echo}, func(_ *mockserver.Server, c *client) {
		for _, method := range []string{"GET", "POST"} {
			if got := c.Do(request{Method: method, Body: "{}", Header: withTicket(method)}); got.Body != "{}" {
				t.Errorf("%s: %d %q", method, got.Status, got.Body)
			}
		}
	})
}
