package conformance_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// virtually does the same for all of them, each in virtual time, over connections in
// memory: nothing waits, and a busy machine changes no verdict. It is twice as many at once
// as there are processors at most. Tests of the same over TCP stay beside it.
func virtually[T any](t *testing.T, all []T, do func(t *testing.T, i int, one T)) {
	var wait sync.WaitGroup
	for i, one := range all {
		wait.Go(func() {
			processors <- struct{}{}
			defer func() { <-processors }()
			virtual(t, func(t *testing.T) { do(t, i, one) })
		})
	}
	wait.Wait()
}

// virtual runs a part of a test in virtual time.
func virtual(t *testing.T, do func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // the last of all: what still sleeps in a handler ends
		do(t)
	})
}

var processors = make(chan struct{}, 4)

// inVirtualTime reports whether the caller is in a bubble: there time begins in 2000.
func inVirtualTime() bool { return time.Now().Year() < 2020 }

// published are the servers in virtual time, by host.
var (
	published sync.Map
	hosts     atomic.Int64
)

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// publish gives a server in virtual time a host of its own until the test ends.
func publish(t *testing.T, dial dialer) string {
	host := "server" + strconv.FormatInt(hosts.Add(1), 10) + ".test"
	published.Store(host, dial)
	t.Cleanup(func() { published.Delete(host) })
	return "http://" + host
}

// dialOf is how the server at a URL is reached; nil: over TCP.
func dialOf(address string) dialer {
	if dial, known := published.Load(hostOf(address)); known {
		return dial.(dialer)
	}
	return nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// serve serves a handler until the test ends: over TCP, or over pipes in virtual time.
func serve(t *testing.T, handler http.Handler) string {
	if !inVirtualTime() {
		server := httptest.NewServer(handler)
		server.Config.ErrorLog = quiet()
		t.Cleanup(server.Close)
		return server.URL
	}
	listener := &pipes{dialled: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ErrorLog: quiet()}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	go func() { _ = server.Serve(listener) }() // it ends with Close, and says nothing else
	return publish(t, listener.dial)
}

// pipes is a listener in memory.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialled:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	reset := &atomic.Bool{}
	select {
	case p.dialled <- &pipeEnd{Conn: far, reset: reset}:
		return &pipeEnd{Conn: near, reset: reset}, nil
	case <-p.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeEnd is one end of a connection in memory. reset is shared by both: once an end was
// closed after SetLinger(0), the other sees a reset.
type pipeEnd struct {
	net.Conn
	linger atomic.Bool
	reset  *atomic.Bool
}

// SetLinger is TCPConn's: 0 makes Close a reset.
func (e *pipeEnd) SetLinger(seconds int) error {
	e.linger.Store(seconds == 0)
	return nil
}

func (e *pipeEnd) Close() error {
	if e.linger.Load() {
		e.reset.Store(true)
	}
	return e.Conn.Close()
}

func (e *pipeEnd) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	if errors.Is(err, io.EOF) && e.reset.Load() {
		err = &net.OpError{Op: "read", Net: "pipe", Err: syscall.ECONNRESET}
	}
	return n, err
}
