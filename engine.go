package oncehttp

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/pauses"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// engine runs operations for the calls of one client, Do's and Resume's alike, so that a recovered operation cannot
// behave differently from a fresh one. It is safe for concurrent use.
type engine struct {
	cfg      *Config
	journal  persist.Journal
	shared   *shared
	owner    string           // of leases
	leases   *leases          // nil: no other process shares the journal
	clock    *clock           // of the journal
	now      func() time.Time // clock.now
	alone    leftAlone        // what it gave back, since it cannot act on it
	lacking  metLacks         // why it leaves operations alone
	origins  pauses.Origins   // those that take no connections from this client: others may have another Transport
	passesBy pauses.Origins   // those of which a pass met only what it leaves alone
	aside    known.Aside      // operations that this client alone cannot send now
	wake     func()           // tells Run of this client that something may be due

	notifier persist.Notifier     // tells other processes; nil: the journal cannot
	late     persist.LateFinisher // the journal, if an answer may be given before its record says so; else nil

	loopRequest *http.Request // shared by all runs, and never changed
}

// shared is what the clients of one journal have in common in this process.
type shared struct {
	calls   *inflight.Table[*result]
	clock   *clock
	recipes known.Recipes // of the operations that a request without a key may repeat
	looks   known.Looks[lookAt, unresolvedNow]
	cleared known.Cleared[lookAt] // where no other process uses the journal
	notes   known.Notes           // what the journal does not say
	begins  known.Begins          // of all operations
	secrets secrets
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

// run is one run of the attempt loop over one record: one Do, or one record in one Resume. One goroutine uses it.
type run struct {
	*engine
	call        callers
	name        string // of the call, for errors
	rec         persist.Record
	prof        *profile.Profile
	credentials request.Credentials
	target      *url.URL     // where it is sent to
	created     bool         // this very call began the record
	askedAgain  bool         // it is confirmed, and asked again for an answer too large to keep
	otherFacts  bool         // the client's profile of that name and version states other facts than the record's
	resolved    bool         // its record says how it ended, and that its callers know
	freed       *known.Watch // over its key, which the run has freed
	fromResume  bool         // Resume or Run began this run, not a caller with the key
	// stopIfOriginDown: begun by Run; stop as soon as the origin takes no connections.
	stopIfOriginDown bool
	lanes            *lanes          // of a fair Run, which bound the sends; else nil
	admitted         bool            // it may send now, see admit
	stack            *[]byte         // gets the stack of a crash of its limiter; nil: it is of no use
	leaves           bool            // it may give its operation back while its limiter waits
	before           *persist.Record // as it was before a call; nil: that has begun it
	turn             *turn           // that its limiter has given, or for which it was left; nil: it is asked
	refused          error           // of the limiter, before the first attempt: no token is asked for

	started   time.Time // by this process's own clock
	schedule  *backoff.ExponentialBackOff
	sender    wire.Sender
	attempts  int
	sends     int
	begun     int  // sends of the attempt under way
	unreached bool // the latest attempt found no server that takes connections
	reached   bool // something was sent, if only a request for a token
	// inProgress counts the answers that said "still being processed".
	inProgress int
	firstSeen  bool // the loop already asked for the first attempt

	history     classify.History // what all attempts together prove
	doubtBefore bool             // an attempt before the last one may have had an effect
	last        wire.Result      // the answer that counts, and the latest error
	flawed      *persist.Answer  // the latest 2xx with a classify.Flaw, as far as it was kept; nil if there was none
	verdict     verdict
	hint        time.Duration // the wait that the latest answer asks for
	wait        time.Duration // before the next attempt
	next        time.Time     // when it is worth going on after a stop
	stop        error         // the limit or event that stopped the run; nil if the verdict itself ended it
	endWait     func() bool   // set while a wait is under way
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
		created: created, leaves: !op.rec.PlainHTTP && (!op.rec.Generated || op.rec.Business),
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
	if err := e.clock.sync(ctx, e.cfg); err != nil {
		return persist.Record{}, false, err
	}
	return e.beginRecord(ctx, e.intent(op))
}

// execute makes attempts until the verdict allows no further one, or a limit ends the run, and records the outcome.
// The lease of the record is renewed meanwhile.
func (r *run) execute() *result {
	r.leases.begin(&r.rec)
	defer r.leases.end(r.rec.ID)
	over := false
	defer func() { r.leave(over) }()
	if res := r.leaveLimited(); res != nil {
		over = true
		return res
	}
	r.loop()
	r.stopWaiting()
	_ = r.clock.notice(r.call.Values(), r.cfg) // where the journal cannot be asked, nothing can be recorded either
	res := r.end()
	over = true
	return res
}

// end records the outcome, or gives a confirmed answer before, and returns the result.
func (r *run) end() *result {
	d := ending{r}
	if d.answersFirst() {
		return d.answerFirst()
	}
	return d.finished(d.writeOutcome())
}

// finished tells that the run has come to its result, and returns that.
func (r *run) finished(res *result) *result {
	defer r.stillFree(res)
	res.notShared = res.err != nil && r.call.Draining().Err() != nil
	r.tell(EventFinished, func(e *Event) {
		e.Outcome, e.Err = r.known(), res.err
		if r.last.Answer != nil {
			e.Status = r.last.Answer.Head.StatusCode
		}
	})
	return res
}

// loop makes attempts until the verdict allows no further one, or a limit ends the run. The first is made directly:
// nearly every operation ends with it, and going through the loop for it would double what the client costs
// (docs/performance.md). What follows is go-retryablehttp's loop. Its hooks are below, in the order in which they run:
// inLoop is its transport, decide its CheckRetry, backoff its Backoff. The loop gets an empty response. So it cannot
// follow a redirect, drain or close an answer, replace an error, or reach the caller's connections. A wait ends when the
// call is given up.
func (r *run) loop() {
	r.started = time.Now()
	if r.target == nil {
		r.target, _ = request.URL(&r.rec)
	}
	r.sender = newSender(r.cfg, recordedRequest{r})
	r.attempt()
	if !r.verdict.again {
		return
	}
	loop := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: transportFunc(r.inLoop)}, CheckRetry: r.decide, Backoff: r.backoff,
		RetryMax: math.MaxInt32, ErrorHandler: retryablehttp.PassthroughErrorHandler, // the bounds are in decide
	}
	_, err := loop.Do(&retryablehttp.Request{Request: r.loopRequest.WithContext(r.call.Context())})
	if err != nil && r.stop == nil { // the wait was cut short; the verdict has not changed
		r.stop = r.stopCause()
	}
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
		r.attempt()
	}
	r.firstSeen = true
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: loop}, nil
}

