package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// Resume implements oncehttp.Client.Resume: it makes one pass over the operations that are due, and yields their results.
func (c *Client) Resume(ctx context.Context) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		if err := checkPass(ctx, c, "resume"); err != nil {
			yield(Result{}, err)
			return
		}
		if !c.visits.enter("Resume") {
			yield(Result{}, fmt.Errorf("oncehttp: resume: %w", ErrClosed))
			return
		}
		defer c.visits.leave("Resume")
		yield = loopBody(c.visits, "Resume", yield)
		if inflight.From(ctx).Passes() { // another pass goes through the same operations, and waits for this function
			yield(Result{}, notWaited("resume", inflight.ErrCircle))
			return
		}
		// The end of ctx also ends the attempts on the wire: the caller of Resume is told of each operation.
		p := newPass(ctx, ctx, c, false)
		defer p.end()
		for r := range p.results {
			if !yield(r.result, r.err) {
				return
			}
		}
	}
}

// passVisit is the name of an operation run by Resume or Run, for Close.
const passVisit = "an operation of Resume or Run"

// resumption runs single operations for the workers of a pass. It is safe for concurrent use.
type resumption struct {
	pass *pass
	runs goroutines // each runs an operation
}

// resume runs one operation of a pass. If the pass ends after other callers have joined the run, the run goes on for them. t is a wait for its
// limiter that is over; nil: the limiter is asked. After a crash, of the run or of the journal, the other result is empty. If a call of this process
// has the operation, the pass leaves it to that call. Without a run a claimed operation is given back, or its lease dropped.
func (s *resumption) resume(listed *persist.Record, t *turn) (drove, *crash) {
	p := s.pass
	if listed.State == persist.StatePending && t == nil { // claimed, if there are leases; a held record was only listed
		defer p.c.engine.claims.Drop(listed.ID)
	}
	// Its last run has crashed. It is tried again after a pause, or by another process.
	if !restsUntil(p.c.engine, listed.ID).IsZero() {
		return drove{}, apart(func() { s.giveBackResting(listed) })
	}
	if p.c.draining.Err() != nil {
		return drove{}, s.notResumed(listed, func() time.Time { return time.Time{} })
	}
	// A Do with the key that comes now joins this run, and gets its answer.
	caller, arrival := p.c.engine.shared.calls.Enter(inflight.Entry{
		Record: listed, Context: p.ctx, Draining: p.draining, Client: p.c, Patience: p.c.cfg.Retry.patience(), InDoubt: true,
	}, nil)
	if arrival != inflight.Started {
		again := p.again
		if p.lanes != nil && !p.c.engine.leases.Runs(listed.ID) { // the run under way has written its last: it ends soon
			again = func() time.Time { return p.c.engine.now().Add(endingPause) }
		}
		return drove{}, s.notResumed(listed, again)
	}
	defer caller.Done()
	// On another goroutine, so that the end of the pass can leave it.
	ran := s.start(caller.Call(), listed, t)
	if err := caller.Await(); err != nil {
		return drove{over: true, resumed: resumed{Result{Key: listed.Key}, left("resume", listed.Key, caller, err)}}, nil
	}
	switch {
	case ran.stack != nil:
		return drove{}, crashOf(caller.Call(), ran.stack)
	case ran.result == nil: // the call before has not ended, and still has it
		return drove{}, s.notResumed(listed, p.again)
	}
	return s.drove(listed, ran), nil
}

// passRun is one operation's run in a pass. Its fields are set when the run has ended; the call's Await waits
// for that.
type passRun struct {
	result *result // nil: there was no run
	took   bool    // as for run
	stack  []byte  // of a crash; nil: there was none
}

