// Package servertest holds the servers of the tests of behaviour: a mock server with a count of payments, one with tokens, and a shop
// without idempotency keys.
package servertest

import (
	"errors"
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// Till returns a mock server over a pipe (without a network), for tests with a count of effects, and the transport to it.
func Till(t *testing.T, cfg mockserver.Config) (*mockserver.Server, *http.Transport) {
	t.Helper()
	server := mockserver.New(cfg)
	pipe := server.Pipe()
	transport := pipe.Transport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		pipe.Close()
		server.Close()
	})
	return server, transport
}

// Pay returns a payment to a till.
func Pay(t *testing.T, body string) *http.Request {
	t.Helper()
	return clienttest.Request(t, "POST", "http://mock.test/payments", body)
}

// Effects returns the number of payments that the server has made, under any key.
func Effects(s *mockserver.Server) int { return s.Ledger().Snapshot().Effects }

// Order is a payment with a reference: a second key for it breaks a rule of the server.
const Order = `{"reference":"o1","amount":100}`

// InDoubt sends an order, and fails the test unless its outcome is unknown. The caller makes the server or the connection fail before.
func InDoubt(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
	t.Helper()
	_, err := c.DoKey(Pay(t, Order), key)
	if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatalf("%v, want ErrOutcomeUnknown", err)
	}
}

// Tickets returns a till (a mock server) that hands out one-time tokens as keys, and the transport to it. The reference in a request tells its operation from
// others. change, if it is not nil, changes the server's Config.
func Tickets(t *testing.T, change func(*mockserver.Config)) (*mockserver.Server, *http.Transport) {
	t.Helper()
	cfg := mockserver.Config{Profile: Ticketed(), OperationPointer: "/reference", RequireKey: true}
	if change != nil {
		change(&cfg)
	}
	return Till(t, cfg)
}

// Ticketed returns the profile of an API with keys of its own: tokens for one use, on one path.
func Ticketed() *profile.Profile {
	p := profile.Draft07()
	p.Name = "ticketed"
	p.Token = &profile.Token{Path: "/tokens?purpose={path}", Pointer: "/data/token"}
	return p
}

// WithTickets gives a client the profile of an API that issues the keys itself: one-time tokens.
func WithTickets(cfg *oncehttp.Config) { cfg.Profile = Ticketed() }
