package run

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/lanes"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// engine runs operations for the calls of one client, Do's and Resume's alike: a recovered operation cannot behave differently
// from a fresh one. It is safe for concurrent use.
type engine struct {
	cfg           *Config
	journal       persist.Journal
	shared        *shared
	owner         string      // of leases
	host          *lease.Host // of them
	leases        lease.Leases
	clock         *lease.Clock     // of the journal
	journalShared bool             // other processes may use the journal
	now           func() time.Time // clock.Now
	alone         leftAlone        // groups with operations given back, since this client cannot serve them
	lacking       metLacks         // the reasons for leaving operations alone
	origins       known.Origins    // taking no connections from this client: others may have another Transport
	passesBy      known.Origins    // at them, a pass met only operations to leave alone
	aside         known.Aside      // operations not sendable now by this client alone
	wake          func()           // tells Run of this client: something may be due
	owes          func()           // likewise: a result may be owed
	delivering    atomic.Int32     // Runs that deliver results
	unowed        unowed           // ends without a result for OnResult

	notifier persist.Notifier     // tells other processes; nil: the journal cannot
	late     persist.LateFinisher // the journal, if an answer may be given before its record says so; else nil

	loopRequest *http.Request // shared by all runs, and never changed
}

// shared is the state common to the clients of one journal in this process.
type shared struct {
	calls   *inflight.Table[*result]
	clock   *lease.Clock
	recipes known.Recipes // of the operations possibly repeated by a request without a key
	looks   known.Looks[lookAt, unresolvedNow]
	cleared known.Cleared[lookAt] // if no other process uses the journal
	notes   known.Notes           // knowledge missing in the journal
	begins  known.Begins          // of all operations
	secrets secrets
	results deliveries
	crashes known.Crashes // of runs awaited by a pass only
	form    form

	authorized authorized
}

// callers gives a run the needed facts about the callers waiting for it.
type callers interface {
	Number() uint64                     // of the call, for events
	Work() *inflight.Work               // the call, for others about to wait for it
	Values() context.Context            // the first caller's values; never ends
	Context() context.Context           // the same, but ends when no caller waits any more
	Draining() context.Context          // after its end no new wait starts; the attempt in flight goes on
	PlainHTTP() (waiting, earlier bool) // a caller of Transport waits now; one has waited during this call
	Deadline() time.Time                // the latest of the callers' deadlines; zero if one caller has none
	SetInDoubt(bool)                    // true: the operation was in doubt before
	SetSends(int)                       // the number of sends of the run, with the ones under way
	GiveUp(cause error)                 // ends Context
	Recording() (firstLeft bool)        // the end is being recorded; the first caller, if it has not left, stays for the result
	Answer(*result)                     // gives them the result before the run is over
}

// run is one run of the attempt loop over one record: one Do, or one record in one Resume. The Drive decides, and the run does its steps. One
// goroutine uses it.
type run struct {
	*engine
	journal     persist.Journal // the engine's, with the run's stopwatch
	took        *stopwatch
	call        callers
	name        string // of the call, for errors
	rec         persist.Record
	prof        *profile.Profile
	credentials request.Credentials
	target      *url.URL // the URL to send to

	given    operation.Given // the drive's knowledge at its beginning
	drive    operation.Drive
	owed     uint64       // result.owed
	handed   *handover    // result.handed
	lost     bool         // the loss of its lease was told
	resolved bool         // its record says: it has ended, and its callers know how
	watched  *known.Watch // over its key, freed by the run

	fair     bool            // a fair Run has claimed it and runs it
	turns    lanes.Turns     // they bound the sends
	admitted bool            // it may send now, see admit
	stack    *[]byte         // gets the stack of a crash of its limiter; nil: it is of no use
	leaves   bool            // it gives its operation back while its limiter waits for long
	returns  bool            // it may do so: it is one of a pass, or of a call with a key that sees no plain HTTP
	before   *persist.Record // as it was before a call; nil: the call has begun it
	ahead    int             // the number of further requests already let out by its limiter
	turn     *turn           // given by its limiter, or awaited since the operation was left; nil: the limiter is asked
	refused  error           // of the limiter, before the first attempt: no token is asked for

	started   time.Time // of the call's first drive, by this process's own clock
	schedule  *backoff.ExponentialBackOff
	sender    wire.Sender
	begun     int          // sends of the request under way
	moreSends int          // sends since the last result given to the drive
	firstSeen bool         // the loop already asked for the first attempt
	endWait   func() bool  // set while a wait is under way
	endSpan   func(*Event) // of Config.Instrument; nil: it has none, or was called
	latest    *Event       // of the run; nil: there was none
	oneWire   bool         // no other operation has its key on the wire: keyTaken has looked
	token     string       // fetched, and to be kept; at first the operation's token from the time of leaving it

	answers int             // so far; each is named by its number
	own     heard           // the latest attempt's own, or the lookup's before one
	last    heard           // the counting answer, and the latest error
	flawed  *persist.Answer // the latest 2xx with a classify.Flaw, as far as it was kept; nil if there was none
	failed  error           // of the latest failed step
	gaveUp  error           // the reason for giving up or draining the call
}

