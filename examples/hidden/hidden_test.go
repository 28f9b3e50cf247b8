package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// Each API is sent to more often than there are orders; each order but the refused one is paid once.
func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(&out, t.TempDir(), orders); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, name := range []string{"shopify", "jsonrpc", "soap"} {
		var n, paid, refused, sends int
		_, rest, _ := strings.Cut(out.String(), name+": ")
		if _, err := fmt.Sscanf(rest, "%d orders, %d paid, %d refused, %d sends\n", &n, &paid, &refused, &sends); err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, &out)
		}
		if n != orders || paid != orders-1 || refused != 1 || sends < orders+5 { // five sends of the script leave a doubt
			t.Errorf("%s: %d orders, %d paid, %d refused, %d sends", name, n, paid, refused, sends)
		}
	}
}

// Without the verdicts a refusal counts as paid, and without reconcile the SOAP answers stay held: the program finds both.
func TestRunFinds(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		p, err := a.profile()
		if err != nil {
			t.Fatal(err)
		}
		p.Name, p.Verdicts = p.Name+"-bare", nil
		if err := a.run(io.Discard, t.TempDir(), 3, p); err == nil || !strings.Contains(err.Error(), "2 payments were made, and 3 of 3 orders are paid") {
			t.Errorf("%s without verdicts: %v", a.name, err)
		}
	}
	a := soap()
	p, err := a.profile()
	if err != nil {
		t.Fatal(err)
	}
	a.reconcile = nil
	if err := a.run(io.Discard, t.TempDir(), 3, p); !errors.Is(err, oncehttp.ErrHeld) {
		t.Errorf("SOAP without reconcile: %v", err)
	}
}

// The mock says in the shape of each JSON API that a key is another request's, and the client reads it.
func TestMismatch(t *testing.T) {
	t.Parallel()
	for a, spelled := range map[*api]string{
		shopify(): `{"data":{"refundCreate":{"userErrors":[{"code":"IDEMPOTENCY_KEY_PARAMETER_MISMATCH"}]}}}`,
		jsonRPC(): `{"error":{"code":-32051}}`,
	} {
		p, err := a.profile()
		if err != nil {
			t.Fatal(err)
		}
		s := &service{api: a}
		server := mockserver.New(mockserver.Config{Profile: p, Handler: s})
		defer server.Close()
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		if err := a.pay(open(t, p), server.URL(), 1); err != nil {
			t.Fatal(err)
		}
		plain := a.request
		a.request = func(key oncehttp.Key, order, amount int) string { return plain(key, order, amount+1) }
		if err := a.pay(open(t, p), server.URL(), 1); !errors.Is(err, oncehttp.ErrKeyReused) || s.made != 1 {
			t.Errorf("%s: %v, and %d payments", a.name, err, s.made)
		}
		resp, err := http.Post(server.URL()+a.path, a.contentType, strings.NewReader(a.request(keyOf(1), 1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || strings.TrimSpace(string(text)) != spelled {
			t.Errorf("%s: the mock says %d %s (%v), want %s", a.name, resp.StatusCode, text, err, spelled)
		}
	}
}

// open opens a client with a journal of its own.
func open(t *testing.T, p *profile.Profile) *oncehttp.Client {
	t.Helper()
	c, err := oncehttp.Open(t.TempDir()+"/j.db", oncehttp.Config{Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
