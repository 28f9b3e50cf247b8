package run

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/alike"
	"github.com/oncehttp/oncehttp/internal/authorized"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/lanes"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/owner"
	"github.com/oncehttp/oncehttp/internal/place"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// engine runs operations for the calls of one client, Do's and Resume's alike: a recovered operation cannot behave differently
// from a fresh one. It is safe for concurrent use.
type engine struct {
	cfg     *Config
	journal persist.Journal
	shared  *shared
	now     func() time.Time // clock.Now
	holder
	host *lease.Host // the settings of the leases

	// The parts do one thing each, and know the ones before them only.
	owners    owner.Owners      // whose an operation is
	places    place.Places      // the records of one key
	marks     *toldMarks        // notes of what callers are told
	results   *owedResults      // deliveries to Config.OnResult
	doubts    *doubts           // what the journal does not show
	refusals  *refusals         // errors of calls on an operation
	seats     *seats            // the place of a new operation
	alike     *alike.Lookalikes // operations of the same request, of calls without a key
	writer    *writer           // writes of records
	witness   *witness          // writes of evidence
	unbegun   *unbegun          // errors of calls without a begun operation
	admission *admission        // may a call begin an operation

	alone    leftAlone     // groups with operations given back, since this client cannot serve them
	lacking  metLacks      // the reasons for leaving operations alone
	origins  known.Origins // not reached by this client; others may have another Transport
	passesBy known.Origins // with operations to leave alone only, by the latest look of a pass
	aside    known.Aside   // operations not sendable now by this client alone

	wake       func()        // tells this client's Run that something may be due; never waits
	owes       func()        // tells this client's Run that a result may be owed; never waits
	delivering atomic.Int32  // the number of Runs with deliveries of results
	unowed     unowed        // ends without a result for OnResult
	found      chan struct{} // holds one from the look at the other records until what Config.Reconcile found is written

	notifier persist.Notifier     // tells other processes; nil: the journal cannot
	late     persist.LateFinisher // the journal, if an answer may be given before its record says so; else nil

	loopRequest *http.Request // shared by all runs, and never changed
}

// newEngine returns the engine of a client. The client has its Config, and its channels.
func newEngine(c *Client, common *shared) *engine {
	cfg, own, self, host := &c.cfg, c.cfg.Journal, uuid.NewString(), c.cfg.leaseHost()
	journal := erasedNames{own}
	leases, journalShared := lease.New(host, common.clock, self)
	e := &engine{
		cfg: cfg, journal: journal, shared: common, host: host, now: common.clock.Now,
		holder:   holder{owner: self, leases: leases, clock: common.clock, journalShared: journalShared},
		owners:   owner.Owners{Journal: journal, Secrets: &common.secrets},
		places:   place.Places{Journal: journal},
		marks:    &toldMarks{journal, cfg},
		notifier: notifier(own), late: lateFinisher(own), loopRequest: newLoopRequest(),
		lacking: metLacks{met: make(chan struct{}, 1)}, found: make(chan struct{}, 1),
		owes: func() { tellOnce(c.owed) },
		wake: func() { tellOnce(c.due) },
	}
	now := func() time.Time { return e.now() } // a test may replace it
	e.results, e.doubts = &owedResults{journal, cfg, now}, &doubts{journal, &common.notes, now}
	e.refusals = &refusals{journal, &e.holder, e.owners}
	e.seats = &seats{cfg, e.places, e.owners}
	e.alike = &alike.Lookalikes{
		Journal: journal, Shared: journalShared, Known: &common.alike, Notes: &common.notes, Calls: common.calls,
		Reader: &cfg.reader, RandomKeys: cfg.randomKeys, Now: now, Recorded: e.recorded,
	}
	e.writer = &writer{
		cfg: cfg, journal: journal, holder: &e.holder, now: now, form: &common.form, notes: &common.notes, begins: &common.begins, doubts: e.doubts, alike: e.alike,
	}
	e.witness = &witness{cfg, journal, leases, common.calls, now, e.writer}
	e.unbegun = &unbegun{
		cfg: cfg, journal: journal, holder: &e.holder, calls: common.calls, notes: &common.notes, begins: &common.begins, now: now,
		recorded: e.recorded, owners: e.owners, places: e.places, alike: e.alike, marks: e.marks, refusals: e.refusals,
	}
	e.admission = &admission{cfg, journal, &e.holder, e.places, e.alike, e.unbegun, e.refusals}
	return e
}