// do begins the operation, unless a record of it exists, and runs it. An existing record decides about the call instead.
func (e *engine) do(call callers, name string, op *preparedRequest) *result {
	took := op.took.copy()
	took.enter(&took.spent.Journal)
	res := e.mayBegin(call.Values(), name, op)
	if res != nil {
		e.tellNotBegun(call, took, op, res.err)
		return res
	}
	rec, created, err := e.begin(call.Values(), op)
	took.leave()
	if err != nil {
		res := &result{err: e.errorOfBegin(call.Values(), name, op, true, err)}
		e.tellNotBegun(call, took, op, res.err)
		return res
	}
	r := e.newRun(call, name, took)
	r.rec, r.prof, r.credentials, r.target = rec, op.prof, op.credentials, op.target
	r.given.Created, r.returns = created, !op.rec.PlainHTTP && (!op.rec.Generated || op.rec.Business)
	op.left.goesOn(r)
	if !created {
		r.credentials = op.read.CredentialsFor(&rec)
		if res := (existing{r}).resolve(op); res != nil {
			if !res.elsewhere {
				r.tellOpened(res)
			}
			return res
		}
	}
	r.tellStep(EventBegun)
	return r.execute()
}

// newRun returns a run for a call of this name.
func (e *engine) newRun(call callers, name string, took *stopwatch) *run {
	return &run{engine: e, journal: took.timed(e.journal), took: took, call: call, name: name, turns: lanes.Free{}}
}

// begin begins the operation, stamped by the journal's clock, unless a record of it exists.
func (e *engine) begin(ctx context.Context, op *preparedRequest) (rec persist.Record, created bool, err error) {
	if err := e.clock.Sync(ctx, e.host); err != nil {
		return persist.Record{}, false, err
	}
	return e.beginRecord(ctx, e.intent(op))
}

// execute makes attempts until the verdict allows no further one, or a limit ends the run, and records the outcome.
// The lease of the record is renewed meanwhile.
func (r *run) execute() *result {
	r.leases.Begin(&r.rec)
	defer r.leases.End(r.rec.ID)
	r.begins()
	over := false
	defer func() { r.leave(over) }()
	if res := r.leaveLimited(); res != nil {
		over = true
		r.tellLeft(res)
		return res
	}
	r.loop()
	r.stopWaiting()
	_ = r.clock.Notice(r.call.Values(), r.host) // if the journal cannot be asked, nothing can be recorded either
	res := r.leaveBetween()
	if res == nil {
		res = r.end()
	}
	switch {
	case r.gaveUp != errLimited:
	case r.given.Pass || res.left != nil: // it goes on after the turn
		r.turn.leaveToken(r)
	default: // the call is over, and takes no turn
		r.turn.stop(errLimited)
	}
	over = true
	return res
}

// end records the outcome, or gives a confirmed answer before, and returns the result.
func (r *run) end() *result {
	d := ending{r}
	if d.answersFirst() {
		return d.answerFirst()
	}
	err := d.conclude(d.journal.Finish)
	res := d.result()
	if d.drive.Writing() == operation.EndConfirmed && res.err == nil {
		d.engine.answered(&d.rec, err)
	}
	return d.finished(res)
}

// finished tells of the end of the run, and returns its result.
func (r *run) finished(res *result) *result {
	defer r.stillFree(res)
	r.tellHeld()
	res.notShared = res.err != nil && r.call.Draining().Err() != nil
	if r.heard() || r.endSpan != nil {
		e := r.event(EventFinished)
		e.Outcome, e.Err, e.Rule, e.Hold = r.known(), res.err, r.rule(), r.holds()
		e.answeredBy(r.last.Answer, r.drive.Proof().Replayed)
		r.ends(e)
		r.tell(e)
	}
	r.logEnd(res)
	return res
}

