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

// RunHandler judges a middleware in this process. The suite supplies the handler behind it:
// effects are counted exactly, gates hold operations instead of time, and the handler gives
// any answer. URL, Witness and the queries of the options are not used. Requests go over a
// loopback port, since the suite also judges how the middleware reads bytes.
//
// The middleware is called once and serves every path. With Options.As it must tell callers
// apart by Authorization. The errors are those of Run; a nil middleware, or one that returns
// nil, is ErrUsage.
func RunHandler(ctx context.Context, middleware func(http.Handler) http.Handler, o Options) (*Report, error) {
	return runHandler(ctx, middleware, o, func(wrapped http.Handler) (string, func(), dialFunc, error) {
		address, end, err := serve("127.0.0.1:0", wrapped)
		return address, end, nil, err
	})
}

// runHandler judges a middleware as RunHandler does, over a server that listen starts. listen returns the server's address, a function that stops it,
// and its connections; a nil dial means a plain net.Dialer.
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

// RunOrigin judges a gateway or a proxy at Options.URL, with the suite as the origin behind
// it. The origin listens on a loopback address (host:port) while RunOrigin runs; the gateway
// must lead there, with every path unchanged. Effects are counted and held as in RunHandler.
// The errors are those of Run; an address off loopback is ErrUsage.
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

// run judges a target behind which s is the handler: the suite counts effects and makes operations slow or failing itself, so that the options for
// these are emptied. It serves every path, so that the options for other paths have defaults. dial makes the connections; nil is a plain net.Dialer.
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

// serve starts a server for handler at a loopback address. The caller must call end, which
// closes all connections without waiting for handlers.
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

// openAll lets all operations go on that were held to be slow, so that no handler is left waiting.
func (s *ownHandler) openAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.scripts {
		if at.open != nil {
			at.open()
		}
	}
}
