package run

import (
	"context"
	"math"
	"net/http"
	"net/url"
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

// engine runs operations for the calls of one client, Do's and Resume's alike, so that a recovered operation cannot
// behave differently from a fresh one. It is safe for concurrent use.
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
	alone         leftAlone        // what it gave back, since it cannot act on it
	lacking       metLacks         // why it leaves operations alone
	origins       known.Origins    // those that take no connections from this client: others may have another Transport
	passesBy      known.Origins    // those of which a pass met only what it leaves alone
	aside         known.Aside      // operations that this client alone cannot send now
	wake          func()           // tells Run of this client that something may be due
	owes          func()           // likewise, that a result may be owed

	notifier persist.Notifier     // tells other processes; nil: the journal cannot
	late     persist.LateFinisher // the journal, if an answer may be given before its record says so; else nil

	loopRequest *http.Request // shared by all runs, and never changed
}

// shared is what the clients of one journal have in common in this process.
type shared struct {
	calls   *inflight.Table[*result]
	clock   *lease.Clock
	recipes known.Recipes // of the operations that a request without a key may repeat
	looks   known.Looks[lookAt, unresolvedNow]
	cleared known.Cleared[lookAt] // where no other process uses the journal
	notes   known.Notes           // what the journal does not say
	begins  known.Begins          // of all operations
	secrets secrets
	results deliveries
	crashes known.Crashes // of runs that nobody waited for but a pass
	form    form

	authorized authorized
}

// callers is what a run needs to know of those who wait for it.
type callers interface {
	Work() *inflight.Work               // the call, for whoever would wait for it
	Values() context.Context            // the first caller's values; never ends
	Context() context.Context           // the same, but ends when no caller waits any more
	Draining() context.Context          // after it ends no new wait starts; the attempt in flight goes on
	PlainHTTP() (waiting, earlier bool) // a caller of Transport waits now; one has waited during this call
	Deadline() time.Time                // the latest of the callers' deadlines; zero if one caller has none
	SetInDoubt(bool)                    // whether the operation was in doubt before
	SetSends(int)                       // how many sends the run has made, with those that are being made
	GiveUp(cause error)                 // ends Context
	Recording() (firstLeft bool)        // the end is being recorded; the first caller, if it has not left, stays for the result
	Answer(*result)                     // gives them the result before the run is over
}

// run is one run of the attempt loop over one record: one Do, or one record in one Resume. It does the steps of a Drive, which decides. One
// goroutine uses it.
type run struct {
	*engine
	call        callers
	name        string // of the call, for errors
	rec         persist.Record
	prof        *profile.Profile
	credentials request.Credentials
	target      *url.URL // where it is sent to

	given    operation.Given // what the drive knows when it begins
	drive    operation.Drive
	owed     uint64       // result.owed
	resolved bool         // its record says how it ended, and that its callers know
	watched  *known.Watch // over its key, which the run frees

	fair     bool            // a fair Run runs it, which has claimed it
	turns    lanes.Turns     // that bound the sends
	admitted bool            // it may send now, see admit
	stack    *[]byte         // gets the stack of a crash of its limiter; nil: it is of no use
	leaves   bool            // it gives its operation back while its limiter waits for long
	returns  bool            // it may do so: it is one of a pass, or of a call with a key that sees no plain HTTP
	before   *persist.Record // as it was before a call; nil: that has begun it
	ahead    int             // how many requests its limiter has let go out already
	turn     *turn           // that its limiter has given, or for which it was left; nil: it is asked
	refused  error           // of the limiter, before the first attempt: no token is asked for

	started   time.Time // of the call's first drive, by this process's own clock
	schedule  *backoff.ExponentialBackOff
	sender    wire.Sender
	begun     int         // sends of the request under way
	moreSends int         // sends since the last result that the drive got
	firstSeen bool        // the loop already asked for the first attempt
	endWait   func() bool // set while a wait is under way
	endSpan   func(Event) // of Config.Instrument; nil: it has none, or was called
	token     string      // that was fetched, and is to be kept; at first one that the operation had when it was left

	answers int             // so far; each is named by its number
	own     heard           // the latest attempt's own, or the lookup's before one
	last    heard           // the answer that counts, and the latest error
	flawed  *persist.Answer // the latest 2xx with a classify.Flaw, as far as it was kept; nil if there was none
	failed  error           // of the latest step that failed
	gaveUp  error           // why the call was given up, or drains
}

