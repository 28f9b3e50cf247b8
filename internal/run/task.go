package run

import (
	"context"
	"net/url"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// task is what a run works on: one operation, the call that it is for, and the drive that decides about it. The
// other parts of a run have a pointer to it and to the parts before them. Only the run's goroutine uses it.
type task struct {
	engine  *engine         // of the client
	cfg     *Config         // the engine's
	journal persist.Journal // the engine's, with the run's stopwatch
	took    *stopwatch      // the run's time, by its parts
	call    callers         // during an attempt: with the values of Config.Instrument's context
	name    string          // of the call, for errors

	rec    persist.Record  // as last read or written, with the attempts of this run added
	before *persist.Record // the record before adopt marked it; nil: adopt wrote no mark, or the operation is never given back

	prof        *profile.Profile    // the record's; nil until it is looked up, or if none is known
	credentials request.Credentials // of the caller's request; empty in a pass
	target      *url.URL            // the URL to send to

	given     operation.Given // the drive's knowledge at its beginning
	drive     operation.Drive // its zero value stands until the first drive of the run
	moreSends int             // sends since the last result given to the drive
}

// notice has the journal's clock read again, if that is due. After an error the present time is not known:
// nothing may be sent, and nothing can be recorded.
func (t *task) notice() error { return t.engine.clock.Notice(t.call.Values(), t.engine.host) }

// op returns the operation for decisions of package operation, as its record says now. Each write of the run changes the record, so it is
// made anew for each question. The profile's window for the key bounds the recorded one; without a known profile nothing does.
func (t *task) op() operation.Op {
	if t.prof == nil {
		return operation.OpOf(&t.rec, 0)
	}
	return operation.OpOf(&t.rec, t.prof.Window.Floor)
}

// givenNow returns the facts known at the begin of a series of attempts: those of the call, of the Config and of the profile. t.prof must
// be set.
func (t *task) givenNow() operation.Given {
	return t.given.With(&t.rec, operation.Means{
		AsksFirst: t.cfg.Retry.AskFirst, Finds: len(t.prof.Duplicate) > 0, RandomKeys: t.cfg.randomKeys,
		Late: t.engine.late != nil, LeastDelay: t.prof.MinDelay,
	})
}

// readBy sets the profile by which answers are read; nil if it is not known. Its facts may have changed since the record was begun: then
// answers prove less (Given.OtherFacts). It is called before the decisions about the attempts begin.
func (t *task) readBy(p *profile.Profile) {
	t.prof = p
	facts := ""
	if p != nil {
		facts = t.cfg.profiles().facts(p)
	}
	t.given.OtherFacts = operation.OtherFacts(t.rec.Facts, facts)
}

// lacks returns the first need of the run's record (a credential, a region, a profile ...) that the client does not meet; Need is
// acts.Nothing if there is none. In a call, unlike in a pass (Resume or Run), the credentials of its own request count. readBy comes before
// it: an unknown profile is a need, too. It may ask Config.OriginAllowed.
func (t *task) lacks() acts.Lack {
	lack := t.engine.lacks(t.call, &t.rec, t.prof, !t.given.Pass)
	if lack.Need == acts.Nothing && !t.given.Pass {
		lack = t.cfg.gate().lacksCredentials(t.rec.Origin, &t.credentials)
	}
	return lack
}

// resultWith returns the Result of the operation, with the counts of its whole life: those of the record, and
// those of this run on top, as long as its last write has not added them.
func (t *task) resultWith(outcome Outcome, source Source) Result {
	return Result{
		Key: t.rec.Key, Outcome: outcome, Source: source,
		Attempts: t.rec.Attempts + t.drive.Attempts(), Sends: t.given.SendsBefore(t.rec.Sends) + t.sends(), FirstSent: t.rec.FirstSent,
	}
}

// known returns the outcome of the run so far, for events and logs: by the operation's state if the attempts have ended it, else by what
// its last answer proves.
func (t *task) known() Outcome {
	if standing := t.drive.Standing(); standing != operation.Unclear {
		return outcomeOf(standing)
	}
	return outcomes[t.drive.Proof().Kind]
}

// holds returns the reason for which the record is held (nothing sends it until that is settled); "" if it is not held. Until the run's
// last write it is the reason of an earlier run.
func (t *task) holds() persist.HoldReason {
	if t.rec.State != persist.StateHeld {
		return ""
	}
	return t.rec.HoldReason
}

// sends returns the number of this run's sends that are over: those in the decisions so far, and those since.
func (t *task) sends() int { return t.drive.Sends() + t.moreSends }

// visiting calls f, a function of the user, and returns its error. While f runs, the callers waiting for the
// run see that it does, and need not wait for it without an end. A panic of f goes on.
func (t *task) visiting(f func() error) error {
	work := t.call.Work()
	work.Visit()
	defer work.Return()
	return f()
}

// keepAnswer takes out of a, an answer, what is not to be recorded, as Config.keepAnswer does. Config.KeepHeader, a function of the user,
// may be called: callers that wait for the run see that.
func (t *task) keepAnswer(a *persist.Answer) {
	work := t.call.Work()
	work.Visit()
	defer work.Return()
	t.cfg.keepAnswer(&t.rec, a)
}

// remember adds an attempt to the record's history in memory; the next write of the record stores it. began is
// by this process's own clock, and the time in the history by the journal's. A lookup is no attempt, and a
// request for a token only if it failed.
func (t *task) remember(began time.Time, sent wire.Result) {
	took := time.Since(began)
	attempt := persist.Attempt{At: t.engine.now().Add(-took).Round(0), Took: took, Sent: !sent.Unsent}
	if sent.Answer != nil {
		attempt.Status = sent.Answer.Head.StatusCode
	}
	if sent.Err != nil {
		attempt.Error = oneLine(sent.Err)
	}
	t.rec.AddAttempt(attempt)
}

// givenBack returns the record of an operation that the run leaves to others before its first send: without the run's mark "maybe sent".
// listed is the record as it was if the run has not marked it. Nothing is written here: the caller takes the lease off the result, and
// writes it.
func (t *task) givenBack(listed persist.Record) persist.Record {
	rec, before := t.rec, listed
	if t.before != nil {
		before = *t.before
	}
	was, now := operation.OpOf(&before, 0), operation.OpOf(&rec, 0)
	back := now.GivenBack(was, t.cfg.drives.LatestFirstSend(rec.Created, rec.Window))
	rec.State, rec.HoldReason, rec.MaybeSent, rec.FirstSent, rec.SendBefore = back.State, back.Hold, back.MaybeSent, back.FirstSent, back.SendBefore
	return rec
}

// update writes a record that stays unfinished, without its answer if that is too large for the journal. The run's attempts and sends are
// written, and taken out of t.rec again: the decisions add them to those at its begin.
func (t *task) update(rec persist.Record) error {
	var updated persist.Record
	err := writeSmaller(t.call.Values(), t.cfg, &rec, func() (err error) {
		updated, err = t.journal.Update(t.call.Values(), rec)
		return err
	})
	if err == nil {
		updated.Attempts, updated.Sends = t.rec.Attempts, t.rec.Sends
		t.rec = updated
	}
	return err
}

// lastChange makes the last change of a run, by write, and ends the run's lease, even if the write fails. It is like writer.change; moreover, the record may
// have got an event's evidence meanwhile, and write takes account of it (true). It may call write twice: write must start from the record as it is at that
// call.
func (t *task) lastChange(ctx context.Context, rec *persist.Record, write func() error) error {
	defer t.engine.leases.End(rec.ID)
	return t.engine.writer.rewrite(ctx, rec, true, write)
}
