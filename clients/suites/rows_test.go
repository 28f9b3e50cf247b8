package main

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/clients/suites/beneath"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// answers gives a short answer to each request.
type answers struct{}

// RoundTrip reads the request.
func (answers) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")), Request: req,
	}, nil
}

// TestRows: with the Config of each row of the page just those requests are operations which its kind says.
func TestRows(t *testing.T) {
	t.Parallel()
	const token, query = "grant_type=client_credentials", `{"query":"{ me { id } }"}`
	for _, a := range beneath.Table() {
		t.Run(a.SDK, func(t *testing.T) {
			t.Parallel()
			written := a.Kind == beneath.Written
			things := cmp.Or(a.Below, "/things")
			for _, r := range []struct {
				name, method, path, kind, body string
				key, inContext, operation      bool
			}{
				{name: "GET", method: "GET", path: things},
				{name: "GET with a key", method: "GET", path: things, key: true},
				{name: "POST", method: "POST", path: things, body: "{}", operation: written},
				{name: "PATCH", method: "PATCH", path: things + "/1", body: "{}", operation: written},
				{name: "PUT", method: "PUT", path: things + "/1", body: "{}"},
				{name: "POST with a key", method: "POST", path: things, body: "{}", key: true, operation: a.Kind == beneath.Keyed},
				{name: "POST in a context with a key", method: "POST", path: things, body: "{}", inContext: true, operation: true},
				{name: "POST elsewhere", method: "POST", path: "/other", body: "{}", operation: written && a.Below == ""},
				{name: "token", method: "POST", path: "/token", kind: "application/x-www-form-urlencoded", body: token},
				{name: "query", method: "POST", path: "/graphql", body: query},
			} {
				config := a.Config()
				journal := memory.New()
				config.Journal, config.Transport, config.Logger = journal, answers{}, slog.New(slog.DiscardHandler)
				client, err := oncehttp.New(config)
				if err != nil {
					t.Fatal(err)
				}
				ctx := t.Context()
				if r.inContext {
					ctx = oncehttp.ContextWithKey(ctx, "6f1cbb2c-5a0e-4b6a-9c53-0a8a4e1c7b12")
				}
				req, err := http.NewRequestWithContext(ctx, r.method, "https://api.example.com"+r.path, strings.NewReader(r.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", cmp.Or(r.kind, "application/json"))
				if r.key {
					req.Header.Set(keyHeader(config.Profile), "6f1cbb2c-5a0e-4b6a-9c53-0a8a4e1c7b11")
				}
				unused := written && r.key && r.method != "GET" // a key that the API does not know
				if _, err := client.StandardClient().Do(req); errors.Is(err, oncehttp.ErrKeyInvalid) != unused || err != nil && !unused {
					t.Errorf("%s: %v, want ErrKeyInvalid: %t", r.name, err, unused)
				}
				n := 0
				for range journal.List(t.Context(), persist.Query{}) {
					n++
				}
				if (n == 1) != r.operation || n > 1 {
					t.Errorf("%s: %d operations, want one: %t", r.name, n, r.operation)
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// keyHeader is the header in which a profile has its keys.
func keyHeader(p *profile.Profile) string {
	if p == nil || p.Carrier.Place == profile.Nowhere {
		return "Idempotency-Key"
	}
	return p.Carrier.Name
}
