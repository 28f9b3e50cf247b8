package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Client sends requests that must take effect exactly once. It is safe for
// concurrent use; make one and keep it. Only New and Open make one: every error of
// a nil or zero Client matches ErrConfig, and so does every error for a nil context.Context.
type Client struct {
	cfg           Config
	engine        *engine
	ownsJournal   bool // Open opened the journal, Close closes it
	ownsTransport bool // Config.Transport was nil, Close closes its idle connections
	accountBase   string

	// draining ends the waits between attempts: every call stops after
	// the attempt on the wire.
	draining context.Context
	drain    context.CancelCauseFunc
	owed     chan struct{} // wakes the deliveries of Run
	due      chan struct{} // wakes Run

	told   toldCoverage // for tellCoverage
	passed toldPassing  // for tellPassing

	visits    *visits
	closeOnce sync.Once
	closing   time.Time       // when Close was called; written by closeOnce
	cutting   context.Context // ends when Close cuts the work under way
	cut       context.CancelCauseFunc
	over      chan struct{} // closed once all is over
	closeErr  error         // written before over is closed
	renewed   atomic.Bool   // no renewal of leases is under way any more
}

// New makes a client on any journal; the caller closes the journal. Several
// clients in one process may share one journal.
// Errors: ErrConfig.
func New(cfg Config) (*Client, error) {
	ownsTransport, v := cfg.Transport == nil, newVisits()
	cfg.countVisits(v)
	if err := cfg.fill(); err != nil {
		return nil, newError("new", nothing(""), err, ErrConfig)
	}
	cfg.countNewKey(v)
	cfg.Transport = counted(cfg.Transport, v)
	attached := cfg.Journal.Attach(func() any {
		return &shared{calls: inflight.NewTable((*result).release), clock: lease.NewClock(cfg.Journal)}
	})
	common, ok := attached.(*shared)
	if other, sealed := attached.(interface{ Sealed() error }); sealed {
		return nil, newError("new", nothing(""), other.Sealed(), ErrConfig)
	}
	if !ok {
		return nil, newError("new", nothing(""), fmt.Errorf("the journal carries a %T, not this package's table of calls", attached), ErrConfig)
	}
	c := &Client{cfg: cfg, ownsTransport: ownsTransport, accountBase: persist.Account(cfg.Account), due: make(chan struct{}, 1), owed: make(chan struct{}, 1)}
	c.cfg.authorized = &common.authorized
	c.draining, c.drain = context.WithCancelCause(context.Background())
	c.cutting, c.cut = context.WithCancelCause(context.Background())
	c.visits, c.over = v, make(chan struct{})
	owner, host := uuid.NewString(), c.cfg.leaseHost()
	leases, journalShared := lease.New(host, common.clock, owner)
	c.engine = &engine{
		cfg: &c.cfg, journal: cfg.Journal, shared: common, owner: owner, host: host, leases: leases, journalShared: journalShared,
		clock: common.clock, now: common.clock.Now, notifier: notifier(cfg.Journal), late: lateFinisher(cfg.Journal), loopRequest: newLoopRequest(),
		lacking: metLacks{met: make(chan struct{}, 1)},
		owes: func() {
			select {
			case c.owed <- struct{}{}:
			default: // it was told already
			}
		},
		wake: func() {
			select {
			case c.due <- struct{}{}:
			default: // it was told already
			}
		},
	}
	c.tellNew()
	return c, nil
}

// Do is oncehttp.Client.Do.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	return c.do("do", req, keySource{}, false)
}

// DoKey is oncehttp.Client.DoKey.
func (c *Client) DoKey(req *http.Request, key string) (*http.Response, error) {
	return c.do("do", req, keySource{key: key, given: true}, false)
}

// keySource is the call's own part in the choice of the key.
type keySource struct {
	key    string
	given  bool          // the call names the key; it must not be empty then
	chosen bool          // a request without any key is an error; none is generated
	queued bool          // the call itself sends nothing
	made   *request.Made // NewKey's answer, if it was asked before
}

// preparedRequest is a caller's request, read once: the record for its begin, its profile, and the
// credentials, never given to a journal.
type preparedRequest struct {
	rec         *persist.Record // of read
	prof        *profile.Profile
	credentials request.Credentials
	target      *url.URL // the caller's URL
	read        *request.Snapshot
	named       request.Named // the keys, account and scopes named by the call, as far as it could be read
	secret      []byte        // the journal's, if the operation's owner is compared
	left        *leftRecord   // the operation, while the limiter takes long; nil: it was not left
	took        *stopwatch    // of the call
	places      int           // how often its place was chosen by all records of its key
}

