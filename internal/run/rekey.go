package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Rekey implements oncehttp.Client.Rekey: it begins an operation without effect once more, under newKey. An operator calls it, with a reason.
// chosen.Seen is the record as the person saw it: Rekey fails if it has changed since.
func (c *Client) Rekey(ctx context.Context, key, newKey string, reason string, chosen Chosen) error {
	const name = rekeyName
	ctx, leave, err := c.visitKey(ctx, "Rekey", name, key)
	if err != nil {
		return err
	}
	defer leave()
	if reason == "" || len(reason) > persist.NoteBytesMax {
		cause := fmt.Errorf("a reason of %d bytes, want 1 to %d", len(reason), persist.NoteBytesMax)
		return c.wrong(ctx, name, key, chosen, cause)
	}
	// true: a Rekey rests on the word that nothing happened.
	if acts.LacksLook(acts.BeginAnew, true, chosen.Seen != nil) {
		return c.wrong(ctx, name, key, chosen, errUnseen)
	}
	return c.inPlace(ctx, name, key, chosen, func(call callers, id persist.ID) error {
		return rekey{c.engine, call.Values(), call, &chosen}.do(id, newKey, reason)
	})
}

// rekey is one Rekey under way.
type rekey struct {
	*engine
	ctx  context.Context
	call callers // with the place of the old operation
	seen *Chosen // the terms of the caller
}

// do replaces an operation by one with another key, newKey; reason is the person's, for the records. The old one must be settled as absent; an unfinished one
// is settled so here, if the API's lookup proves its absence. do writes the new key into the record of the old one, begins the new operation as held (nothing
// sends it), and then lets Resume or Run send it. So of two Rekeys to two keys, in whatever processes, one at most goes on; and a Rekey that was interrupted
// goes on when it is called again. After nil the new operation is sent, or was; after an error it may be begun, and is held.
func (k rekey) do(id persist.ID, newKey string, reason string) error {
	old, err := k.journal.Get(k.ctx, id)
	if err != nil {
		return k.failed(id.Key, err)
	}
	if moved := k.seen.moved(&old, acts.BeginAnew); moved != nil {
		return k.refusals.stale(k.ctx, rekeyName, &old, moved)
	}
	// The new operation is made first, in memory: a request that cannot have another key leaves the old one as
	// it is.
	next, err := k.successor(&old, newKey, reason)
	if err == nil && !old.State.Final() {
		old, err = k.settleByLookup(old, reason)
	}
	if err == nil {
		err = k.checkAbsent(&old)
	}
	if err == nil {
		err = k.interrupted(&old)
	}
	if err != nil {
		return err
	}
	// The part shared with Redrive. false: it is allowed also if a caller was told of the old one's end.
	replaces := successor{k.engine, k.ctx, rekeyName, acts.Rekeys, false}
	if err := k.mark(replaces, &old, &next); err != nil {
		return err
	}
	// It is begun as held: a crash after this leaves an operation that nothing sends.
	// created does not matter: an interrupted Rekey finds its own record.
	rec, _, err := k.writer.begin(k.ctx, next)
	begun := operation.OpOf(&rec, 0)
	switch {
	case err != nil:
		return k.failed(newKey, err)
	case rec.Sealed() != nil:
		return k.failed(newKey, rec.Sealed())
	case nextOf(&old, &rec) != intent.IsItsOwn:
		// The key belongs to something else, begun after the look.
		return replaces.taken(old, &rec)
	case !acts.WaitsForRelease(&begun): // a Rekey has let it go already
		return k.begun(rec, next)
	}
	if err := k.clock.Notice(k.ctx, k.host); err != nil { // the lookup of the old operation may have taken a while
		return k.failed(newKey, err)
	}
	if err := k.interrupted(&rec); err != nil {
		return err
	}
	return k.letGo(rec)
}

// letGo lets Resume or Run send the new operation, which was held so far, within EnqueueMaxAge from now. It is the last step of a Rekey.
func (k rekey) letGo(rec persist.Record) error {
	op := operation.OpOf(&rec, 0)
	if err := k.writer.promise(k.ctx, rec, op.Promised(k.now().Round(0).Add(k.cfg.EnqueueMaxAge))); err != nil {
		return k.failed(rec.Key, err)
	}
	k.wakeAll()
	return nil
}