// attempt checks that the retention window is open, sends, and judges what comes back. With Policy.AskFirst it first
// asks whether the operation took effect already.
func (r *run) attempt() {
	defer r.Dismiss()
	if !askFirst(r) || !haveToken(r) || !r.mayAttempt() {
		return
	}
	r.attempts++
	r.tell(EventAttempt, nil)
	began := time.Now()
	sent := r.send()
	v := r.classify(&sent)
	r.remember(began, sent)
	r.judge(v, sent)
	if errors.Is(sent.Err, errMaxAge) { // it waited too long to be sent
		r.stop = errMaxAge
		r.skipAttempt(expired())
	}
	r.tell(EventAnswered, func(e *Event) {
		e.Err, e.Outcome = sent.Err, r.known()
		if sent.Answer != nil {
			e.Status = sent.Answer.Head.StatusCode
		}
	})
}

// mayAttempt reports whether an attempt may begin now. If not, it has set the verdict.
func (r *run) mayAttempt() bool {
	unclear := r.clock.notice(r.call.Values(), r.cfg)
	if unclear == nil {
		unclear = r.checkLease(r.call.Values())
	}
	now := r.now()
	switch window := r.cfg.window(r.rec.FirstSent, now, r.window()); {
	case unclear != nil: // what time it is, or who has it
		r.stop = unclear
		r.skipAttempt(verdict{outcome: OutcomeUnknown})
	case r.tooLate(now):
		r.stop = errMaxAge
		r.skipAttempt(expired())
	case r.history.InDoubt() && !r.rec.Protected: // of an earlier process, or asked again for its answer
		r.skipAttempt(verdict{outcome: OutcomeUnknown, hold: persist.HoldNoKey})
	case window == windowOver && !operation.WindowOver(now.Sub(r.rec.FirstSent), r.window()): // for this client alone
		r.stop = errWindowHere
		r.skipAttempt(verdict{outcome: OutcomeUnknown})
	case window == windowOver:
		r.skipAttempt(expired())
	case window == windowBefore:
		r.stop, r.next = errClockBack, r.rec.FirstSent
		r.skipAttempt(verdict{outcome: OutcomeUnknown})
	default:
		return true
	}
	return false
}

