package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/authorized"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Client sends requests that must take effect exactly once. It is safe for
// concurrent use; make one and keep it. Only New and Open make one: every error of
// a nil or zero Client matches ErrConfig, and so does every error for a nil context.Context.
type Client struct {
	cfg    Config  // its own copy, with the defaults
	engine *engine // does the work
	ends           // the waits and the work that Close ends
	acting         // the acts on one operation, and the way to its record

	owed chan struct{} // wakes the deliveries of Run; holds one value, so no sender waits
	due  chan struct{} // wakes Run, likewise

	notices      *notices      // warns of unprotected requests
	declarations *declarations // tells which requests of Transport are operations
}

// New makes a client on any journal; the caller closes the journal. Several
// clients in one process may share one journal.
// Errors: ErrConfig.
func New(cfg Config) (*Client, error) {
	// Asked before fill sets the default.
	ownsTransport, v := cfg.Transport == nil, newVisits()
	countVisits(&cfg, v)
	if err := cfg.fill(); err != nil {
		return nil, newError("new", nothing(""), err, ErrConfig)
	}
	// After fill, since fill looks at NewKey as the user gave it.
	countNewKey(&cfg, v)
	cfg.Transport = counted(cfg.Transport, v)
	// One for all clients of the journal in this process: the first of them makes it.
	attached := cfg.Journal.Attach(func() any {
		return &shared{calls: inflight.NewTable((*result).release), clock: lease.NewClock(cfg.Journal)}
	})
	common, ok := attached.(*shared)
	// The process has this journal open with the keys of a seal: its table is of no use without them.
	if other, sealed := attached.(interface{ Sealed() error }); sealed {
		return nil, newError("new", nothing(""), other.Sealed(), ErrConfig)
	}
	if !ok {
		return nil, newError("new", nothing(""), fmt.Errorf("the journal carries a %T, not this package's table of calls", attached), ErrConfig)
	}
	c := &Client{cfg: cfg, due: make(chan struct{}, 1), owed: make(chan struct{}, 1)}
	c.cfg.authorized = &authorized.Client{
		Origins: &common.authorized, Journal: cfg.Journal, Authorize: c.cfg.Authorize != nil, Producer: c.cfg.gate().producer(), Listed: c.cfg.origins,
	}
	c.engine = newEngine(c, common)
	c.ends.cfg, c.ends.engine, c.visits, c.ownsTransport, c.over = &c.cfg, c.engine, v, ownsTransport, make(chan struct{})
	c.draining, c.drain = context.WithCancelCause(context.Background())
	c.cutting, c.cut = context.WithCancelCause(context.Background())
	c.acting = acting{finder{&c.cfg, c.engine, persist.Account(cfg.Account)}, c}
	c.declarations = &declarations{&c.cfg, v}
	c.notices = &notices{cfg: &c.cfg, accountBase: c.accountBase}
	// Last: it may log, and look into the journal.
	c.notices.tellNew()
	return c, nil
}

// Do implements oncehttp.Client.Do: it sends a request as an operation under the request's own key. The caller does not see plain HTTP (false).
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	return c.do("do", req, keySource{}, false)
}

// DoKey implements oncehttp.Client.DoKey: it sends a request as the operation under key. The caller does not see plain HTTP (false).
func (c *Client) DoKey(req *http.Request, key string) (*http.Response, error) {
	return c.do("do", req, keySource{key: key, given: true}, false)
}

// keySource says how a call chooses its key. The zero value: the key is in the request or its context, or NewKey
// makes it.
type keySource struct {
	key    string        // the call's argument, or of its context
	given  bool          // the call names the key; it must not be empty then
	chosen bool          // a request without any key is an error; none is generated
	queued bool          // the call itself sends nothing
	made   *request.Made // NewKey's answer, if it was asked before
}

// preparedRequest is a caller's request, read once: the record for its begin, its profile, and the credentials,
// never given to a journal. If the request could not be read, only named is set. One goroutine uses it at a time:
// its caller's, then the call's.
type preparedRequest struct {
	rec         *persist.Record     // of read
	prof        *profile.Profile    // by which it was read
	credentials request.Credentials // sent, and never recorded
	target      *url.URL            // the caller's URL
	read        *request.Snapshot   // for comparisons with existing records
	named       request.Named       // the keys, account and scopes named by the call, as far as it could be read
	secret      []byte              // the journal's, if the operation's owner is compared
	left        *leftRecord         // the operation, while the limiter takes long; nil: it was not left
	took        *stopwatch          // of the call
	places      int                 // how often its place was chosen by all records of its key
	stood       bool                // the call passed a check only because a record of the operation stood
}

