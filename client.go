package oncehttp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// Client sends requests that must take effect exactly once. It is safe for
// concurrent use; make one and keep it.
type Client struct {
	cfg         Config
	journal     persist.Journal
	owned       bool // Open opened the journal, Close closes it
	accountBase string
	owner       string // of leases
	leases      bool   // other processes share the journal
	flights     *flights
	crew        crew
	loop        *retryablehttp.Client
	loopRequest *http.Request
	now         func() time.Time

	// draining ends the waits between attempts, so that every flight stops after
	// the attempt that is on the wire.
	draining context.Context
	drain    context.CancelCauseFunc
	pending  chan struct{} // wakes Run

	mu     sync.Mutex
	closed bool
	flying sync.WaitGroup
}

// New makes a client on any journal, which stays the caller's to close. Several
// clients in one process may share one journal.
// Errors: ErrConfig.
func New(cfg Config) (*Client, error) {
	if err := cfg.fill(); err != nil {
		return nil, &Error{Op: "new", Outcome: OutcomeNotSent, Cause: err, is: []error{ErrNoEffect, ErrConfig}}
	}
	c := &Client{
		cfg: cfg, journal: cfg.Journal, accountBase: persist.Account(cfg.Account), owner: string(RandomKey()),
		loop: newLoop(), loopRequest: newLoopRequest(), now: time.Now, pending: make(chan struct{}, 1),
	}
	c.draining, c.drain = context.WithCancelCause(context.Background())
	c.crew = crew{jobs: make(chan *flight), over: c.draining.Done()}
	_, c.leases = persist.As[persist.Claimer](c.journal)
	table := c.journal.Attach(newFlights)
	c.flights, _ = table.(*flights)
	if c.flights == nil {
		return nil, startError("new", "", ErrConfig, "the journal carries a %T, not this package's flight table", table)
	}
	return c, nil
}

// Do sends the request so that it takes effect once. Its key is the request's
// own, else the context's (ContextWithKey), else a generated one, which is made
// and kept before the first attempt.
//
// On return either the response is the server's final answer, with its whole
// body, or the error matches exactly one of ErrNoEffect and ErrOutcomeUnknown.
// An error status that is final (a declined card's 402) is a response. The
// request is never changed; its body is read once and closed.
//
// Do rejects a request without a key with ErrOutcomeUnknown if the same request
// under a generated key is unresolved, or if Resume or Run ended it and no caller
// with its key was told how. The error names that key. See the package comment.
//
// A request that is not journaled (GET, HEAD, OPTIONS; what Config.Methods
// leaves out) streams through.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	return c.do("do", req, keySource{}, false)
}

// DoKey is Do under this key. A key in the request itself must be the same.
func (c *Client) DoKey(req *http.Request, key Key) (*http.Response, error) {
	return c.do("do", req, keySource{key: key, given: true}, false)
}

func (c *Client) do(name string, req *http.Request, key keySource, plain bool) (*http.Response, error) {
	if !key.given && req.URL != nil {
		same, journaled := c.journaled(req)
		if req = same; !journaled {
			return c.stream(req)
		}
	}
	f := newFlight(c, name)
	if err := c.snapshot(&f.op, req, key); err != nil {
		return nil, c.notStarted(req.Context(), name, f.op.named, err, requestTrouble(err))
	}
	f.op.rec.PlainHTTP = plain
	for {
		w, err := c.board(f, req.Context())
		if err != nil {
			return nil, err
		}
		land, err := w.wait()
		switch {
		case err != nil:
			return nil, &Error{Op: name, Key: Key(f.op.rec.Key), Cause: err, is: []error{ErrOutcomeUnknown, ErrInFlight}}
		case land.aside && !w.first:
			continue
		}
		if land.unreported {
			c.reported(w.f.values, f.op.rec.ID)
		}
		if land.err != nil && (!plain || land.answer == nil) {
			return nil, land.err
		}
		if resp := w.response(req); resp != nil {
			w.done()
			return resp, nil
		}
		f = &flight{c: c, name: name, op: f.op} // the next, for the same operation
	}
}

// board joins the flight of f's operation, or begins f.
func (c *Client) board(f *flight, ctx context.Context) (*waiter, error) {
	if f.op.rec.Generated {
		if err := f.refuseStray(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, c.notBegun(ctx, f.name, f.op.named, false, context.Cause(ctx), ErrNotSent)
	}
	leaves := ctx.Done() != nil
	if leaves && f.done == nil {
		f.done = make(chan struct{})
	}
	w := c.flights.enter(f, ctx, c.draining, true)
	switch {
	case w == nil:
		return nil, &Error{Op: f.name, Key: Key(f.op.rec.Key), Outcome: OutcomeUnknown, is: []error{ErrOutcomeUnknown, ErrKeyReused, ErrInFlight}}
	case !w.first:
		return w, nil
	case !c.takeOff():
		f.fly(func() landing {
			return landing{err: c.notBegun(ctx, f.name, f.op.named, true, nil, ErrClosed), aside: true}
		})
		w.flew = true
	case leaves:
		c.crew.run(f)
	default: // who can never leave may as well fly
		c.crew.fly(f)
		w.flew = true
	}
	return w, nil
}

// takeOff counts a flight, unless the client is closed.
func (c *Client) takeOff() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.flying.Add(1)
	}
	return !c.closed
}

