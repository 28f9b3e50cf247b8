package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Client sends requests that must take effect exactly once. It is safe for
// concurrent use; make one and keep it.
type Client struct {
	cfg           Config
	engine        *engine
	ownsJournal   bool // Open opened the journal, Close closes it
	ownsTransport bool // Config.Transport was nil, Close closes its idle connections
	accountBase   string

	// draining ends the waits between attempts, so that every call stops after
	// the attempt that is on the wire.
	draining context.Context
	drain    context.CancelCauseFunc
	due      chan struct{} // wakes Run

	unheard sync.Once // for tellUnheard

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// New makes a client on any journal, which stays the caller's to close. Several
// clients in one process may share one journal.
// Errors: ErrConfig.
func New(cfg Config) (*Client, error) {
	ownsTransport := cfg.Transport == nil
	if err := cfg.fill(); err != nil {
		return nil, newError("new", nothing(""), err, ErrConfig)
	}
	attached := cfg.Journal.Attach(func() any { return &shared{calls: inflight.NewTable((*result).release), clock: newClock(cfg.Journal)} })
	common, ok := attached.(*shared)
	if !ok {
		return nil, newError("new", nothing(""), fmt.Errorf("the journal carries a %T, not this package's table of calls", attached), ErrConfig)
	}
	c := &Client{cfg: cfg, ownsTransport: ownsTransport, accountBase: persist.Account(cfg.Account), due: make(chan struct{}, 1)}
	c.draining, c.drain = context.WithCancelCause(context.Background())
	owner := string(RandomKey())
	c.engine = &engine{
		cfg: &c.cfg, journal: cfg.Journal, shared: common, owner: owner, leases: newLeases(&c.cfg, common.clock, owner),
		clock: common.clock, now: common.clock.now, notifier: notifier(cfg.Journal), late: lateFinisher(cfg.Journal), loopRequest: newLoopRequest(),
		wake: func() {
			select {
			case c.due <- struct{}{}:
			default: // it was told already
			}
		},
	}
	return c, nil
}

// Do sends the request so that it takes effect once. Its key is the request's
// own, else the context's (ContextWithKey), else a generated one, which is made
// and kept before the first attempt.
//
// On return either the response is the server's final answer, with its whole
// body, or the error matches exactly one of ErrNoEffect, ErrFinal and ErrOutcomeUnknown.
// An error status that is final (a declined card's 402) is a response. The
// request is never changed; its body is read once and closed.
//
// Do rejects a request without a key with ErrOutcomeUnknown if the same request
// under a generated key is unresolved, or if Resume or Run ended it and no caller
// with its key was told how. The error names that key. See the package comment.
//
// A confirmed answer that the same key finds again may be returned before its record
// is durable, and on a journal of a server (persist.LateFinisher) before the record says
// so; later calls on the operation in this process wait for that. After a crash in
// between the operation is pending, and is sent again under the same key. Flush waits.
//
// When the request's context ends, Do ends the attempt and returns what is known. It
// outlasts the context while the journal commits, and while a Transport or a
// function of the Config does not heed it. If other callers wait for the same
// operation, it returns at once, and the operation goes on for them.
//
// A request that is not journaled (GET, HEAD, OPTIONS; what Config.Methods
// leaves out) streams through. A GET, HEAD or OPTIONS that was sent and got no
// answer is ErrNoEffect, since by definition it has no effect (RFC 9110 section
// 9.2.1).
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	return c.do("do", req, keySource{}, false)
}

// DoKey is Do under this key. A key in the request itself must be the same.
func (c *Client) DoKey(req *http.Request, key Key) (*http.Response, error) {
	return c.do("do", req, keySource{key: key, given: true}, false)
}

// keySource is what a call itself says about the key.
type keySource struct {
	key    Key
	given  bool // the call names the key, which then must not be empty
	chosen bool // a request without any key is an error; none is generated
}

// preparedRequest is a caller's request, read once: the record that it would begin, its profile, and the
// credentials that no journal sees.
type preparedRequest struct {
	rec         *persist.Record // of read
	prof        *profile.Profile
	credentials request.Credentials
	target      *url.URL // where the caller sends it
	read        *request.Snapshot
	named       request.Named // what the call names, as far as it could be read
	secret      []byte        // the journal's, if the operation's owner is compared
}

// do runs a request as an operation, or lets it stream through if it is none. name is that of the call, for errors;
// plain says that the caller sees plain HTTP.
func (c *Client) do(name string, req *http.Request, key keySource, plain bool) (*http.Response, error) {
	if req == nil {
		return nil, c.engine.noRequest(name, key.key)
	}
	if !key.given && req.URL != nil {
		same, journaled := c.journaled(req)
		if req = same; !journaled {
			return passThrough{c}.do(req)
		}
	}
	op, err := c.read(req, key, plain)
	if err != nil {
		return nil, c.engine.errorBeforeRead(req.Context(), name, op.named, err, requestTrouble(err))
	}
	if err := c.engine.place(req.Context(), op); err != nil {
		return nil, c.engine.errorOfPlace(req.Context(), name, op, err)
	}
	for {
		res, caller, err := c.run(req.Context(), name, op)
		if err != nil {
			return nil, err
		}
		resp, err := c.response(req, op.rec.ID, res, plain, caller.Joined())
		err = own(err, name, caller.Joined())
		caller.Done()
		if resp != nil || err != nil {
			return resp, err
		}
		op.named.Unnamed, op.named.Keyless = false, false // from now on an operation has its key, also where that was just made
	}
}