// start runs a record on a goroutine of its own: a Goexit ends it. It does not wait. Touched makes the mark of a claim void; a record just claimed by this pass
// (it has lanes then) keeps it. Close waits for the run as for an operation of the pass.
func (s *resumption) start(call *inflight.Call[*result], listed *persist.Record, t *turn) *passRun {
	p := s.pass
	ran := &passRun{}
	// The pass has entered, so that the client is not over.
	p.c.visits.stay(passVisit)
	s.runs.start(func() {
		defer p.c.visits.leave(passVisit)
		call.Run(withStack(&ran.stack, func() *result {
			if claimed := p.lanes != nil && listed.State == persist.StatePending; !claimed {
				p.c.engine.claims.Touched(listed.ID)
				defer p.c.engine.claims.Touched(listed.ID)
			}
			ran.result, ran.took = s.run(call, listed, t, &ran.stack)
			return ran.result
		}), crashed("resume", listed.Key, call))
	})
	return ran
}

// drove returns the outcome of a run without a crash. An error is a copy for this pass. A Run (silent) needs no result beside an error. If the run waits for
// its limiter, the outcome has the wait (turn), and the caller goes on with it or stops it.
func (s *resumption) drove(listed *persist.Record, ran *passRun) drove {
	res := ran.result
	d := drove{over: ran.took, turn: res.turn}
	switch {
	case res.err != nil:
		d.resumed = resumed{Result{Key: listed.Key}, own(res.err, "resume", false)}
	case res.turn != nil:
		d.over = false
	case ran.took && !s.pass.silent:
		d.resumed.result = res.answer.resultWithAnswer(&s.pass.c.cfg, listed)
	}
	return d
}

// notResumed gives up the lease of an operation that the pass does not run; again returns the time at which it is due again. Journal code
// may panic: that crash is returned, nil if there was none.
func (s *resumption) notResumed(listed *persist.Record, again func() time.Time) *crash {
	return apart(func() { s.pass.c.engine.writer.giveBack(s.pass.ctx, *listed, again()) })
}

// giveBackResting gives back an operation that this client leaves alone for now, after a crash of its run, unchanged. A Run with shares for each origin (lanes)
// then claims nothing of its origin for a moment, so as not to meet it again at once.
func (s *resumption) giveBackResting(rec *persist.Record) {
	p := s.pass
	e := p.c.engine
	if p.lanes == nil {
		e.writer.giveBack(p.ctx, *rec, p.again())
		return
	}
	// As if the origin had failed, for a second: the lane then claims others.
	e.passesBy.Failed(rec.Origin, e.now(), endingPause, e.pollEvery())
	e.writer.giveBack(p.ctx, *rec, time.Time{})
}

// resultWithAnswer returns the Result of a resumed operation, with a copy of its answer as it is recorded.
func (a *answer) resultWithAnswer(cfg *Config, rec *persist.Record) Result {
	result := a.result
	if a.status == 0 { // settled by Config.Reconcile, without an answer
		return result
	}
	result.Answer = &persist.Answer{
		Status: a.status, Header: a.header.Clone(), Body: slices.Clone(a.body), BodyDropped: a.partial,
		AlreadyDone: result.AlreadyDone, Replayed: result.Source == SourceReplay, Dropped: slices.Clone(result.Dropped),
	}
	// What Resume yields is what a later call finds in the journal.
	cfg.keepAnswer(rec, result.Answer)
	result.Dropped = slices.Clone(result.Answer.Dropped)
	return result
}

// run runs one operation of the pass. It reads the record again, because of possible changes after the listing.
// took is false if there was nothing to do. If the pass cannot go on with the operation, Config.Observe gets an
// EventBlocked.
func (s *resumption) run(call callers, listed *persist.Record, t *turn, stack *[]byte) (res *result, took bool) {
	res, took, ran := s.resolve(call, listed, t, stack)
	if took && !ran && res.err != nil {
		// Observe is a function of the user: whoever waits for this run sees that it works.
		work := call.Work()
		work.Visit()
		blocked(call.Values(), &s.pass.c.cfg, listed, res.err) // it returns, also if Observe crashes
		work.Return()
	}
	res.notShared = res.notShared || !ran
	return res, took
}

