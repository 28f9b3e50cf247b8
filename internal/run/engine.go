package run

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/alike"
	"github.com/oncehttp/oncehttp/internal/authorized"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/owner"
	"github.com/oncehttp/oncehttp/internal/place"
	"github.com/oncehttp/oncehttp/persist"
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
	refused  refusedCredentials
	aside    known.Aside // operations not sendable now by this client alone

	wake       func()       // tells this client's Run that something may be due; never waits
	owes       func()       // tells this client's Run that a result may be owed; never waits
	delivering atomic.Int32 // the number of Runs with deliveries of results
	unowed     unowed       // ends without a result for OnResult
	found      foundNow     // objects by which operations are being settled

	notifier persist.Notifier     // tells other processes; nil: the journal cannot
	late     persist.LateFinisher // the journal, if an answer may be given before its record says so; else nil

	loopRequest *http.Request // shared by all runs, and never changed
}

// newEngine returns the engine of a client, the part that runs operations. common is shared by all clients of the process on one journal. The client
// has its Config, and its channels.
func newEngine(c *Client, common *shared) *engine {
	cfg, own, self, host := &c.cfg, c.cfg.Journal, uuid.NewString(), c.cfg.leaseHost()
	// All reads of the engine go through it: an erased record has its name for whoever asks by it.
	journal := erasedNames{own}
	leases, claims, journalShared := lease.New(host, common.clock, self)
	e := &engine{
		cfg: cfg, journal: journal, shared: common, host: host, now: common.clock.Now,
		holder:   holder{owner: self, leases: leases, claims: claims, clock: common.clock, journalShared: journalShared},
		owners:   owner.Owners{Journal: journal, Secrets: &common.secrets},
		places:   place.Places{Journal: journal},
		marks:    &toldMarks{journal, cfg},
		notifier: notifier(own), late: lateFinisher(own), loopRequest: newLoopRequest(),
		lacking: metLacks{met: make(chan struct{}, 1)},
		owes:    func() { tellOnce(c.owed) },
		wake:    func() { tellOnce(c.due) },
	}
	now := func() time.Time { return e.now() }                 // a test may replace it
	earliest := func() time.Time { return e.clock.Earliest() } // likewise
	e.results, e.doubts = &owedResults{journal, cfg, now}, &doubts{journal, &common.notes, earliest}
	e.refusals = &refusals{journal, &e.holder, e.owners}
	e.seats = &seats{cfg, e.places, e.owners}
	e.alike = &alike.Lookalikes{
		Journal: journal, Shared: journalShared, Known: &common.alike, Notes: &common.notes, Calls: common.calls,
		Reader: &cfg.reader, RandomKeys: cfg.randomKeys, Earliest: earliest, Recorded: e.recorded, Patience: cfg.Retry.patience(),
	}
	e.writer = &writer{
		cfg: cfg, journal: journal, holder: &e.holder, now: now, form: &common.form, notes: &common.notes, begins: &common.begins, doubts: e.doubts, alike: e.alike,
	}
	e.witness = &witness{cfg, journal, leases, common.calls, now, e.writer}
	e.unbegun = &unbegun{
		cfg: cfg, journal: journal, holder: &e.holder, calls: common.calls, notes: &common.notes, begins: &common.begins, earliest: earliest,
		recorded: e.recorded, owners: e.owners, places: e.places, alike: e.alike, marks: e.marks, refusals: e.refusals,
	}
	e.admission = &admission{cfg, journal, &e.holder, e.places, e.alike, e.unbegun, e.refusals}
	return e
}

// tellOnce sends a signal on a channel of one element, and never waits. While an earlier signal is there unread, it does nothing: one is enough.
func tellOnce(told chan<- struct{}) {
	select {
	case told <- struct{}{}:
	default:
	}
}