// response returns this caller's response or error of a call that is over; neither if another caller has the rest of a large
// answer, so that the server has to be asked again.
func (c *Client) response(req *http.Request, id persist.ID, res *result, plain, joined bool) (*http.Response, error) {
	if res.unreported {
		c.engine.markReported(context.WithoutCancel(req.Context()), id)
	}
	if res.err == nil || plain && res.answer != nil {
		if resp := res.answer.response(req, joined); resp != nil {
			return resp, nil
		}
	}
	return nil, res.err // also where the rest was given up for an attempt that was not made
}

// run joins the call that is under way with the operation, or starts one, and returns its result, and the caller whose Done
// follows. err is set if this caller gets no result.
func (c *Client) run(ctx context.Context, name string, op *preparedRequest) (*result, *inflight.Caller[*result], error) {
	for {
		if err := c.engine.checkUnassigned(ctx, name, op); err != nil {
			return nil, nil, err
		}
		if op.named.Unnamed {
			if err := c.engine.checkUnresolved(ctx, name, op); err != nil {
				return nil, nil, err
			}
		}
		if ctx.Err() != nil {
			return nil, nil, c.engine.errorAfterRead(ctx, name, op.named, false, context.Cause(ctx), ErrNotSent)
		}
		var running struct { // the call that is under way
			strange  bool
			likeness request.Likeness
		}
		caller, arrival := c.engine.shared.calls.Enter(inflight.Entry{
			Record: op.rec, Context: ctx, Draining: c.draining, PlainHTTP: op.rec.PlainHTTP,
			InDoubt: !op.rec.Generated, // a key made for this call can have no earlier operation
		}, func(rec *persist.Record) bool {
			if running.strange = op.strange(rec); !running.strange {
				running.likeness = op.read.Compare(rec)
			}
			return running.likeness == request.SameRequest
		})
		switch {
		case arrival == inflight.Refused && running.strange:
			return nil, nil, c.engine.strangerError(ctx, name, op.rec.ID, errOtherCredentials)
		case arrival == inflight.Refused && running.likeness == request.CannotTell:
			return nil, nil, newError(name, unclear(Key(op.rec.Key)), errIncomparable, ErrConfig, ErrInFlight)
		case arrival == inflight.Refused:
			return nil, nil, newError(name, unclear(Key(op.rec.Key)), nil, ErrKeyReused, ErrInFlight)
		case arrival == inflight.Joined:
		case ctx.Done() == nil && c.engine.late == nil: // a caller that stays until the call is over runs it on its own goroutine
			c.start(caller.Call(), name, op)
		default:
			go c.start(caller.Call(), name, op)
		}
		res, err := caller.Wait()
		switch {
		case err != nil:
			return nil, nil, left(name, op.rec.Key, caller, err)
		case arrival == inflight.Started || !res.notShared:
			return res, caller, nil
		}
		caller.Done()
	}
}

// start runs the new call, unless the client is closed.
func (c *Client) start(call *inflight.Call[*result], name string, op *preparedRequest) {
	opened := c.enter()
	if opened {
		defer c.running.Done() // also if a function of the Config ends the goroutine
	}
	call.Run(func() *result {
		if !opened {
			return &result{err: c.engine.errorAfterRead(call.Values(), name, op.named, true, nil, ErrClosed), notShared: true}
		}
		c.engine.leases.touched(op.rec.ID)
		defer c.engine.leases.touched(op.rec.ID)
		return c.engine.do(call, name, op)
	}, crashed(name, op.rec.Key, call))
}

// crashed makes the result of a call that panicked or ended its goroutine. What it did before is in the journal.
func crashed(name, key string, call *inflight.Call[*result]) func(error) *result {
	return func(cause error) *result {
		e := newError(name, unclear(Key(key)), cause)
		e.Sends = call.Sends()
		return &result{err: e}
	}
}

// left returns the error of a caller that left a call because of cause. The call may go on for others.
func left(name, key string, caller *inflight.Caller[*result], cause error) *Error {
	e := newError(name, unclear(Key(key)), cause, ErrInFlight)
	e.Sends, e.Joined = caller.Call().Sends(), caller.Joined()
	return e
}