// resolve chooses the action for one operation of the pass, and does it: it sends the operation, asks Config.Reconcile, or gives it back. res is never nil; it holds
// the outcome, or the reason why the operation cannot go on. t is a wait for the limiter that is over; nil: none. stack gets the stack of a crash of the limiter.
// p.lanes is set in a Run with shares for each origin. took is false if there was nothing to do; ran is true if the attempt loop ran.
func (s *resumption) resolve(call callers, listed *persist.Record, t *turn, stack *[]byte) (res *result, took, ran bool) {
	p := s.pass
	const name = "resume"
	e := p.c.engine
	r := newRun(e, call, name, newStopwatch(e.cfg))
	r.task.given.Pass, r.task.given.StopIfDown = true, p.silent
	r.permit.fair, r.permit.turns, r.permit.turn, r.permit.leaves, r.permit.returns, r.permit.stack = p.lanes != nil, p.turns(), t, true, true, stack
	rec := &r.task.rec
	err := s.current(call.Values(), listed, rec)
	// A token that was fetched before the wait for the limiter is not asked for again.
	r.tokens.token = t.tokenLeft(rec)
	switch {
	case isOver(rec, err):
		return &result{}, false, false
	case err != nil:
		return &result{err: journalError(name, listed, err)}, true, false
	case p.lanes != nil && listed.State != rec.State: // no more held: it is claimed like any other
		return &result{}, false, false
	}
	op := r.task.op()
	prospect := operation.ProspectOf(&op, e.now())
	// It was claimed a moment too early, or somebody acts on it.
	if prospect == operation.WaitsForTime || prospect == operation.WaitsForWord {
		e.writer.giveBack(call.Values(), *rec, time.Time{})
		return &result{}, false, false
	}
	if err := e.cfg.authorized.Look(call.Values()); err != nil {
		return &result{err: journalError(name, listed, err)}, true, false
	}
	r.task.prof = e.profileOf(call, rec)
	if lack := e.lacks(call, rec, r.task.prof, acts.AskingOfPass(rec.State).Brought); lack.Need != acts.Nothing {
		return s.unserved(r, lack), !p.silent, false
	}
	// The group was left alone for a need that is met now.
	e.alone.served(rec)
	if prospect == operation.WaitsForTruth {
		res, took = reconcile(r)
		return res, took, false
	}
	return s.goOn(r, listed)
}

// goOn takes over a due operation, and runs it. The results are those of resolve. In a Run with shares for each origin (lanes), or with a limiter, it first
// waits for the permission to send to the origin (turn). Without it, the operation is left as it was, since nothing was sent.
func (s *resumption) goOn(r *run, listed *persist.Record) (res *result, took, ran bool) {
	if res := r.existing().adopt(); res != nil {
		// Then there is nothing to tell: the other one has it.
		faster := errors.Is(res.err, persist.ErrStale) || errors.Is(res.err, persist.ErrNotFound) // another call or process
		s.refused(r, res, faster)
		return res, !faster, false
	}
	r.task.engine.leases.Begin(&r.task.rec) // already: it may wait for long
	defer r.task.engine.leases.End(r.task.rec.ID)
	if (s.pass.lanes != nil || s.pass.c.cfg.Limiter != nil) && !r.permit.mayBegin() {
		r.letGo(listed)
		return &result{turn: r.permit.turn}, false, false
	}
	res = r.execute()
	if r.replies.gaveUp == errLimited {
		res.turn = r.permit.turn
	}
	return res, true, true
}

// unserved gives back an operation that this client cannot act on, unchanged, and returns an error about the lack. A pass that lists or claims without shares
// (no lanes) does not meet it again. Other operations of the same account, origin and needs are left alone for a while.
func (s *resumption) unserved(r *run, lack acts.Lack) *result {
	p := s.pass
	again := time.Time{}
	if p.lanes == nil {
		again = p.again() // so as not to meet it again in this pass
	}
	r.task.engine.writer.giveBack(r.task.call.Values(), r.task.rec, again)
	if r.task.rec.State == persist.StatePending {
		// Its other operations would be claimed and given back one by one.
		p.c.engine.alone.note(group{r.task.rec.Origin, r.task.rec.Needs().String()}, 1)
		p.c.engine.alone.note(group{origin: r.task.rec.Origin}, 1) // in case the journal does not tell needs
		p.c.engine.lacking.meet(lack)
	}
	return r.task.engine.refusals.refuse(r.task.call.Values(), r.task.name, &r.task.rec, operation.Same, lack.Err(), ErrConfig)
}

