package mockserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// closeDelayMax bounds the time for which Close and Restart wait for a
// Config.Handler that does not heed its context.
const closeDelayMax = 5 * time.Second

// errUnmade is the error of a zero Server.
var errUnmade = errors.New("mockserver: a zero Server; New makes one")

// Start serves on a free port of 127.0.0.1 in the background, until Close. URL returns its address. A second call, and a call after Close, are
// errors.
func (s *Server) Start() error { return s.Listen("127.0.0.1:0") }

// Listen serves on a TCP address in the background, until Close. A second call, a call after Close and an address in
// use are errors.
func (s *Server) Listen(address string) error {
	if s.ledger == nil {
		return errUnmade
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("mockserver: %w", err)
	}
	s.mu.Lock()
	second := s.url != ""
	if !second {
		s.url = "http://" + listener.Addr().String()
	}
	s.mu.Unlock()
	if second {
		return errors.Join(errors.New("mockserver: it listens already"), listener.Close())
	}
	_, err = s.front(listener)
	return err
}

// URL returns the base URL of Start or Listen, without a slash at its end; "" before.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// front serves the listener in the background until the returned closer or the server is closed. If the server is closed already it returns an error
// and closes the listener. A server without a ledger was not made by New.
func (s *Server) front(listener net.Listener) (io.Closer, error) {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
		BaseContext:       func(net.Listener) context.Context { return s.life },
		ConnState:         s.connState,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, &connection{s.connections.Add(1), conn})
		},
	}
	if s.ledger == nil {
		return nil, errUnmade
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(errors.New("mockserver: the server is closed"), listener.Close())
	}
	s.fronts = append(s.fronts, server)
	go func() { _ = server.Serve(listener) }() // it ends with Close, and says nothing else
	return server, nil
}

// Close ends everything: listeners, pipes, connections, handlers and waits. It returns when none of it runs any more, or after 5 s if a
// Config.Handler does not heed its context. A handler must not call it. A second call has no effect. idle is closed when the last call or connection
// ends.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	fronts := s.fronts
	s.fronts = nil
	for conn := range s.conns {
		_ = conn.Close() // an error changes nothing: the connection is gone
	}
	s.mu.Unlock()
	s.end()
	var all []error
	for _, front := range fronts {
		all = append(all, front.Close())
	}
	s.mu.Lock()
	idle, busy := s.idle, s.busy > 0
	s.mu.Unlock()
	if busy {
		keylayer.Pause(closeDelayMax, idle, nil)
	}
	return errors.Join(all...)
}

// connState counts each connection in busy from its begin to its end: net/http may keep its goroutine for half a
// second after the last answer, and it must not outlive Close.
func (s *Server) connState(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open[conn] = struct{}{}
		s.busy++
	case http.StateClosed, http.StateHijacked:
		s.mu.Lock()
		delete(s.open, conn)
		s.mu.Unlock()
		s.leave()
	}
}

// enter counts a call of the server as at work, so that Close waits for it; leave must follow. False: the server is closed, nothing was counted, and
// leave must not be called.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.busy++
	}
	return !s.closed
}

// leave ends one enter, or one connection; the last one wakes Close.
func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy--; s.busy == 0 {
		close(s.idle)
		s.idle = make(chan struct{})
	}
}

// track registers a hijacked connection, so that Close and Restart can close it. The caller must call untrack
// afterwards. False: the server is closed, and conn is closed now.
func (s *Server) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close() // an error changes nothing: the connection is gone
		return false
	}
	s.conns[conn], s.open[conn] = struct{}{}, struct{}{}
	return true
}

// untrack ends track and closes the connection.
func (s *Server) untrack(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	delete(s.open, conn)
	_ = conn.Close() // an error changes nothing: the connection is gone
}