// tellOnce sends on a channel of one element, unless it was told already. It never waits.
func tellOnce(told chan<- struct{}) {
	select {
	case told <- struct{}{}:
	default:
	}
}

// shared is the state common to the clients of one journal in this process.
type shared struct {
	calls   *inflight.Table[*result]
	clock   *lease.Clock
	alike   alike.Known
	notes   known.Notes  // knowledge missing in the journal
	begins  known.Begins // of all operations
	secrets owner.Secrets
	results deliveries
	crashes known.Crashes // of runs awaited by a pass only
	form    form

	authorized authorized.Origins
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
	took        *stopwatch      // the run's time, by its parts
	call        callers
	name        string              // of the call, for errors
	rec         persist.Record      // as last read or written, with the attempts of this run added
	prof        *profile.Profile    // the record's; nil until it is looked up, or if none is known
	credentials request.Credentials // of the caller's request; empty in a pass
	target      *url.URL            // the URL to send to

	given    operation.Given // the drive's knowledge at its beginning
	drive    operation.Drive
	owed     uint64       // result.owed; zero: nothing is owed
	handed   *handover    // result.handed; nil: no caller has the answer before its record
	lost     bool         // Config.Observe knows of the loss of the lease
	resolved bool         // the record says that the operation has ended, and that its callers know the end
	watched  *known.Watch // over the key forgotten by this run; nil: the run forgot none

	fair     bool            // a fair Run has claimed the operation
	turns    lanes.Turns     // they bound the sends at the same time
	admitted bool            // Admit has returned nil, and Dismiss has not followed yet
	stack    *[]byte         // gets the stack of a crash of the limiter; nil: the stack is not kept
	leaves   bool            // in Admit: a long wait for the limiter ends with errLimited
	returns  bool            // leaves may be set: the run is of a pass, or of a call with a key and without plain HTTP
	before   *persist.Record // the record before adopt marked it; nil: adopt wrote no mark, or returns is false
	ahead    int             // further requests already let out by the limiter
	turn     *turn           // the next answer of the limiter, from an earlier wait; nil: the limiter is asked anew
	refused  error           // of the limiter before the first attempt; then no token is fetched

	started   time.Time                   // of the call's first drive, by this process's own clock
	schedule  *backoff.ExponentialBackOff // nil before the first wait
	sender    wire.Sender                 // set by loop
	signed    *http.Request               // the last one of the attempt, with credentials of Config.Authorize; nil: it has none of them
	begun     int                         // sends of the current request, redirects included
	moreSends int                         // sends since the last result given to the drive
	firstSeen bool                        // inLoop was called
	endWait   func() bool                 // removes the AfterFunc of a wait; nil: there is no wait
	endSpan   func(*Event)                // of Config.Instrument; nil: it has none, or was called
	latest    *Event                      // of the run; nil: there was none
	oneWire   bool                        // keyTaken has found no other operation with the key on the wire
	token     string                      // the server's, fetched or kept from an earlier run; empty: none

	answers int             // so far; the drive names each by its number, from 1
	own     heard           // the latest attempt's own, or the lookup's before one
	last    heard           // the counting answer, and the latest error
	flawed  *persist.Answer // the latest 2xx with a classify.Flaw, as far as it was kept; nil if there was none
	failed  error           // of the latest failed step
	gaveUp  error           // the reason for no further attempt, as in stopCause; errLimited if the limiter takes long
}