// loop makes attempts until the drive needs no further one. The first is made directly:
// nearly every operation ends with it, and going through the loop for it would double the cost of the client
// (docs/performance.md). The other attempts are made by go-retryablehttp's loop. Its hooks are below, in the order of their calls:
// inLoop is its transport, waits its CheckRetry, backoff its Backoff. The loop gets an empty response. So it cannot
// follow a redirect, drain or close an answer, replace an error, or reach the caller's connections. A wait ends when the
// call is given up.
func (r *run) loop() {
	if r.started.IsZero() {
		r.started = time.Now()
	}
	if r.target == nil {
		r.target, _ = request.URL(&r.rec)
	}
	r.sender = newSender(r.cfg, recordedRequest{r})
	r.drive = operation.NewDrive(r.op(), r.cfg.drives, r.givenNow())
	r.attempt()
	if r.drive.Step() != operation.Draw {
		return
	}
	loop := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: transportFunc(r.inLoop)}, CheckRetry: r.waits, Backoff: r.backoff,
		RetryMax: math.MaxInt32, ErrorHandler: retryablehttp.PassthroughErrorHandler, // the drive has the bounds
	}
	_, err := loop.Do(&retryablehttp.Request{Request: r.loopRequest.WithContext(r.call.Context())})
	r.took.leave()                                      // of a wait that was cut short
	if err != nil && r.drive.Step() == operation.Wait { // the wait was cut short
		r.gaveUp = r.stopCause()
		r.drive.Waited(false)
	}
}

// op returns the operation by its record.
func (r *run) op() operation.Op {
	if r.prof == nil {
		return operation.OpOf(&r.rec, 0)
	}
	return operation.OpOf(&r.rec, r.prof.Window.Floor)
}

// givenNow returns the drive's knowledge at its beginning.
func (r *run) givenNow() operation.Given {
	g := r.given
	g.AskFirst = (r.cfg.Retry.AskFirst || r.rec.AskFirst) && len(r.prof.Duplicate) > 0
	g.OwnKey = r.rec.Generated && !r.rec.Business && r.cfg.randomKeys
	g.Late, g.LeastDelay = r.late != nil, r.prof.MinDelay
	return g
}

// newLoopRequest returns a dummy request for go-retryablehttp; it is never sent.
func newLoopRequest() *http.Request {
	return &http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "loop"}, Header: http.Header{}}
}

// transportFunc lets a function be an http.RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// inLoop is the loop's transport. Its first call makes no attempt, since loop made one already; each later call makes
// one. The result of the attempt is in r, and the loop gets an empty answer.
func (r *run) inLoop(loop *http.Request) (*http.Response, error) {
	if r.firstSeen {
		r.took.leave()
		r.stopWaiting()
		if r.waitsLong() {
			r.drive.Limited()
		} else {
			r.drive.Waited(true)
		}
		r.attempt()
	}
	r.firstSeen = true
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: loop}, nil
}

// waits reports whether the drive waits for another attempt. The arguments are not used.
func (r *run) waits(context.Context, *http.Response, error) (again bool, err error) {
	if r.drive.Step() == operation.Draw {
		r.draw()
	}
	if r.drive.Step() != operation.Wait {
		return false, nil
	}
	if !r.drive.KeepsAnswer() {
		r.last.Drain()
	}
	if r.heard() {
		e := r.event(EventWaiting)
		e.Wait = r.drive.Wait()
		r.tell(e)
	}
	draining := r.call.Draining() // it ends this wait, but not an attempt
	r.endWait = context.AfterFunc(draining, func() { r.call.GiveUp(context.Cause(draining)) })
	r.took.enter(&r.took.spent.Waiting)
	return true, nil
}

// draw does the step Draw.
func (r *run) draw() {
	if r.schedule == nil {
		r.schedule = newSchedule(&r.cfg.Retry)
	}
	now := r.now()
	r.gaveUp = r.stopCause()
	r.drive.Drawn(operation.Drawn{
		Scheduled: r.schedule.NextBackOff(), Elapsed: time.Since(r.started), Deadline: deadlineBy(now, r.call.Deadline()), GivenUp: r.gaveUp != nil,
	}, now)
}

// stopWaiting removes the AfterFunc set by waits.
func (r *run) stopWaiting() {
	if r.endWait != nil {
		r.endWait()
		r.endWait = nil
	}
}

// backoff hands the loop the wait chosen by the drive.
func (r *run) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	return r.drive.Wait()
}

// stopCause returns the cause of a call given up or draining, nil if it is neither.
func (r *run) stopCause() error {
	if cause := context.Cause(r.call.Context()); cause != nil {
		return cause
	}
	return context.Cause(r.call.Draining())
}