// do begins the operation, unless a record of it exists, and runs it. The existing record decides what happens instead.
func (e *engine) do(call callers, name string, op *preparedRequest) *result {
	if res := e.mayBegin(call.Values(), name, op); res != nil {
		return res
	}
	rec, created, err := e.begin(call.Values(), op)
	if err != nil {
		return &result{err: e.errorOfBegin(call.Values(), name, op, true, err)}
	}
	r := &run{
		engine: e, call: call, name: name, rec: rec, prof: op.prof, credentials: op.credentials, target: op.target,
		given: operation.Given{Created: created}, turns: lanes.Free{}, returns: !op.rec.PlainHTTP && (!op.rec.Generated || op.rec.Business),
	}
	op.left.goesOn(r)
	if !created {
		r.credentials = op.read.CredentialsFor(&rec)
		if res := (existing{r}).resolve(op); res != nil {
			if !res.elsewhere {
				r.tellRecorded(res)
			}
			return res
		}
	}
	r.tell(EventBegun, nil)
	return r.execute()
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
	_ = r.clock.Notice(r.call.Values(), r.host) // where the journal cannot be asked, nothing can be recorded either
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

// finished tells that the run has come to its result, and returns that.
func (r *run) finished(res *result) *result {
	defer r.stillFree(res)
	res.notShared = res.err != nil && r.call.Draining().Err() != nil
	change := func(e *Event) {
		e.Outcome, e.Err = r.known(), res.err
		if r.last.Answer != nil {
			e.Status = r.last.Answer.Head.StatusCode
		}
	}
	r.ends(EventFinished, change)
	r.tell(EventFinished, change)
	r.logEnd(res)
	return res
}

// loop makes attempts until the drive needs no further one. The first is made directly:
// nearly every operation ends with it, and going through the loop for it would double what the client costs
// (docs/performance.md). What follows is go-retryablehttp's loop. Its hooks are below, in the order in which they run:
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
	if err != nil && r.drive.Step() == operation.Wait { // the wait was cut short
		r.gaveUp = r.stopCause()
		r.drive.Waited(false)
	}
}

// op returns the operation as its record says.
func (r *run) op() operation.Op {
	if r.prof == nil {
		return operation.OpOf(&r.rec, 0)
	}
	return operation.OpOf(&r.rec, r.prof.Window.Floor)
}

// givenNow returns what the drive knows when it begins.
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
// one. What the attempt learned is in r, so that the loop gets an empty answer.
func (r *run) inLoop(loop *http.Request) (*http.Response, error) {
	if r.firstSeen {
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
	r.tell(EventWaiting, func(e *Event) { e.Wait = r.drive.Wait() })
	draining := r.call.Draining() // it ends this wait, but not an attempt
	r.endWait = context.AfterFunc(draining, func() { r.call.GiveUp(context.Cause(draining)) })
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

// stopWaiting removes the AfterFunc that waits has set.
func (r *run) stopWaiting() {
	if r.endWait != nil {
		r.endWait()
		r.endWait = nil
	}
}

// backoff hands the loop the wait that the drive chose.
func (r *run) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	return r.drive.Wait()
}

// stopCause returns why the call was given up or is draining, nil if neither.
func (r *run) stopCause() error {
	if cause := context.Cause(r.call.Context()); cause != nil {
		return cause
	}
	return context.Cause(r.call.Draining())
}
