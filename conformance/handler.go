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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("conformance: no loopback port: %w", err)
	}
	stage := newOwned()
	server := &http.Server{
		Handler: middleware(stage), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // crashes are asked for
	}
	go func() { _ = server.Serve(listener) }() // it ends with Close, and says nothing else
	defer func() { _ = server.Close() }()      // nobody is left to be told
	defer stage.openAll()
	o.URL = "http://" + listener.Addr().String() + "/operations"
	if o.Name == "" {
		o.Name = "handler"
	}
	if o.SecondPath == "" {
		o.SecondPath = "/other-operations"
	}
	if o.ActionPath == "" {
		o.ActionPath = "/operations/{id}/cancel"
	}
	o.Witness, o.DelayQuery, o.FailQuery, o.CrashQuery = "", "", "", ""
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r, err := newRunner(o)
	if err != nil {
		return nil, err
	}
	r.stage = stage
	return r.run(ctx)
}

// openAll lets every held operation go, so that the server can end.
func (s *owned) openAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.scripts {
		if at.open != nil {
			at.open()
		}
	}
}