// do begins the operation of op and runs it. If a record of the operation exists, the record decides about the
// call instead (existing.resolve). do runs on the call's goroutine. Its result is never nil, and is for all
// callers of the call. If the journal refused the begin, nothing was sent, and the error says whether a record may
// exist all the same.
func (e *engine) do(call callers, name string, op *preparedRequest) *result {
	took := op.took.copy()
	took.enter(&took.spent.Journal)
	res := e.admission.mayBegin(call.Values(), name, op)
	if res != nil {
		e.tellNotBegun(call, took, op, res.err)
		return res
	}
	rec, created, err := e.begin(call.Values(), op)
	took.leave()
	r := e.newRun(call, name, took)
	if err != nil {
		if res := (existing{r}).keptAnswer(op); res != nil {
			return res
		}
		res := &result{err: e.unbegun.errorOfBegin(call.Values(), name, op, true, err)}
		e.tellNotBegun(call, took, op, res.err)
		return res
	}
	r.rec, r.prof, r.credentials, r.target = rec, op.prof, op.credentials, op.target
	r.given.Created, r.returns = created, !op.rec.PlainHTTP && !op.rec.KeyOfOneCall()
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

// newRun returns a run for a call of this name. The run has no record, profile or credentials yet; the caller sets
// them before adopt or execute. took becomes the run's own stopwatch.
func (e *engine) newRun(call callers, name string, took *stopwatch) *run {
	return &run{engine: e, journal: took.timed(e.journal), took: took, call: call, name: name, turns: lanes.Free{}}
}

// begin begins the operation, stamped by the journal's clock. If a record exists, begin returns it unchanged, and
// created is false. If created is true, the record is leased to this client on a shared journal. After an error
// nothing may be sent; errorOfBegin decides whether a record may exist all the same.
func (e *engine) begin(ctx context.Context, op *preparedRequest) (rec persist.Record, created bool, err error) {
	if err := e.clock.Sync(ctx, e.host); err != nil {
		return persist.Record{}, false, err
	}
	return e.writer.begin(ctx, e.writer.intent(op))
}

// execute makes attempts until the drive allows no further one, or a limit ends the run, and records the outcome.
// The record must say before that it may be sent (begin or adopt), and on a shared journal its lease must be this
// client's. execute renews the lease until the last write, which gives it up; if that write fails, the lease ends
// by itself. A result with left set has no outcome: the operation was given back, and its call waits for the
// limiter.
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
	case r.turn == nil:
	case r.gaveUp == errLimited && (r.given.Pass || res.left != nil): // it goes on after the turn
		r.turn.leaveToken(r)
	default: // the run is over, and takes no turn
		r.turn.stop(errLimited)
	}
	over = true
	return res
}

// end records the outcome and returns the result. If the journal may write late, the waiting callers have a
// confirmed answer before its record. If the write of a confirmed answer fails, the engine notes it, so that Flush
// can tell of it.
func (r *run) end() *result {
	d := ending{r}
	if d.answersFirst() {
		return d.answerFirst()
	}
	err := d.conclude(d.journal.Finish)
	res := d.result()
	if d.drive.Writing() == operation.EndConfirmed && res.err == nil {
		d.engine.doubts.answered(&d.rec, err)
	}
	return d.finished(res)
}

// finished tells Config.Observe and the log of the end of the run, and returns res. It sets res.notShared if the
// run ended in an error while its client drains: joined callers of other clients start again then.
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

// op returns the operation as its record says. Without a known profile, the window has no lower bound.
func (r *run) op() operation.Op {
	if r.prof == nil {
		return operation.OpOf(&r.rec, 0)
	}
	return operation.OpOf(&r.rec, r.prof.Window.Floor)
}

// givenNow returns the facts for a new drive: those of the call, of the Config and of the profile. r.prof must be
// set.
func (r *run) givenNow() operation.Given {
	g := r.given
	g.AskFirst = (r.cfg.Retry.AskFirst || r.rec.AskFirst) && len(r.prof.Duplicate) > 0
	g.OwnKey = r.rec.KeyOfOneCall() && r.cfg.randomKeys
	g.Late, g.LeastDelay = r.late != nil, r.prof.MinDelay
	return g
}