// shared is the state common to the clients of one journal in this process.
type shared struct {
	calls   *inflight.Table[*result] // under way, by operation: one for each, in this process
	clock   *lease.Clock             // the journal's, if others share it
	alike   alike.Known              // requests that may be in doubt, for calls without a key
	notes   known.Notes              // knowledge missing in the journal
	begins  known.Begins             // of all operations
	secrets owner.Secrets            // the journal's secret, once it was asked for
	results deliveries               // under way: no result is delivered twice at once
	crashes known.Crashes            // of runs awaited by a pass only
	form    form                     // of the records: the journal holds it once this process has begun one

	authorized authorized.Origins // the origins to which a client sends with Authorize
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

// do begins the operation of op and runs it. If a record of the operation exists, the record decides about the call instead (existing.resolve). do runs on the
// call's goroutine. An operation is given back while its limiter takes long (returns), except for plain HTTP and a key of one call. Its result is never nil,
// and is for all callers of the call. In errorOfBegin, true says that this call itself is in the table of running calls. If the journal refused the begin,
// nothing was sent, and the error says whether a record may exist all the same.
func (e *engine) do(call callers, name string, op *preparedRequest) *result {
	// The caller may leave, and read its own stopwatch meanwhile.
	took := op.took.copy()
	took.enter(&took.spent.Journal)
	// Before the begin: a record of it would be found, and sent, by others.
	res := e.admission.mayBegin(call.Values(), name, op)
	if res != nil {
		e.tellNotBegun(call, took, op, res.err)
		return res
	}
	rec, created, err := e.begin(call.Values(), op)
	if err == nil && intent.LeavesBegun(created, op.stood) {
		err := leaveBegun(call.Values(), e, name, &rec)
		e.tellNotBegun(call, took, op, err)
		return &result{err: err}
	}
	took.leave()
	r := newRun(e, call, name, took)
	if err != nil {
		// A journal that takes no write may still read: an answer that it has needs no more.
		if res := r.existing().keptAnswer(op); res != nil {
			return res
		}
		res := &result{err: e.unbegun.errorOfBegin(call.Values(), name, op, true, err)}
		e.tellNotBegun(call, took, op, res.err)
		return res
	}
	r.task.rec, r.task.prof, r.task.credentials, r.task.target = rec, op.prof, op.credentials, op.target
	r.task.given.Created, r.permit.returns = created, !op.rec.PlainHTTP && !op.rec.KeyOfOneCall()
	// The call may have left this operation before, for its limiter: its turn and its bounds go on.
	op.left.goesOn(r)
	if !created {
		// The beginner of the record may have left out other headers than this client.
		r.task.credentials = op.read.CredentialsFor(&rec)
		if res := r.existing().resolve(op); res != nil {
			if !res.elsewhere {
				r.report.tellOpened(res)
			}
			return res
		}
	}
	r.report.tellStep(EventBegun)
	return r.execute()
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

// leaveBegun forgets an operation that a call has just begun, since another one stands in its way (intent.LeavesBegun), unless an Enqueue has
// promised to send it meanwhile. It returns the error for the caller. If the journal fails, the checks before the first send still find the other
// one.
func leaveBegun(ctx context.Context, e *engine, name string, rec *persist.Record) error {
	_ = e.journal.Forget(ctx, *rec)
	return newError(name, unclear(rec.Key), errors.New("its record was forgotten while the call looked at another operation in its way; make the call again"), ErrInFlight)
}

// recorded waits until the records of the operations selected by pick have the answers that callers already have. Errors: the cause of ctx, and
// ErrInFlight if the wait would have no end (waitedInVain).
func (e *engine) recorded(ctx context.Context, pick func(persist.ID) bool) error {
	return e.shared.calls.Ended(ctx, e.cfg.Retry.patience(), pick)
}

// tellNotBegun tells Config.Observe of a call's error before it has a record. took and op are the call's; op is not changed. Visit notes that a function of the
// user works: a call of it that would wait for this one does not wait without an end.
func (e *engine) tellNotBegun(call callers, took *stopwatch, op *preparedRequest, err error) {
	if e.cfg.Observe == nil {
		return
	}
	work := call.Work()
	work.Visit()
	defer work.Return()
	e.cfg.observe(call.Values(), notBegun(op, call.Number(), took, err))
}