// do runs a request as an operation, or lets it stream through if it is none. name is the call's name, for errors. If plain is true,
// the caller sees plain HTTP, and the request was declared an operation.
func (c *Client) do(name string, req *http.Request, key keySource, plain bool) (*http.Response, error) {
	if err := c.checkCall(context.Background(), name, key.key); err != nil {
		if req != nil {
			closeBody(req)
		}
		return nil, err
	}
	if req == nil {
		return nil, c.engine.noRequest(name, key.key)
	}
	opened := !plain && c.visits.enter(doVisit)
	if opened {
		defer c.visits.leave(doVisit)
	}
	if !plain && !key.given && req.URL != nil {
		same, journaled := c.journaled(req)
		if req = same; !journaled {
			return c.stream(req, opened)
		}
	}
	if plain && c.visits.enter(roundTripVisit) {
		defer c.visits.leave(roundTripVisit)
	}
	operate := func(req *http.Request) (*http.Response, error) { return c.operate(name, req, key, plain) }
	//lint:ignore SA1019 callers set it
	if req.Cancel != nil {
		return untilCanceled(req, operate)
	}
	return operate(req)
}

// operate is do for an operation.
func (c *Client) operate(name string, req *http.Request, key keySource, plain bool) (*http.Response, error) {
	took := c.cfg.stopwatch()
	op, err := c.read(req, key, plain)
	ctx := inflight.WithoutKey(req.Context()) // a journal of a user's own may ask for something with it
	if err != nil {
		return nil, c.notBegun(ctx, took, op, c.engine.errorBeforeRead(ctx, name, op.named, err, requestTrouble(err)))
	}
	op.took = took
	if err := c.choosePlace(ctx, name, op, c.engine.place); err != nil {
		return nil, err
	}
	for {
		res, caller, err := c.run(ctx, name, op)
		if err != nil {
			return nil, err
		}
		if res.left != nil {
			caller.Done()
			if err := c.awaitLimiter(ctx, name, op, res.left); err != nil {
				return nil, err
			}
			continue
		}
		if res.elsewhere {
			caller.Done()
			if err := c.choosePlace(ctx, name, op, c.engine.placeAnew); err != nil {
				return nil, err
			}
			continue
		}
		resp, err := c.response(req, op.rec.ID, res, plain, caller.Joined())
		err = own(err, name, caller.Joined())
		caller.Done()
		if resp != nil || err != nil {
			return resp, err
		}
		op.named.Unnamed, op.named.Keyless = false, false // from now on an operation has its key, also a key made just now
	}
}

// stream sends a request of Do if it is no operation. opened: it belongs to a Do of a client not closed.
func (c *Client) stream(req *http.Request, opened bool) (*http.Response, error) {
	if !opened {
		closeBody(req)
		return nil, newError("do", nothing(""), nil, ErrClosed, ErrNotSent)
	}
	req, err := c.passes(req)
	if err != nil {
		return nil, err
	}
	return passThrough{c, c.draining, c.cutting}.do(req)
}

// response returns this caller's response or error of a finished call. It returns neither if another caller has the rest of a large
// answer. Then the server has to be asked again.
func (c *Client) response(req *http.Request, id persist.ID, res *result, plain, joined bool) (*http.Response, error) {
	if c.cfg.OnResult != nil { // before the mark below, since it raises the revision
		if owed := max(res.owed, res.handed.take()); owed != 0 {
			c.engine.markDelivered(context.WithoutCancel(inflight.WithoutKey(req.Context())), id, owed)
		}
	}
	if err := c.engine.marks(context.WithoutCancel(inflight.WithoutKey(req.Context())), id, res); err != nil {
		return nil, err
	}
	if res.err == nil || plain && res.answer != nil {
		if resp := res.answer.response(req, plain, joined); resp != nil {
			return resp, nil
		}
	}
	return nil, res.err // also if the rest was given up for an attempt not made
}

// run joins the operation's call under way, or starts one. It returns the call's result, and the caller; its Done must follow.
// err is set if this caller gets no result.
func (c *Client) run(ctx context.Context, name string, op *preparedRequest) (*result, *inflight.Caller[*result], error) {
	for {
		op.took.enter(&op.took.spent.Journal)
		err := c.mayBegin(ctx, name, op)
		op.took.leave()
		if err != nil {
			return nil, nil, c.notBegun(ctx, op.took, op, err)
		}
		running := underWay{op: op}
		caller, arrival := c.engine.shared.calls.Enter(inflight.Entry{
			Record: op.rec, Context: ctx, Draining: c.draining, Client: c, Patience: c.cfg.patience(), PlainHTTP: op.rec.PlainHTTP,
			InDoubt: !op.rec.Generated || op.rec.Business, // a key made for this call can have no earlier operation
		}, running.joins)
		switch {
		case arrival == inflight.Refused && running.elsewhere != nil:
			beside := func(ctx context.Context, op *preparedRequest) error {
				return c.engine.choosePlace(ctx, op, running.elsewhere)
			}
			if err := c.choosePlace(ctx, name, op, beside); err != nil {
				return nil, nil, err
			}
			continue
		case arrival == inflight.Refused:
			return nil, nil, c.notBegun(ctx, op.took, op, c.engine.refusedBy(ctx, name, &running))
		case arrival == inflight.Circle:
			return nil, nil, c.notBegun(ctx, op.took, op, newError(name, unclear(op.keyInFlight()), inflight.ErrCircle, ErrInFlight))
		case arrival == inflight.Joined:
			c.tellJoined(ctx, op, caller.Call().Number())
			caller.Until(c.cutting)
		case ctx.Done() == nil && c.engine.late == nil: // this caller stays until the call is over: it runs it on its own goroutine
			c.visits.stay(doVisit)
			c.start(caller.Call(), name, op)
		default:
			c.visits.stay(doVisit)
			go func() {
				growStack()
				c.start(caller.Call(), name, op)
			}()
		}
		res, err := caller.Wait()
		switch {
		case err != nil:
			return nil, nil, left(name, op.keyOnLeaving(caller.Joined()), caller, err)
		case arrival == inflight.Started || !res.notShared:
			return res, caller, nil
		}
		caller.Done()
	}
}