// tooLate reports whether it is past SendBefore, of an operation that provably had no effect so far.
func (r *run) tooLate(now time.Time) bool {
	return !r.history.InDoubt() && expiredBeforeSend(&r.rec, now)
}

// checkLease returns an error if this client may no longer send the record. One that is final has no lease.
func (r *run) checkLease(ctx context.Context) error {
	if r.askedAgain {
		return nil
	}
	return r.leases.check(ctx, r.rec.ID)
}

// noteOrigin notes whether the attempt showed that the origin takes connections. If it does not, and stopIfOriginDown is
// set, this run stops.
func (r *run) noteOrigin(sent wire.Result) {
	r.unreached = false
	switch policy := &r.cfg.Retry; {
	case !sent.Unsent:
		r.reached = true
		r.passesBy.Reached(r.rec.Origin)
		if r.origins.Reached(r.rec.Origin) {
			r.wake()
		}
	case !sent.Fatal && r.call.Context().Err() == nil:
		r.unreached = true
		at := r.origins.Failed(r.rec.Origin, r.now(), policy.MinDelay, policy.MaxPause)
		if r.stopIfOriginDown {
			r.next, r.stop, r.verdict.again = at, errOriginDown, false
		}
	}
}

// decide reports whether another attempt follows, and sets r.wait, the wait before it. The verdict was made by judge;
// the arguments are not used.
func (r *run) decide(context.Context, *http.Response, error) (again bool, err error) {
	if !r.verdict.again {
		return false, nil
	}
	now := r.now()
	p := plan{
		policy: &r.cfg.Retry, now: now, started: now.Add(-time.Since(r.started)), deadline: deadlineBy(now, r.call.Deadline()),
		windowEnd: r.rec.FirstSent.Add(r.window() - r.cfg.margin(r.window())),
		attempts:  r.attempts, inProgress: r.inProgress, hint: r.hint,
	}
	if !r.rec.MaybeSent { // it still waits for its token
		p.windowEnd = r.rec.SendBefore
	}
	if r.schedule == nil {
		r.schedule = newSchedule(p.policy)
	}
	p.scheduled = clampDelay(r.schedule.NextBackOff(), r.prof.MinDelay, p.policy.MaxDelay)
	if r.history.InDoubt() {
		p.lastAsk = p.windowEnd.Add(-r.window() / 10)
	}
	r.wait, r.next, r.stop = p.next()
	if r.stop == nil {
		r.stop = r.stopCause()
	}
	if r.stop != nil {
		if r.next.IsZero() {
			r.next = now.Add(r.wait)
		}
		return false, nil
	}
	if !r.verdict.final && r.verdict.outcome != OutcomeRefused {
		r.last.Drain()
	} // final or refused: keep the answer, it may still be returned
	r.tell(EventWaiting, func(e *Event) { e.Wait = r.wait })
	draining := r.call.Draining() // it ends this wait, but not an attempt
	r.endWait = context.AfterFunc(draining, func() { r.call.GiveUp(context.Cause(draining)) })
	return true, nil
}

// stopWaiting removes the AfterFunc that decide set.
func (r *run) stopWaiting() {
	if r.endWait != nil {
		r.endWait()
		r.endWait = nil
	}
}

// backoff hands the loop the wait that decide chose.
func (r *run) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return r.wait }

// stopCause returns why the call was given up or is draining, nil if neither.
func (r *run) stopCause() error {
	if cause := context.Cause(r.call.Context()); cause != nil {
		return cause
	}
	return context.Cause(r.call.Draining())
}