// refused gives an operation back to the journal, since this pass could not take it over. It is due again at pass.again. If the write failed (unwritten), it
// stays due as before, and a short pause follows; with faster (another call or process has the operation) there is no pause. If the journal did not answer, the
// operation is free when its lease has ended.
func (s *resumption) refused(r *run, res *result, faster bool) {
	again := time.Time{}
	switch {
	case errors.Is(res.err, persist.ErrUncertain):
		return
	case !res.unwritten:
		again = s.pass.again()
	case !faster:
		_ = pause(s.pass.draining, failedPauseMin) // else it is told to stop
	}
	r.task.engine.writer.giveBack(r.task.call.Values(), r.task.rec, again)
}

// isOver reports whether a record needs nothing more: it has ended, or is not there. err is the error of its
// read.
func isOver(rec *persist.Record, err error) bool {
	return errors.Is(err, persist.ErrNotFound) || err == nil && rec.State.Final()
}

// current reads the listed record again into rec, since it may have changed. A record that a Run with shares for each origin (lanes) has just claimed is not
// read again: if another process has changed it since, the change that takes it over (adopt) fails.
func (s *resumption) current(ctx context.Context, listed, rec *persist.Record) (err error) {
	// The claim has returned the record as it was written.
	if s.pass.lanes != nil && listed.State == persist.StatePending {
		*rec = *listed
		return nil
	}
	*rec, err = s.pass.c.engine.journal.Get(ctx, listed.ID)
	return err
}

// reconcile calls Config.Reconcile for a held operation, and settles the operation if Reconcile knows the effect. The result then has the answer that Reconcile
// gave; in any other case it is an error, and the operation stays held. No caller is told of the end (false): a generated key may make it unreported. took is
// false if Reconcile is nil: then nothing is done.
func reconcile(r *run) (res *result, took bool) {
	if r.task.cfg.Reconcile == nil {
		return &result{}, false
	}
	refuse := func(cause error) *result {
		return r.task.engine.refusals.refuse(r.task.call.Values(), r.task.name, &r.task.rec, operation.Same, cause, ErrHeld)
	}
	var said Resolution
	err := r.task.visiting(func() (err error) {
		said, err = r.task.cfg.Reconcile(withAccountOf(r.task.call.Context(), &r.task.rec), r.task.rec.Clone())
		return err
	})
	switch {
	case err != nil:
		return refuse(sanitized(err)), true
	case said.Effect == persist.EffectUnknown:
		return refuse(nil), true
	}
	if err := said.check(r.task.cfg); err != nil {
		return refuse(fmt.Errorf("from Reconcile: %w", err)), true
	}
	ending, op := r.task.engine.holder.endingOf(&r.task.rec, said.Effect == persist.EffectAbsent), r.task.op()
	ending.Happened = said.Effect == persist.EffectHappened
	switch ending.MayEnd(&op) {
	case acts.MayAct:
	case acts.IsWitnessed:
		return refuse(provenBy(&r.task.rec)), true
	case acts.IsSending:
		return refuse(stillSending(&op, ending)), true
	default:
		return refuse(lease.ErrElsewhere), true
	}
	r.task.rec.Unreported = acts.SettlesUnreported(&op, said.Effect, false)
	switch said, err = settleFound(&r.task, said); {
	case errors.Is(err, errAnswersAnother), errors.Is(err, errMayAnswerAnother):
		return refuse(err), true
	case err != nil: // the record may be final all the same
		return &result{err: journalError(r.task.name, &r.task.rec, err)}, true
	}
	a := &answer{result: r.task.resultWith(OutcomeConfirmed, SourceJournal)}
	a.result.Effect = said.Effect
	if said.Effect == persist.EffectAbsent {
		a.result.Outcome = OutcomeNotSent
	}
	if said.Answer != nil {
		a.status, a.header, a.body = said.Answer.Status, said.Answer.Header, said.Answer.Body
	}
	if r.report.heard() {
		e := r.report.event(EventFinished)
		e.Outcome, e.Status, e.Rule = a.result.Outcome, a.status, ruleOfPeople
		r.report.tell(e)
	}
	return &result{answer: a}, true
}