// mark names the new operation in the record of the old one, unless another operation forbids that. After nil this is durable, and next has its
// account. Two Rekeys to two keys write the same record, so one of them fails.
func (k rekey) mark(replaces successor, old, next *persist.Record) error {
	// Only for the place: next itself is changed once.
	place := persist.Record{ID: persist.ID{Key: next.Key}}
	if err := replaces.placed(old, &place); err != nil {
		return err
	}
	begunAt(next, place.Account)
	// No operation of the new key without an account may exist, and none before old may forbid a new one.
	if err := replaces.unassignedKey(old, next); err != nil {
		return err
	}
	if err := replaces.unstopped(old, next); err != nil {
		return err
	}
	// A caller may have the answer of an operation under the new key, and its record not yet.
	if err := k.recorded(k.ctx, func(id persist.ID) bool { return id == next.ID }); err != nil {
		return k.failed(next.Key, err)
	}
	found, err := replaces.look(old, next)
	if err != nil {
		return k.failed(next.Key, err)
	}
	err = replaces.link(old, *next, found)
	switch {
	case errors.Is(err, errElsewherePlace):
		return k.failed(next.Key, err)
	case err != nil:
		return err
	}
	// A call may have begun the next generation meanwhile: then the name is removed again.
	return replaces.stillAlone(old, next)
}

// interrupted returns an error if the Rekey must go on no more, since its context has ended or the client is
// closing. rec is the record left as it is. It is asked between the steps: each step that was begun is ended.
func (k rekey) interrupted(rec *persist.Record) error {
	// The caller's end first: it says more than that of the client.
	cause := cmp.Or(sanitize.Cause(k.call.Context()), sanitize.Cause(k.call.Draining()))
	if cause == nil {
		return nil
	}
	failed := newError(rekeyName, unclear(rec.Key), cause)
	if failed.State = rec.State; rec.State == persist.StateHeld {
		failed.Said.why = append(failed.Said.why, ErrHeld)
	}
	return failed
}

// failed returns the error for a failure err of the journal. It does not rule out an effect: the Rekey may have done a part of its work. Called again, it goes on.
func (k rekey) failed(key string, err error) error {
	return outrun(rekeyName, &persist.Record{ID: persist.ID{Key: key}, MaybeSent: true}, err)
}

// rekeyName is the call in errors.
const rekeyName = "rekey"

// begun ends a Rekey that finds its new operation already begun and not held for it any more: an earlier call has finished. nil: the new
// operation goes on. That includes one held since it was not sent in time: it goes on now, as after an Enqueue. Otherwise the error is the
// reason. next is the new operation's record, as if it were begun now.
func (k rekey) begun(rec, next persist.Record) error {
	next.SendBefore = next.Created.Add(k.cfg.EnqueueMaxAge)
	res, err := promise(k.ctx, k.engine, rekeyName, rec, &next)
	switch {
	case res != nil:
		return res.err
	case err != nil:
		return k.failed(rec.Key, err)
	}
	k.wakeAll()
	return nil
}

// checkAbsent returns an error if an operation may not be begun under another key; nil if it is settled as absent (it had no effect),
// durably.
func (k rekey) checkAbsent(old *persist.Record) error {
	op := operation.OpOf(old, 0)
	switch acts.Rekeys.MayAnew(&op, acts.Successors{}, k.clock.Earliest()) {
	case acts.MayAct:
	case acts.IsReplaced:
		return skippedError(rekeyName, old)
	case acts.IsSending:
		return k.refusals.refuse(k.ctx, rekeyName, old, operation.KeyOnly, sentUntil(&op), ErrInFlight).err
	default:
		return k.refusals.refuse(k.ctx, rekeyName, old, operation.KeyOnly, fmt.Errorf("it is %v, and not settled as absent", old.State), whyFinal(old)).err
	}
	if err := k.journal.Flush(k.ctx); err != nil { // an end that is not durable is none
		return k.failed(old.Key, err)
	}
	return nil
}

// successor returns the record of the operation that a Rekey begins in place of old: held until the Rekey is complete, and never sent so far, under newKey.
// reason is the person's, and becomes its note. It writes nothing.
func (k rekey) successor(old *persist.Record, newKey string, reason string) (persist.Record, error) {
	next, err := anew(k.engine, k.call, rekeyName, old, newKey, reason)
	if err == nil {
		begun := operation.OpOf(&next, 0)
		write(&next, acts.HeldFor(begun, persist.HoldRekey))
	}
	return next, err
}

