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

// pipeURL is the address of every pipe; whatever host a client asks for, it
// reaches the pipe's server.
const pipeURL = "http://mock.test"

// Pipe serves a Server over connections in memory. It works in virtual time:
// nothing of it waits for anything but channels and timers. Server.Pipe makes one: a zero one panics.
type Pipe struct {
	// URL is the base URL, without a slash at its end. The transport reaches
	// this server under every host, so that redirects to other origins can be
	// followed and told apart.
	URL string

	front    io.Closer
	listener *pipeListener
}

// Pipe serves over a new pipe until the pipe or the server is closed. It panics
// on a server that is closed, or that New did not make.
func (s *Server) Pipe() *Pipe {
	listener := &pipeListener{dialled: make(chan net.Conn), closed: make(chan struct{})}
	front, err := s.front(listener)
	if err != nil {
		panic(err.Error())
	}
	return &Pipe{URL: pipeURL, front: front, listener: listener}
}

// Transport is a new http.Transport that dials this pipe, with a pool of its
// own, keep-alive, no proxy and no compression.
func (p *Pipe) Transport() *http.Transport {
	return &http.Transport{
		DialContext:         p.listener.dial,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64,
	}
}

// Close ends the pipe with all its connections; the server lives on.
func (p *Pipe) Close() error { return p.front.Close() }

// pipeListener hands the server's ends of dialled pipes to Accept.
type pipeListener struct {
	dialled chan net.Conn
	once    sync.Once
	closed  chan struct{}
	serial  atomic.Int64 // numbers the connections
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialled:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr(0) }

// dial makes a pair of connections. Where the server listens no more it fails as
// a refused TCP connection does, so that a client draws the same conclusion.
func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	line, client := &atomic.Bool{}, pipeAddr(l.serial.Add(1))
	select {
	case l.dialled <- &pipeConn{Conn: far, reset: line, remote: client}:
		return &pipeConn{Conn: near, reset: line, local: client}, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr(0), Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeConn is one end. reset is shared by both: once an end has been closed
// after SetLinger(0), the other sees a reset instead of a plain end.
type pipeConn struct {
	net.Conn
	linger atomic.Bool
	reset  *atomic.Bool

	local, remote pipeAddr
}

// SetLinger is TCPConn's: 0 makes Close a reset.
func (c *pipeConn) SetLinger(seconds int) error {
	c.linger.Store(seconds == 0)
	return nil
}

func (c *pipeConn) Close() error {
	if c.linger.Load() {
		c.reset.Store(true)
	}
	return c.Conn.Close()
}

func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.seen("read", err)
}

func (c *pipeConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) && !c.reset.Load() {
		err = &net.OpError{Op: "write", Net: "pipe", Err: syscall.EPIPE}
	}
	return n, c.seen("write", err)
}

// seen turns the end of a reset line into what TCP would say.
func (c *pipeConn) seen(op string, err error) error {
	var timeout net.Error
	if err == nil || !c.reset.Load() || errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return &net.OpError{Op: op, Net: "pipe", Err: syscall.ECONNRESET}
}

func (c *pipeConn) LocalAddr() net.Addr  { return c.local }
func (c *pipeConn) RemoteAddr() net.Addr { return c.remote }

// pipeAddr is the number of the client's end; 0 is the server.
type pipeAddr int64

func (pipeAddr) Network() string { return "pipe" }

func (a pipeAddr) String() string {
	if a == 0 {
		return "mock.test:80"
	}
	return "client.test:" + strconv.FormatInt(int64(a), 10)
}
