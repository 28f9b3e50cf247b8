// Package guests lets every function of a user, in the middle of an operation, make every call of a client. The rules that no such call
// shows have cells of their own, TestRule…: acts as seen, copied values, the own trace, joiners that are apart. The cells for nil and
// zero values are those of internal/behaviour/zero.
package guests_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

var whole = flag.Bool("guests", false, "TestGuests runs every cell of its matrix; else a sample that has each pair of rows")

// way is how a function of a user calls.
type way struct {
	background bool // else with the context that it got
	goroutine  bool // in a goroutine of its own
	waits      bool // for that goroutine
}

// ways are all of them.
var ways = []way{{}, {background: true}, {goroutine: true, waits: true}, {goroutine: true}, {true, true, true}, {true, true, false}}

func (w way) String() string {
	text := "with its context"
	if w.background {
		text = "with Background"
	}
	if w.goroutine {
		text += fmt.Sprintf(" in a goroutine, waited for %t", w.waits)
	}
	return text
}

// ends are how the function ends after the call.
var ends = []string{"returns", "panics", "exits"}

// cell is one cell of the matrix.
type cell struct {
	*testing.T
	name    string
	place   place
	call    string
	ask     ask
	key     oncehttp.Key // of the call
	way     way
	end     string
	journal string

	dir      string
	ctx      context.Context
	inner    persist.Journal
	server   *server
	client   *oncehttp.Client
	armed    atomic.Bool
	visited  atomic.Bool
	refusals atomic.Int32
	done     chan struct{}              // closed once the call has ended
	tune     func(cfg *oncehttp.Config) // what else the client has; nil: nothing

	mu   sync.Mutex
	told error // by the call
	took time.Duration
	over bool
}

// String is its name.
func (c *cell) String() string {
	return fmt.Sprintf("%s/%s of %s/%s/%s/%s", c.name, c.call, c.key, c.way, c.end, c.journal)
}

// possible reports whether there is such a cell.
func (c *cell) possible() bool {
	bare := c.place.bare || c.place.journal || strings.HasPrefix(c.name, "Client.") || strings.HasPrefix(c.name, "Config.Limiter") ||
		c.name == "persist.Notifier.Notify"
	if c.place.journal && c.name != "persist.Notifier.Notify" {
		bare = false
	}
	if bare && !c.way.background {
		return false
	}
	shared := strings.HasPrefix(c.name, "persist.Claimer.") || strings.HasPrefix(c.name, "persist.SendClaimer.")
	if shared && c.journal == "bolt" {
		return false
	}
	return c.exception() == ""
}

// visit is what the place does, once.
func (c *cell) visit(ctx context.Context) {
	if !c.armed.Load() || c.visited.Swap(true) {
		return
	}
	if c.way.background {
		ctx = context.Background()
	}
	call := func() {
		defer close(c.done)
		began := time.Now()
		err := c.ask.do(c, ctx, c.key)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told, c.took, c.over = err, time.Since(began), true
	}
	switch {
	case !c.way.goroutine:
		call()
	case c.way.waits:
		go call()
		<-c.done
	default:
		go call()
	}
	switch c.end {
	case "panics":
		panic("the user's")
	case "exits":
		runtime.Goexit()
	}
}

// server answers 201, and keeps the ledger.
type server struct {
	mu    sync.Mutex
	sends map[string]int
	delay time.Duration // of its first answer
	// refuses the next connection.
	refuses atomic.Bool
	// loses is how each answer is lost after the effect; silent shows no events of a connection.
	loses, silent atomic.Bool
	status        int // of its answers; 0: 201
	// spoiled counts requests that do not look as they should by the profiles of the tests.
	spoiled int
}

// RoundTrip counts the send.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	if err := context.Cause(req.Context()); err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && !s.silent.Load() {
		trace.GetConn(req.URL.Host)
		if s.refuses.Swap(false) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		trace.GotConn(httptrace.GotConnInfo{})
	}
	s.mu.Lock()
	s.sends[req.Header.Get("Idempotency-Key")]++
	if req.Header.Get("X-Other-Key") != "" || req.Header.Get("X-First-Sent") != "" {
		s.spoiled++
	}
	delay := s.delay
	s.delay = 0
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	if s.loses.Load() {
		return nil, &net.OpError{Op: "read", Err: errors.New("connection reset")}
	}
	return &http.Response{
		StatusCode: cmp.Or(s.status, 201), Header: http.Header{"X-Id": {"7"}}, Request: req, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Body: io.NopCloser(strings.NewReader("{}")),
	}, nil
}

// ledger is what was sent.
func (s *server) ledger() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.sends)
}

// ending is how the operation's own call ended.
type ending struct {
	err      error
	panicked any
	returned bool
}

// run runs the cell in a bubble.
func (c *cell) run(t *testing.T) { c.bubble(t, c.inBubble) }

// bubble calls run in a bubble, with the client on its journal.
func (c *cell) bubble(t *testing.T, run func()) {
	c.T, c.dir = t, testrun.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		c.T, c.ctx = t, t.Context()
		c.server = &server{sends: map[string]int{}}
		c.done = make(chan struct{})
		c.inner = memory.New()
		if c.journal == "bolt" {
			j, err := bolt.Open(filepath.Join(c.dir, "j.db"), bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.inner = j
		}
		c.client = c.newClient()
		run()
		if err := errors.Join(c.client.Close(), c.inner.Close()); err != nil {
			t.Error(err)
		}
		c.inner, c.client, c.server, c.place.set = nil, nil, nil, nil // there are many cells
	})
}

// newClient is the client with the function of the user.
func (c *cell) newClient() *oncehttp.Client {
	cfg := oncehttp.Config{Journal: c.inner, Transport: c.server, Retry: policy(), Operation: oncehttp.Writes}
	if c.ask.sent {
		cfg.ResumeWorkers, cfg.OriginWorkers = 1, 1
	}
	if c.place.journal {
		cfg.Journal, cfg.Origins = journalOf(c), []string{"https://api.example.com"} // which a client of a shared journal says
	}
	if c.place.set != nil {
		c.place.set(c, &cfg)
	}
	if c.tune != nil {
		c.tune(&cfg)
	}
	client, err := oncehttp.New(cfg)
	if err != nil {
		c.Fatal(err)
	}
	c.armed.Store(true)
	return client
}

// inBubble runs the operation, and checks what became of it.
func (c *cell) inBubble() {
	began, own := time.Now(), make(chan ending, 1)
	go func() {
		var e ending
		defer func() { own <- e }()
		defer func() { e.panicked = recover() }()
		e.err = c.place.start(c)
		e.returned = true
	}()
	hang := func(what string) {
		c.Errorf("%s hangs", what)
		time.AfterFunc(time.Minute, func() { panic(what + " hangs, whatever Close does: " + c.String()) }) // else the bubble does not end
		go c.client.Close()
	}
	var e ending
	select {
	case e = <-own:
	case <-time.After(time.Minute):
		hang("the operation")
		e = <-own
	}
	select {
	case <-c.done: // after a journal that finishes late only later than the operation
	case <-time.After(time.Minute):
		if !c.visited.Load() {
			c.Fatalf("it was not reached: %v", e.err)
		}
		hang("the call")
		<-c.done
	}
	if took := time.Since(began); took > 5*time.Second {
		c.Errorf("it took %v", took)
	}
	c.check(e)
}