// settleByLookup settles an unfinished operation as absent, if the API's lookup proves its absence, and returns it. reason is the person's, for the record.
// Once the record is held, nobody begins a send. A send begun before by another process, or by a dead one, may still be on its way until the record's
// SendUntil. The time for everything to be found counts from then.
func (k rekey) settleByLookup(old persist.Record, reason string) (persist.Record, error) {
	prof := k.profileOf(k.call, &old)
	get, target := request.ByReference(&old, prof)
	if err := k.mayLook(&old, prof, target != nil && prof.Reference.FoundWithin != 0); err != nil {
		return old, err
	}
	// Changed and written below; old stays, for found.
	held := old
	op := operation.OpOf(&old, 0)
	at := op.SentBy(k.now().Round(0), k.writer.sendUntil()).Add(prof.Reference.FoundWithin) // when the lookup may be asked
	if next, changes := acts.HeldToRekey(op, at); changes {
		write(&held, next)
		var err error
		if held, err = k.journal.Update(k.ctx, held); err != nil {
			return old, k.failed(old.Key, err)
		}
	}
	// Without this, a clock set forward would ask too early.
	if err := k.clock.Sync(k.ctx, k.host); err != nil {
		return old, k.failed(old.Key, err)
	}
	// The wait is bounded by FoundWithin and the time of a send. If it is cut short, the record stays held, and
	// the next Rekey waits for the rest only.
	select {
	case <-time.After(held.NextAttempt.Sub(k.clock.Earliest())):
	case <-k.call.Context().Done():
	case <-k.call.Draining().Done():
	}
	if err := k.interrupted(&held); err != nil {
		return old, err
	}
	asks := newRun(k.engine, k.call, rekeyName, &unasked)
	asks.task.rec, asks.task.prof = held, prof
	// By the requests of a run: they have the client's credentials, limits and origins.
	finding, sent := askByReference(&asks.requests, get, target)
	// An origin that does not answer rests, whoever has asked.
	asks.replies.noteOrigin(sent)
	sent.Drain()
	// An interrupted lookup looks like one without a finding.
	if finding == classify.FindingNone || finding == classify.FindingUnclear {
		if err := k.interrupted(&held); err != nil {
			return old, err
		}
	}
	if !acts.RekeyFound(finding) {
		return old, k.found(&old, &held, finding, sent.Err)
	}
	return k.journalAbsent(held, reason)
}

// mayLook returns an error if an unfinished operation must not be held for a lookup. proves: the lookup of its profile proves an absence. It goes out with the
// client's own credentials (false in lacks). A lack is told last: the state of the record says more.
func (k rekey) mayLook(old *persist.Record, prof *profile.Profile, proves bool) error {
	missing := k.lacks(k.call, old, prof, false).Err()
	op := operation.OpOf(old, 0)
	switch acts.MayLookBefore(&op, k.holder.leasedElsewhere(old), proves) {
	case acts.IsLeased:
		return k.refusals.refuse(k.ctx, rekeyName, old, operation.KeyOnly, lease.ErrElsewhere, ErrInFlight).err
	case acts.IsWitnessed:
		return k.refusals.refuse(k.ctx, rekeyName, old, operation.KeyOnly, provenBy(old), ErrStale).err
	case acts.NotAbsent:
		return k.refusals.refuse(k.ctx, rekeyName, old, operation.KeyOnly, fmt.Errorf("it is %v; settle it as absent first", old.State)).err
	}
	if missing != nil {
		return k.refusals.refuse(k.ctx, rekeyName, old, operation.KeyOnly, missing, ErrConfig).err
	}
	return k.interrupted(old)
}

// found ends a Rekey whose lookup did not prove that the operation had no effect: finding is what it says, cause the error of its request,
// if any. The record is put back as it was in old: a pending operation is due again, one held for another reason stays held.
func (k rekey) found(old, held *persist.Record, finding classify.Finding, cause error) error {
	back, op := *held, operation.OpOf(held, 0)
	write(&back, acts.NotRekeyed(op, operation.OpOf(old, 0)))
	if _, err := k.journal.Update(k.ctx, back); err != nil {
		return k.failed(old.Key, err)
	}
	// The operation is pending again, and a Run of this client goes on with it.
	k.wake()
	switch finding {
	case classify.FindingSame:
		cause = errors.New("the API has what the request asks for: it took effect")
	case classify.FindingRefused:
		cause = errors.New("the API has what the request asks for, and says that it was refused")
	case classify.FindingOther:
		cause = errors.New("the API has something else under the request's reference")
	default:
		cause = fmt.Errorf("the API does not say whether there is something under the request's reference (%w)", cmp.Or(cause, errors.New("the answer is none")))
	}
	cause = sanitized(cause)
	if back.State == persist.StateHeld {
		return k.refusals.refuse(k.ctx, rekeyName, &back, operation.KeyOnly, fmt.Errorf("%w; it stays held (%s); find out what became of it, and Settle it", cause, back.HoldReason), ErrHeld).err
	}
	return k.refusals.refuse(k.ctx, rekeyName, &back, operation.KeyOnly, cause).err
}

// journalAbsent settles the record as absent, and returns it. The note has the finding and the person's reason, as far as there is room for it.
func (k rekey) journalAbsent(held persist.Record, reason string) (persist.Record, error) {
	note := "nothing was found under its reference; " + reason
	if len(note) > persist.NoteBytesMax {
		note = reason
	}
	if err := resolve(k.ctx, k.engine, held, Resolution{Effect: persist.EffectAbsent, Note: note}); err != nil {
		return held, k.failed(held.Key, err)
	}
	// With its new revision, for the mark.
	settled, err := k.journal.Get(k.ctx, held.ID)
	if err != nil {
		return held, k.failed(held.Key, err)
	}
	return settled, nil
}