// do runs a request as an operation, or lets it stream through if it is none. name is the call's name, for errors.
// plain: the caller sees plain HTTP, and the request was declared an operation. req may be nil, which is an error.
// The body of req is closed in every case. The caller closes the body of the response; the response is nil if err
// is set.
func (c *Client) do(name string, req *http.Request, key keySource, plain bool) (*http.Response, error) {
	if err := checkCall(context.Background(), c, name, key.key); err != nil {
		if req != nil {
			closeBody(req)
		}
		return nil, err
	}
	if req == nil {
		return nil, noRequest(c.engine.unbegun, name, key.key)
	}
	// A closed client goes on to read the request: its error may be about an operation that stands.
	opened := !plain && c.visits.enter(doVisit)
	if opened {
		defer c.visits.leave(doVisit)
	}
	if !plain && !key.given && req.URL != nil {
		same, isOperation := journaled(&c.cfg, req)
		if req = same; !isOperation {
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

// operate runs a request that is known to be an operation. It joins the call in progress with the same key, or starts one. It starts anew if the record lies
// under another account (elsewhere), if the limiter took long (left: the operation was given back meanwhile), or if another caller has the rest of a large
// answer. Its arguments are those of do.
func (c *Client) operate(name string, req *http.Request, key keySource, plain bool) (*http.Response, error) {
	took := newStopwatch(&c.cfg)
	// Once: the body is used up afterwards, and the record owns its bytes.
	op, err := readRequest(c, req, key, plain)
	ctx := inflight.WithoutKey(req.Context()) // a journal of a user's own may ask for something with it
	if err != nil {
		return nil, tellNotBegun(ctx, c, took, op, c.engine.unbegun.errorBeforeRead(ctx, name, op.named, err, requestTrouble(err)))
	}
	op.took = took
	if err := choosePlace(ctx, c, name, op, c.engine.seats.place); err != nil {
		return nil, err
	}
	for {
		res, caller, err := c.run(ctx, name, op)
		if err != nil {
			return nil, err
		}
		if res.left != nil {
			caller.Done()
			if err := res.left.await(ctx, c.draining, c.engine, name, op); err != nil {
				return nil, err
			}
			continue
		}
		if res.elsewhere {
			caller.Done()
			if err := choosePlace(ctx, c, name, op, c.engine.seats.placeAnew); err != nil {
				return nil, err
			}
			continue
		}
		// Before Done: with the last caller the rest of a large answer is closed.
		resp, err := c.response(req, op.rec.ID, res, plain, caller.Joined())
		err = own(err, name, caller.Joined())
		caller.Done()
		if resp != nil || err != nil {
			return resp, err
		}
		op.named.Unnamed, op.named.Keyless = false, false // from now on an operation has its key, also a key made just now
	}
}

// stream sends a request of Do that is no operation, unless opened is false: the client is closed then. Nothing is
// written in the journal. The body of req is closed in every case.
func (c *Client) stream(req *http.Request, opened bool) (*http.Response, error) {
	if !opened {
		closeBody(req)
		return nil, newError("do", nothing(""), nil, ErrClosed, ErrNotSent)
	}
	req, err := c.engine.admission.passes(req, c.engine.now())
	if err != nil {
		return nil, err
	}
	// It is no operation of any client of the journal, as far as can be known.
	return passThrough{c, c.draining, c.cutting}.do(req)
}

// response returns this caller's response or error of a finished call; plain: the caller sees plain HTTP, joined: another caller began the call. Where the journal
// must know that a caller has the result, it is written first. If that fails for the record's end, the caller gets the error; the answer stays in the record, and is
// still owed to OnResult. Both results are nil if another caller has the rest of a large answer: then the server has to be asked again.
func (c *Client) response(req *http.Request, id persist.ID, res *result, plain, joined bool) (*http.Response, error) {
	ctx, marks := context.WithoutCancel(inflight.WithoutKey(req.Context())), c.engine.marks
	owed, err := marks.noteResult(ctx, id, res)
	if err != nil {
		answered := res.err == nil && res.answer != nil
		if acts.Withholds(answered, answered && res.answer.result.Outcome == OutcomeRefused) {
			return nil, err
		}
		c.cfg.log(req.Context(), slog.LevelError, "that a caller was told could not be recorded", id.Key, err)
	}
	var resp *http.Response
	if res.err == nil || plain && res.answer != nil {
		resp = res.answer.response(req, plain, joined)
	}
	if resp == nil && res.err == nil {
		return nil, nil
	}
	// A result is delivered at its revision: the note above has given owed the new one, and the mark below comes later
	// since it raises the revision once more.
	if c.cfg.OnResult != nil {
		if owed := max(owed, res.handed.take()); owed != 0 {
			c.engine.results.markDelivered(ctx, id, owed)
		}
	}
	if res.unreported {
		marks.noteReported(ctx, id)
	}
	if resp != nil { // else the rest was also given up for an attempt not made
		return resp, nil
	}
	return nil, res.err
}

// run joins the operation's call under way, or starts one, and waits for its result. After a nil error the caller of run calls Done of the returned Caller.
// After an error this caller has left: the call may go on for others, and the error says whether the operation may take effect. A result for the call's own
// starter alone (notShared) makes the others try again. On its own goroutine the caller runs the call only if its context cannot end, and no answer comes
// before its record (late).
func (c *Client) run(ctx context.Context, name string, op *preparedRequest) (*result, *inflight.Caller[*result], error) {
	for {
		op.took.enter(&op.took.spent.Journal)
		err := c.mayBegin(ctx, name, op)
		op.took.leave()
		if err != nil {
			return nil, nil, tellNotBegun(ctx, c, op.took, op, err)
		}
		// It compares the request of this call with that of the call under way.
		running := underWay{op: op}
		caller, arrival := c.engine.shared.calls.Enter(inflight.Entry{
			Record: op.rec, Context: ctx, Draining: c.draining, Client: c, Patience: c.cfg.Retry.patience(), PlainHTTP: op.rec.PlainHTTP,
			InDoubt: !op.rec.KeyOfOneCall(), // a key made for this call can have no earlier operation
		}, running.joins)
		switch {
		case arrival == inflight.Refused && running.elsewhere != nil:
			beside := func(ctx context.Context, op *preparedRequest) error {
				return c.engine.seats.choosePlace(ctx, op, running.elsewhere)
			}
			if err := choosePlace(ctx, c, name, op, beside); err != nil {
				return nil, nil, err
			}
			continue
		case arrival == inflight.Refused:
			return nil, nil, tellNotBegun(ctx, c, op.took, op, c.engine.refusals.refusedBy(ctx, name, &running))
		case arrival == inflight.Circle:
			return nil, nil, tellNotBegun(ctx, c, op.took, op, newError(name, unclear(op.keyInFlight()), inflight.ErrCircle, ErrInFlight))
		case arrival == inflight.Joined:
			tellJoined(ctx, &c.cfg, op, caller.Call().Number())
			caller.Until(c.cutting)
		case ctx.Done() == nil && c.engine.late == nil: // this caller stays until the call is over: it runs it on its own goroutine
			c.visits.stay(doVisit)
			c.start(caller.Call(), name, op)
		default:
			c.visits.stay(doVisit)
			go func() {
				// At once, since the stack of a new goroutine would grow in steps, and each step copies it.
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

// mayBegin returns an error if a call must neither begin its operation nor join it: other operations are in its way, ctx has ended, or the client drains. In
// the errors made here, false says that this call is not in the table of running calls yet. It writes nothing; the error is complete, for the caller of Do.
func (c *Client) mayBegin(ctx context.Context, name string, op *preparedRequest) error {
	if err := c.engine.admission.checkOthers(ctx, name, op); err != nil {
		return err
	}
	if op.named.Unnamed {
		if err := c.engine.admission.checkUnresolved(ctx, name, op); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return c.engine.unbegun.errorAfterRead(ctx, name, op.named, false, sanitize.Cause(ctx), ErrNotSent)
	case c.draining.Err() != nil:
		return c.engine.unbegun.errorAfterRead(ctx, name, op.named, false, nil, ErrClosed)
	}
	return nil
}

// start runs a new call on this goroutine until its result is given to the callers. If the client was closed in the meantime, the result is an error. The
// caller of start has called stay of visits; start calls leave. Touched makes an earlier mark of a claim on the record void. A crash of a function of the user
// becomes an error of the callers, and a log line if no caller is left.
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
			return &result{err: c.engine.unbegun.errorAfterRead(call.Values(), name, op.named, true, nil, ErrClosed), notShared: true}
		}
		c.engine.claims.Touched(op.rec.ID)
		defer c.engine.claims.Touched(op.rec.ID)
		return c.engine.do(call, name, op)
	}), crashed(name, op.rec.Key, call))
}

// crashed returns a function that makes the result of a call after a panic, or after the end of its goroutine, and of calls that waited for that
// call. Its argument is an *inflight.Crash, or the reason why a call's wait was useless. The record is not read, so the outcome in the error is
// unclear.
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

// Flush is oncehttp.Client.Flush. It waits for the records of answers already given to callers, then for their
// durability. It returns an error if such an answer is not recorded.
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
	return c.engine.doubts.unrecorded(ctx)
}
