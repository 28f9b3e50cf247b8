package stream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// pipes serves h by a real http.Server over connections in memory, which works in
// virtual time. The transport that it returns reaches it under every host.
func pipes(t *testing.T, h http.HandlerFunc) *http.Transport {
	t.Helper()
	ln := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: h, ErrorLog: wiretest.Silent()}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(ln) })
	rt := &http.Transport{DialContext: ln.dial, DisableCompression: true}
	t.Cleanup(func() {
		rt.CloseIdleConnections()
		srv.Close()
		serving.Wait()
	})
	return rt
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// nap sleeps in a handler, but no longer than its client stays.
func nap(r *http.Request, d time.Duration) {
	_, _ = io.Copy(io.Discard, r.Body) // only then does a server see its client leave
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}