// do is one Do in the air: begin, see what stands, drive, land.
func (f *flight) do() landing {
	c, name, op := f.c, f.name, &f.op
	rec, created, err := c.journal.Begin(f.values, c.begin(op))
	if err != nil {
		return landing{err: c.notBegun(f.values, name, op.named, true, err, ErrNotSent)}
	}
	d := &f.drive
	*d = drive{
		c: c, f: f, rec: rec, prof: op.prof, credentials: op.credentials, target: op.target,
		created: created,
	}
	if !created {
		if land, over := d.takeOver(name, op); over {
			if land.answer != nil {
				d.observe(f.values, EventRecorded, func(e *Event) {
					e.Outcome, e.Status = land.answer.result.Outcome, land.answer.status
				})
			}
			return land
		}
	}
	d.observe(f.values, EventBegun, nil)
	return d.fly(name)
}

// fly runs the loop and records what it came to.
func (d *drive) fly(name string) landing {
	d.run()
	land := d.settle(name)
	land.aside = land.err != nil && d.f.draining.Err() != nil
	d.observe(d.f.values, EventFinished, func(e *Event) {
		e.Outcome, e.Err = d.reading.outcome, land.err
		if d.last.Answer != nil {
			e.Status = d.last.Answer.Head.StatusCode
		}
	})
	return land
}

// response is this waiter's own response. It is nil if the answer was too large
// to keep and another waiter has it; then the operation is asked again.
func (w *waiter) response(req *http.Request) *http.Response {
	a := w.f.land.answer
	whole := &struct { // one allocation for all
		http.Response
		body memoryBody
		req  http.Request
		ctx  resultContext
	}{}
	whole.body.Reset(a.body)
	resp := &whole.Response
	*resp = http.Response{
		StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header(), Body: &whole.body, ContentLength: int64(len(a.body)),
	}
	if a.head != nil {
		resp.Status, resp.Proto, resp.ProtoMajor, resp.ProtoMinor = a.head.Status, a.head.Proto, a.head.ProtoMajor, a.head.ProtoMinor
		resp.TLS, resp.Uncompressed, resp.Trailer = a.head.TLS, a.head.Uncompressed, a.head.Trailer.Clone()
	} else {
		resp.Status = strconv.Itoa(a.status) + " " + http.StatusText(a.status)
	}
	if a.partial {
		rest := w.f.takeRest()
		if rest == nil {
			return nil
		}
		resp.Body, resp.ContentLength = join(req.Context(), a.body, rest), -1
	}
	// Where ResultOf finds it, on a copy of the caller's request, so that wrappers
	// which replace resp.Body do not lose it.
	whole.ctx = resultContext{req.Context(), a.result}
	whole.req = *req.WithContext(&whole.ctx)
	resp.Request = &whole.req
	return resp
}

// joined is a body too large to keep: what was kept, then the rest as it comes.
// The caller's context, which the flight has left behind, ends it as it would end
// a body of net/http.
type joined struct {
	io.Reader
	rest io.Closer
	stop func() bool
}

func join(ctx context.Context, kept []byte, rest *wire.Body) *joined {
	cut := func() { rest.Cancel(context.Cause(ctx)) }
	return &joined{io.MultiReader(bytes.NewReader(kept), rest), rest, context.AfterFunc(ctx, cut)}
}

func (j *joined) Close() error {
	j.stop()
	return j.rest.Close()
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// Close starts nothing more. Flights stop after the attempt that is on the wire,
// and Close waits for them, for Retry.AttemptTimeout at most; then it cuts them
// off and waits for what they record. Last it closes the journal, if Open opened
// it. A second Close is nil.
func (c *Client) Close() error {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.mu.Unlock()
	if was {
		return nil
	}
	c.drain(ErrClosed)
	cut := time.AfterFunc(c.cfg.Retry.AttemptTimeout, c.flights.cut)
	c.flying.Wait()
	cut.Stop()
	if !c.owned {
		return nil
	}
	err := c.journal.Close()
	if err != nil {
		c.log(context.Background(), slog.LevelError, "journal did not close", "", err)
	}
	return err
}