// Flush returns when what the calls that have returned, of all clients on this journal in this process, know of their
// operations is durable. A Do on a journal of a server (persist.LateFinisher) returns a confirmed answer before the record
// says so, and on any journal before that is durable; the same key finds the answer again after a crash. Errors: the
// journal's, the cause of ctx, and that an answer could not be recorded, which leaves its operation pending: so does each
// Flush until it is recorded, by a later call or by Run, in whichever process.
func (c *Client) Flush(ctx context.Context) error {
	if err := c.engine.recorded(ctx, func(persist.ID) bool { return true }); err != nil {
		return err
	}
	if err := c.cfg.Journal.Flush(ctx); err != nil {
		return err
	}
	return c.engine.unrecorded(ctx)
}

// enter counts a running call, so that Close waits for it; false if the client is closed. running.Done must follow true.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Add(1)
	}
	return !c.closed
}

// givenBy returns what a call at now says about its operation beside the request itself.
func givenBy(req *http.Request, key keySource, plain bool, now time.Time) request.Given {
	g := request.Given{Generate: !key.chosen, PlainHTTP: plain, Now: now}
	if key.given {
		g.Keys = append(g.Keys, string(key.key))
	}
	if inContext, ok := req.Context().Value(contextKey{}).(Key); ok {
		g.Keys = append(g.Keys, string(inContext))
	}
	g.Account, g.Scoped = AccountFromContext(req.Context())
	g.OneOwner = request.OneOwner(req.Context())
	return g
}

// read reads the caller's request, with its body, which it closes in every case. It never changes the request. Beside
// an error the operation tells only what the call names.
func (c *Client) read(req *http.Request, key keySource, plain bool) (*preparedRequest, error) {
	s, named, err := c.cfg.reader.Read(req, c.cfg.profileFor(req.URL), givenBy(req, key, plain, c.engine.now()))
	if err != nil {
		return &preparedRequest{named: named}, err
	}
	if request.Unheard(s.Profile, s.Record.Method) {
		c.unheard.Do(func() { c.tellUnheard(req.Context(), &s.Record) })
	}
	return &preparedRequest{rec: &s.Record, prof: s.Profile, credentials: s.Credentials, target: &s.URL, read: s, named: named}, nil
}

// tellUnheard says that nobody knows whether the API honours keys on the method of an operation.
func (c *Client) tellUnheard(ctx context.Context, rec *persist.Record) {
	cause := fmt.Errorf("profile %q does not say that keys count on %s; if the API ignores them there, a second send takes effect twice: name a profile that lists its methods", rec.Profile, rec.Method)
	c.cfg.log(ctx, slog.LevelWarn, "a method on which keys may not count (said once)", rec.Key, cause)
}

// journaled reports whether a request is an operation. Use same instead of req afterwards: its body may have been
// read to find a key. A misspelled method counts as an operation, so that read refuses it.
func (c *Client) journaled(req *http.Request) (same *http.Request, journaled bool) {
	method := request.Method(req)
	if request.Safe(method) {
		return req, false
	}
	if c.cfg.journals(method) || request.CheckMethod(method) != nil {
		return req, true
	}
	carries, same := c.cfg.reader.CarriesKey(req, c.cfg.profileFor(req.URL), givenBy(req, keySource{}, false, time.Time{}))
	return same, carries
}

// requestTrouble returns the sentinel that says why a request could not be read.
func requestTrouble(err error) error {
	var e *request.Error
	if !errors.As(err, &e) {
		return ErrConfig
	}
	return map[request.Trouble]error{
		request.Invalid: ErrConfig, request.InvalidKey: ErrKeyInvalid,
		request.BodyTooLarge: ErrBodyTooLarge, request.HeaderTooLarge: ErrHeaderTooLarge,
		request.Ended: ErrNotSent,
	}[e.Trouble]
}

// sanitized removes URLs and quotes from an error that is not ours. errors.Is still works.
func sanitized(err error) error { return sanitize.Error(err) }

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// Close starts nothing more. Calls under way stop after the attempt that is on the
// wire, and Close waits for them, for Retry.AttemptTimeout at most; then it cuts
// them off and waits for what they record. Last it closes the idle connections of its
// own Transport, where Config.Transport was nil, and the journal, if Open
// opened it; close one of your own after the client. Its error is that journal's: what
// Flush promises may not hold then. A second Close is nil, whatever the first has returned.
func (c *Client) Close() error {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.mu.Unlock()
	if was {
		return nil
	}
	c.drain(ErrClosed)
	cut := time.AfterFunc(c.cfg.Retry.AttemptTimeout, c.engine.shared.calls.GiveUpDraining)
	c.running.Wait()
	c.engine.leases.close()
	cut.Stop()
	if idle, can := c.cfg.Transport.(interface{ CloseIdleConnections() }); can && c.ownsTransport {
		idle.CloseIdleConnections()
	}
	if !c.ownsJournal {
		return nil
	}
	err := c.cfg.Journal.Close()
	if err != nil {
		c.cfg.log(context.Background(), slog.LevelError, "journal did not close", "", err)
	}
	return err
}
