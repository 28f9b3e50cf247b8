package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// Resume is oncehttp.Client.Resume.
func (c *Client) Resume(ctx context.Context) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		if err := c.checkPass(ctx, "resume"); err != nil {
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

// resume runs one record. If the pass's context ends after others have joined the run, the run goes on for them. t is the turn given
// by its limiter for it; nil: the limiter is asked. After a crash, of the run or of the journal, the other result is empty.
func (p *pass) resume(listed *persist.Record, t *turn) (drove, *crash) {
	if listed.State == persist.StatePending && t == nil { // claimed, if there are leases; a held record was only listed
		defer p.c.engine.leases.Drop(listed.ID)
	}
	if p.c.engine.resting(listed.ID) {
		return drove{}, apart(func() { p.giveBackResting(listed) })
	}
	if p.c.draining.Err() != nil {
		return drove{}, p.notResumed(listed, func() time.Time { return time.Time{} })
	}
	caller, arrival := p.c.engine.shared.calls.Enter(inflight.Entry{
		Record: listed, Context: p.ctx, Draining: p.draining, Client: p.c, Patience: p.c.cfg.patience(), InDoubt: true,
	}, nil)
	if arrival != inflight.Started {
		again := p.again
		if p.lanes != nil && !p.c.engine.leases.Runs(listed.ID) { // the run under way has written its last: it ends soon
			again = func() time.Time { return p.c.engine.now().Add(endingPause) }
		}
		return drove{}, p.notResumed(listed, again)
	}
	defer caller.Done()
	ran := p.start(caller.Call(), listed, t)
	if err := caller.Await(); err != nil {
		return drove{over: true, resumed: resumed{Result{Key: listed.Key}, left("resume", listed.Key, caller, err)}}, nil
	}
	switch {
	case ran.stack != nil:
		return drove{}, crashOf(caller.Call(), ran.stack)
	case ran.result == nil: // the call before has not ended, and still has it
		return drove{}, p.notResumed(listed, p.again)
	}
	return p.drove(listed, ran), nil
}

// passRun is one operation's run in a pass. Its fields are set when the run has ended; the call's Await waits for that.
type passRun struct {
	result *result // nil: there was no run
	took   bool    // as for run
	stack  []byte  // of a crash; nil: there was none
}

// start runs a record on a goroutine of its own: a Goexit ends it.
func (p *pass) start(call *inflight.Call[*result], listed *persist.Record, t *turn) *passRun {
	ran := &passRun{}
	p.c.visits.stay(passVisit)
	p.runs.start(func() {
		defer p.c.visits.leave(passVisit)
		call.Run(withStack(&ran.stack, func() *result {
			if claimed := p.lanes != nil && listed.State == persist.StatePending; !claimed {
				p.c.engine.leases.Touched(listed.ID)
				defer p.c.engine.leases.Touched(listed.ID)
			}
			ran.result, ran.took = p.run(call, listed, t, &ran.stack)
			return ran.result
		}), crashed("resume", listed.Key, call))
	})
	return ran
}

// drove returns the outcome of a run without a crash.
func (p *pass) drove(listed *persist.Record, ran *passRun) drove {
	res := ran.result
	d := drove{over: ran.took, turn: res.turn}
	switch {
	case res.err != nil:
		d.resumed = resumed{Result{Key: listed.Key}, own(res.err, "resume", false)}
	case res.turn != nil:
		d.over = false
	case ran.took && !p.silent:
		d.resumed.result = res.answer.resultWithAnswer(&p.c.cfg, listed)
	}
	return d
}

// notResumed gives back an operation without a run, due again at the time returned by again. It returns the crash of the journal, if there
// was one.
func (p *pass) notResumed(listed *persist.Record, again func() time.Time) *crash {
	return apart(func() { p.c.engine.writer.giveBack(p.ctx, *listed, again()) })
}

// giveBackResting gives back an operation left alone by this client for now, unchanged. A pass without an end claims nothing of its
// origin for a moment, so as not to meet it again at once.
func (p *pass) giveBackResting(rec *persist.Record) {
	e := p.c.engine
	if p.lanes == nil {
		e.writer.giveBack(p.ctx, *rec, p.again())
		return
	}
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
	cfg.keepAnswer(rec, result.Answer)
	result.Dropped = slices.Clone(result.Answer.Dropped)
	return result
}

// run runs one operation of the pass. It reads the record again, because of possible changes after the listing. took is
// false if there was nothing to do. If the pass cannot go on with the operation, Config.Observe gets an EventBlocked.
func (p *pass) run(call callers, listed *persist.Record, t *turn, stack *[]byte) (res *result, took bool) {
	res, took, ran := p.resolve(call, listed, t, stack)
	if took && !ran && res.err != nil {
		work := call.Work()
		work.Visit()
		p.c.cfg.blocked(call.Values(), listed, res.err) // it returns, also if Observe crashes
		work.Return()
	}
	res.notShared = res.notShared || !ran
	return res, took
}

// resolve chooses the action for one operation of the pass, and does it. took is as for run; ran is true if the
// attempt loop ran.
func (p *pass) resolve(call callers, listed *persist.Record, t *turn, stack *[]byte) (res *result, took, ran bool) {
	const name = "resume"
	e := p.c.engine
	r := e.newRun(call, name, e.cfg.stopwatch())
	r.given.Pass, r.given.StopIfDown = true, p.silent
	r.fair, r.turns, r.turn, r.leaves, r.returns, r.stack = p.lanes != nil, p.turns(), t, true, true, stack
	rec := &r.rec
	err := p.current(call.Values(), listed, rec)
	r.token = t.tokenLeft(rec)
	switch {
	case isOver(rec, err):
		return &result{}, false, false
	case err != nil:
		return &result{err: journalError(name, listed, err)}, true, false
	case p.lanes != nil && listed.State != rec.State: // no more held: it is claimed like any other
		return &result{}, false, false
	}
	op := r.op()
	prospect := op.Prospect(e.now())
	if prospect == operation.WaitsForTime || prospect == operation.WaitsForWord {
		e.writer.giveBack(call.Values(), *rec, time.Time{})
		return &result{}, false, false
	}
	if err := e.cfg.authorized.Look(call.Values()); err != nil {
		return &result{err: journalError(name, listed, err)}, true, false
	}
	r.prof = e.profileOf(call, rec)
	if lack := e.lacks(call, rec, r.prof, operation.AskingOfPass(rec.State).Brought); lack.Need != operation.Nothing {
		return p.unserved(r, lack), !p.silent, false
	}
	e.alone.served(rec)
	if prospect == operation.WaitsForTruth {
		res, took = reconcile(r)
		return res, took, false
	}
	return p.goOn(r, listed)
}

// goOn takes an operation that is due, and runs it. The results are those of resolve.
func (p *pass) goOn(r *run, listed *persist.Record) (res *result, took, ran bool) {
	if res := (existing{r}).adopt(); res != nil {
		faster := errors.Is(res.err, persist.ErrStale) || errors.Is(res.err, persist.ErrNotFound) // another call or process
		p.refused(r, res, faster)
		return res, !faster, false
	}
	r.leases.Begin(&r.rec) // already: it may wait for long
	defer r.leases.End(r.rec.ID)
	if (p.lanes != nil || p.c.cfg.Limiter != nil) && !r.mayBegin() {
		r.letGo(listed)
		return &result{turn: r.turn}, false, false
	}
	res = r.execute()
	if r.gaveUp == errLimited {
		res.turn = r.turn
	}
	return res, true, true
}

// unserved gives back an operation not served by this client, unchanged, and returns an error about the lack.
func (p *pass) unserved(r *run, lack operation.Lack) *result {
	again := time.Time{}
	if p.lanes == nil {
		again = p.again() // so as not to meet it again in this pass
	}
	r.writer.giveBack(r.call.Values(), r.rec, again)
	if r.rec.State == persist.StatePending {
		p.c.engine.alone.note(group{r.rec.Origin, r.rec.Needs().String()}, 1)
		p.c.engine.alone.note(group{origin: r.rec.Origin}, 1) // in case the journal does not tell needs
		p.c.engine.lacking.meet(lack)
	}
	return r.refusals.refuse(r.call.Values(), r.name, &r.rec, operation.Same, lack.Err(), ErrConfig)
}

// refused gives back an operation after its adoption failed. If the journal failed, as without a connection, the operation stays due as
// before, but is not claimed again for a moment. If the journal did not answer, the operation is free when its lease has ended.
func (p *pass) refused(r *run, res *result, faster bool) {
	again := time.Time{}
	switch {
	case errors.Is(res.err, persist.ErrUncertain):
		return
	case !res.unwritten:
		again = p.again()
	case !faster:
		_ = pause(p.draining, failedPauseMin) // else it is told to stop
	}
	r.writer.giveBack(r.call.Values(), r.rec, again)
}

// isOver reports whether a record needs nothing more: it has ended, or is not there. err is the error of its read.
func isOver(rec *persist.Record, err error) bool {
	return errors.Is(err, persist.ErrNotFound) || err == nil && rec.State.Final()
}

// letGo gives back an operation adopted and not sent, as it was before.
func (r *run) letGo(listed *persist.Record) {
	r.Dismiss()
	ctx := r.call.Values()
	err := ending{r}.lastChange(ctx, &r.rec, func() error {
		rec := r.givenBack(*listed)
		if !r.engine.journalShared {
			_, err := r.journal.Update(ctx, rec)
			return err
		}
		return r.writer.release(ctx, rec, time.Time{})
	})
	r.writer.logUnreleased(ctx, &r.rec, err)
}

// mayBegin waits for the turn of a run in a fair Run. It returns false if the pass was broken off, or others have found
// meanwhile that the origin takes no connections, unless this run is the one that tries it again. A limiter that
// returns an error is asked again by the first send, which then says so; where a token is needed first, that is not asked for.
func (r *run) mayBegin() bool {
	err := r.Admit(r.call.Context(), false)
	if r.leaves = false; err != nil {
		r.refused = err
		return r.stopCause() == nil && err != errLimited
	}
	return !r.fair || r.origins.Open(r.rec.Origin, r.rec.ID)
}

// current sets rec to the listed record as it stands now. A record claimed by a fair Run needs no second look: if another process has changed
// it since, adopt's change of it fails as stale.
func (p *pass) current(ctx context.Context, listed, rec *persist.Record) (err error) {
	if p.lanes != nil && listed.State == persist.StatePending {
		*rec = *listed
		return nil
	}
	*rec, err = p.c.engine.journal.Get(ctx, listed.ID)
	return err
}

// reconcile asks Config.Reconcile about a held operation, and settles it if Reconcile knows the effect. took is as for run.
func reconcile(r *run) (res *result, took bool) {
	if r.cfg.Reconcile == nil {
		return &result{}, false
	}
	refuse := func(cause error) *result {
		return r.refusals.refuse(r.call.Values(), r.name, &r.rec, operation.Same, cause, ErrHeld)
	}
	var said Resolution
	err := r.visiting(func() (err error) {
		said, err = r.cfg.Reconcile(withAccountOf(r.call.Context(), &r.rec), r.rec.Clone())
		return err
	})
	switch {
	case err != nil:
		return refuse(sanitized(err)), true
	case said.Effect == persist.EffectUnknown:
		return refuse(nil), true
	}
	if err := said.check(r.cfg); err != nil {
		return refuse(fmt.Errorf("from Reconcile: %w", err)), true
	}
	ending, op := r.holder.endingOf(&r.rec, said.Effect == persist.EffectAbsent), r.op()
	ending.Happened = said.Effect == persist.EffectHappened
	switch op.MayEnd(ending) {
	case operation.MayAct:
	case operation.IsWitnessed:
		return refuse(provenBy(&r.rec)), true
	case operation.IsSending:
		return refuse(stillSending(&op, ending)), true
	default:
		return refuse(lease.ErrElsewhere), true
	}
	r.rec.Unreported = said.Effect == persist.EffectHappened && op.EndsUnreported(false)
	switch said, err = r.settleFound(said); {
	case errors.Is(err, errAnswersAnother):
		return refuse(err), true
	case err != nil: // the record may be final all the same
		return &result{err: journalError(r.name, &r.rec, err)}, true
	}
	a := &answer{result: r.resultWith(OutcomeConfirmed, SourceJournal)}
	a.result.Effect = said.Effect
	if said.Effect == persist.EffectAbsent {
		a.result.Outcome = OutcomeNotSent
	}
	if said.Answer != nil {
		a.status, a.header, a.body = said.Answer.Status, said.Answer.Header, said.Answer.Body
	}
	if r.heard() {
		e := r.event(EventFinished)
		e.Outcome, e.Status, e.Rule = a.result.Outcome, a.status, ruleOfPeople
		r.tell(e)
	}
	return &result{answer: a}, true
}