// mayBegin returns an error if a call must neither begin its operation nor join it.
func (c *Client) mayBegin(ctx context.Context, name string, op *preparedRequest) error {
	if err := c.engine.checkUnassigned(ctx, name, op); err != nil {
		return err
	}
	if err := c.engine.checkWire(ctx, name, op); err != nil {
		return err
	}
	if op.named.Unnamed {
		if err := c.engine.checkUnresolved(ctx, name, op); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return c.engine.errorAfterRead(ctx, name, op.named, false, context.Cause(ctx), ErrNotSent)
	case c.draining.Err() != nil:
		return c.engine.errorAfterRead(ctx, name, op.named, false, nil, ErrClosed)
	}
	return nil
}

// underWay compares a request with the request of the call under way with its key.
type underWay struct {
	op        *preparedRequest
	elsewhere *persist.Record  // the record, if it is of another scope than the request
	strange   bool             // it belongs to other credentials
	likeness  request.Likeness // of the requests, else
	unclear   error            // the reason, if they cannot be compared
}

// joins reports whether the request is the same as the request of the call with this record. It sets the fields of u.
func (u *underWay) joins(rec *persist.Record) bool {
	if u.op.elsewhere(rec) {
		other := rec.Clone()
		u.elsewhere = &other
		return false
	}
	if u.strange = u.op.strange(rec); u.strange {
		return false
	}
	if u.likeness = u.op.read.Compare(rec); u.likeness == request.CannotTell {
		u.unclear = incomparable(u.op, rec)
	}
	return u.likeness == request.SameRequest
}

// refusedBy returns the error of a request if it may not join the call under way with its key.
func (e *engine) refusedBy(ctx context.Context, name string, u *underWay) error {
	switch {
	case u.strange:
		return e.strangerError(ctx, name, u.op.rec.ID, errOtherCredentials)
	case u.likeness == request.CannotTell:
		return newError(name, unclear(u.op.keyInFlight()), u.unclear, ErrConfig, ErrInFlight)
	}
	return newError(name, unclear(u.op.rec.Key), nil, ErrKeyReused, ErrInFlight)
}

// start runs the new call, unless the client is closed. It ends a stay.
func (c *Client) start(call *inflight.Call[*result], name string, op *preparedRequest) {
	defer c.visits.leave(doVisit)     // also if a function of the Config ends the goroutine
	opened := c.draining.Err() == nil // later, it may still have its answer from the call before
	var stack []byte
	defer func() {
		if stack != nil && call.Deserted() {
			c.cfg.logCrash(call.Values(), "a call has crashed, and its caller has left or has its answer", op.rec.Key, crashOf(call, stack))
		}
	}()
	call.Run(withStack(&stack, func() *result {
		if !opened {
			return &result{err: c.engine.errorAfterRead(call.Values(), name, op.named, true, nil, ErrClosed), notShared: true}
		}
		c.engine.leases.Touched(op.rec.ID)
		defer c.engine.leases.Touched(op.rec.ID)
		return c.engine.do(call, name, op)
	}), crashed(name, op.rec.Key, call))
}

// crashed makes the result of a call after a panic or the end of its goroutine. Its actions before that are in the journal.
func crashed(name, key string, call *inflight.Call[*result]) func(error) *result {
	return func(cause error) *result {
		if crash := (*inflight.Crash)(nil); errors.As(cause, &crash) {
			cause = crashCause(crash.Value)
		}
		e := newError(name, unclear(key), cause, waitedInVain(cause))
		e.Sends = call.Sends()
		return &result{err: e}
	}
}

// Flush is oncehttp.Client.Flush.
func (c *Client) Flush(ctx context.Context) error {
	switch within, leave, err := c.visit(ctx, "Flush"); {
	case err == nil:
		defer leave()
		ctx = within
	case !errors.Is(err, ErrClosed): // after Close, Flush still tells about durability
		return fmt.Errorf("oncehttp: flush: %w", err)
	}
	if err := c.engine.recorded(ctx, func(persist.ID) bool { return true }); err != nil {
		return notWaited("flush", err)
	}
	if err := c.cfg.Journal.Flush(ctx); err != nil {
		return err
	}
	return c.engine.unrecorded(ctx)
}
