package beneath_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// dying is a connection that the server has closed while it was idle: after the first request, nothing can be written.
type dying struct {
	net.Conn
	writes int
}

// Write fails from the second request on.
func (d *dying) Write(p []byte) (int, error) {
	if d.writes++; d.writes > 1 {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return d.Conn.Write(p)
}

// TestDeadIdleConnection: over HTTP/1.1, net/http takes a new connection where nothing of a request was written to a kept one. That is one send, and not
// stopped, at an API without keys, too.
func TestDeadIdleConnection(t *testing.T) {
	t.Parallel()
	for _, p := range []*profile.Profile{nil, profile.None()} {
		served := 0
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
		transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &dying{Conn: conn}, err
		}}
		for n := range 3 {
			if err := sendH2(t, transport, server.URL, p, nil); err != nil || served != n+1 {
				t.Errorf("call %d: %v, %d served", n, err, served)
			}
		}
		transport.CloseIdleConnections()
		server.Close()
	}
}
