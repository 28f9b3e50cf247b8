package mockserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// pipeURL is the URL of every pipe. The pipe's transport ignores the host.
const pipeURL = "http://mock.test"

// Pipe serves a Server over connections in memory. It works in virtual time: it
// waits for channels and timers only. Server.Pipe makes one; a zero Pipe panics.
type Pipe struct {
	// URL is the base URL, without a slash at its end. The transport reaches
	// this server under every host, so that a client can follow redirects to
	// other origins.
	URL string

	front    io.Closer // the http.Server behind the pipe
	listener *pipeListener
}

// Pipe serves over a new pipe until the pipe or the server is closed. It panics if the server is closed, or was not
// made by New.
func (s *Server) Pipe() *Pipe {
	listener := &pipeListener{dialled: make(chan net.Conn), closed: make(chan struct{})}
	front, err := s.front(listener)
	if err != nil {
		panic(err.Error())
	}
	return &Pipe{URL: pipeURL, front: front, listener: listener}
}

// Transport returns a new http.Transport over this pipe: keep-alive, no proxy, no compression. The caller may change
// it; it has connections of its own.
func (p *Pipe) Transport() *http.Transport {
	return &http.Transport{
		DialContext:         p.listener.dial,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64,
	}
}

// Close ends the pipe and all its connections. The server goes on.
func (p *Pipe) Close() error { return p.front.Close() }

// pipeListener passes the server's ends of new connections from dial to Accept.
type pipeListener struct {
	dialled chan net.Conn
	once    sync.Once // closes closed
	closed  chan struct{}
	serial  atomic.Int64 // numbers the connections
}

// Accept waits for the next dial. After Close it returns net.ErrClosed.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialled:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and refuses further connections. It may be called more than once.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address of the server, which is always the same.
func (l *pipeListener) Addr() net.Addr { return pipeAddr(0) }

// dial makes a connection and waits until the server accepts it, or ctx ends. After Close of the listener its error
// is that of a refused TCP connection.
func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	reset, client := &atomic.Bool{}, pipeAddr(l.serial.Add(1))
	select {
	case l.dialled <- &pipeConn{Conn: far, reset: reset, remote: client}:
		return &pipeConn{Conn: near, reset: reset, local: client}, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr(0), Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeConn is one end of a connection. Both ends share reset: after SetLinger(0) and Close of one end, reads and
// writes of the other fail with ECONNRESET.
type pipeConn struct {
	net.Conn
	linger atomic.Bool // Close is a reset
	reset  *atomic.Bool

	local, remote pipeAddr
}

// SetLinger does as net.TCPConn's does: after 0, Close resets the connection; other values mean an orderly Close. The error is always nil.
func (c *pipeConn) SetLinger(seconds int) error {
	c.linger.Store(seconds == 0)
	return nil
}

// Close closes this end; after SetLinger(0) both ends see a reset.
func (c *pipeConn) Close() error {
	if c.linger.Load() {
		c.reset.Store(true)
	}
	return c.Conn.Close()
}

// Read reads from the connection in memory, and returns the errors that TCP would return after a reset.
func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.asTCP("read", err)
}

// Write writes to the connection in memory, and returns the errors that TCP would return.
func (c *pipeConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) && !c.reset.Load() {
		err = &net.OpError{Op: "write", Net: "pipe", Err: syscall.EPIPE}
	}
	return n, c.asTCP("write", err)
}

// asTCP returns ECONNRESET in place of err if the connection was reset; nil and timeouts stay as they are.
func (c *pipeConn) asTCP(op string, err error) error {
	var timeout net.Error
	if err == nil || !c.reset.Load() || errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return &net.OpError{Op: op, Net: "pipe", Err: syscall.ECONNRESET}
}

// LocalAddr returns the address of this end.
func (c *pipeConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *pipeConn) RemoteAddr() net.Addr { return c.remote }

// pipeAddr is the address of an end: the number of the connection for the client, 0 for the server.
type pipeAddr int64

// Network implements [net.Addr]: the connection is a pipe in memory.
func (pipeAddr) Network() string { return "pipe" }

// String returns a host and a port, as net/http and logs expect them. The names cannot be dialled.
func (a pipeAddr) String() string {
	if a == 0 {
		return "mock.test:80"
	}
	return "client.test:" + strconv.FormatInt(int64(a), 10)
}
