package conformance

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// RunHandler judges a middleware in this process. The suite supplies the handler
// behind it, so that effects are counted exactly, operations are held by gates
// and not by time, and every kind of answer can be made. Of the options, URL,
// Witness and the queries are not used; requests go over a loopback port, since
// how bytes arrive is part of what is judged.
//
// The middleware is mounted once, on every path. It has to tell callers apart by
// Authorization where Options.As is set.
func RunHandler(ctx context.Context, middleware func(http.Handler) http.Handler, o Options) (*Report, error) {
	return runHandler(ctx, middleware, o, func(wrapped http.Handler) (string, func(), dialFunc, error) {
		address, end, err := serve("127.0.0.1:0", wrapped)
		return address, end, nil, err
	})
}

// runHandler is RunHandler, with the wrapped handler served as listen does.
func runHandler(ctx context.Context, middleware func(http.Handler) http.Handler, o Options,
	listen func(http.Handler) (address string, end func(), dial dialFunc, err error)) (*Report, error) {
	if middleware == nil {
		return nil, usage("middleware", "is nil; want a function that wraps a handler")
	}
	own := newOwnHandler()
	wrapped := middleware(own)
	if wrapped == nil {
		return nil, usage("middleware", "returned no handler")
	}
	address, end, dial, err := listen(wrapped)
	if err != nil {
		return nil, err
	}
	defer end()
	defer own.openAll()
	o.URL = "http://" + address + "/operations"
	if o.Name == "" {
		o.Name = "handler"
	}
	return own.run(ctx, o, dial)
}

// RunOrigin judges a gateway or a proxy at Options.URL that honours keys in front
// of an origin. The suite is that origin, on the loopback address that is named
// (host:port): with it effects are counted and held as in RunHandler. The gateway
// has to be set up to lead there, every path as it is.
func RunOrigin(ctx context.Context, origin string, o Options) (*Report, error) {
	host, _, err := net.SplitHostPort(origin)
	if err != nil || !isLoopback(host) {
		return nil, usage("origin", "%q is not host:port on loopback", origin)
	}
	own := newOwnHandler()
	_, end, err := serve(origin, own)
	if err != nil {
		return nil, err
	}
	defer end()
	defer own.openAll()
	return own.run(ctx, o, nil)
}

// run judges a target whose handler is the suite's, over the connections that dial opens; nil:
// those of a net.Dialer.
func (s *ownHandler) run(ctx context.Context, o Options, dial dialFunc) (*Report, error) {
	setDefault(&o.SecondPath, "/other-operations")
	setDefault(&o.ActionPath, "/operations/{id}/cancel")
	o.Witness, o.DelayQuery, o.FailQuery, o.CrashQuery = "", "", "", ""
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r, err := newRunner(o)
	if err != nil {
		return nil, err
	}
	r.steering = s
	if dial != nil {
		r.dial = dial
	}
	return r.run(ctx)
}

// serve puts a handler on a loopback address until end is called.
func serve(address string, handler http.Handler) (served string, end func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("conformance: no loopback port: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // crashes are asked for
	}
	go func() { _ = server.Serve(listener) }() // it ends with Close, and says nothing else
	return listener.Addr().String(), func() { _ = server.Close() }, nil
}

// openAll lets every held operation go, so that the server can end.
func (s *ownHandler) openAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.scripts {
		if at.open != nil {
			at.open()
		}
	}
}
