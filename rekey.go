package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Rekey begins an operation that had no effect once more, under newKey: the same request, to be sent by Resume or Run
// within Config.EnqueueMaxAge, as Enqueue's. The new record names both keys (persist.Record.Replaces), and keeps reason,
// which must not be empty, as its note.
//
// It needs AsSeen, with the operation as it was seen before it was settled, or since.
//
// The operation under key must have been settled as absent before. Where the profile says within which time after the last
// send its lookup finds everything for certain (profile.Reference.FoundWithin), Rekey settles an unfinished one itself: it holds it,
// so that nothing more is sent, waits until no send of it can be on its way (persist.Record.SendUntil), and for that time or until
// ctx ends, asks, and settles it as absent
// if nothing has the request's reference; else the operation is as it was before, and the error says what was found. A ctx that ended leaves
// it held, and the same Rekey goes on. Where that one finds something, an operation that was pending is pending again, and one
// that was held is held as persist.HoldUnclear: Settle it. The lookup needs the request's credentials from Config.Authorize.
//
// In place of an operation under a generated key the new one counts as one, too: the same request without a key is rejected
// while the new operation is unresolved.
//
// Calling it again with the same keys is nil while the new operation goes on, and when it took place; one that was held because it
// was never sent in time is sent now. Until then a Rekey that was cut off leaves its operations held (persist.HoldRekey, HoldRekeyHeld): nothing
// sends them and Config.Reconcile is not asked, until the same Rekey is called again, or a person settles or abandons them.
// Best is the key under which the business itself would try again, Key.Generation, so that both mean one operation.
//
// Errors: those of Lookup for key; ErrStale as AsSeen says; ErrConfig where there is no AsSeen, reason or newKey cannot be used, or the request is no more in the
// journal or holds its key itself; ErrOutcomeUnknown while the operation is not settled, also ErrInFlight while a call runs
// it, and ErrHeld where it is held; ErrFinal, or ErrOutcomeUnknown with ErrAbandoned, where it ended otherwise; ErrKeyReused where newKey belongs to another operation, or where the operation goes on
// under a third key already, which the error names. Where the new operation has ended without an effect, was abandoned or is held for
// another reason, they are Enqueue's for newKey: ErrFinal, ErrSettled, ErrAbandoned, ErrKeyReused or ErrHeld.
func (c *Client) Rekey(ctx context.Context, key, newKey Key, reason string, options ...LookupOption) error {
	const name = rekeyName
	ctx, leave, err := c.visitKey(ctx, "Rekey", name, key)
	if err != nil {
		return err
	}
	defer leave()
	if reason == "" || len(reason) > persist.NoteBytesMax {
		cause := fmt.Errorf("a reason of %d bytes, want 1 to %d", len(reason), persist.NoteBytesMax)
		return c.wrong(ctx, name, key, options, cause)
	}
	chosen := choose(options)
	if chosen.seen == nil {
		return c.wrong(ctx, name, key, options, errUnseen)
	}
	return c.inPlace(ctx, name, key, options, func(call callers, id persist.ID) error {
		return rekey{c.engine, call.Values(), call, &chosen}.do(id, newKey, reason)
	})
}

// rekey is one Rekey under way.
type rekey struct {
	*engine
	ctx  context.Context
	call callers
	seen *chosen
}

// do begins the new operation, held, looks for another one in the place of the old, and only then lets it go on. So of
// two Rekeys to two keys, in whatever processes, one at most goes on; and one that was cut off goes on when it is called again.
func (k rekey) do(id persist.ID, newKey Key, reason string) error {
	old, err := k.journal.Get(k.ctx, id)
	if err != nil {
		return k.failed(Key(id.Key), err)
	}
	if moved := k.seen.moved(&old, operation.BeginAnew); moved != nil {
		return k.stale(k.ctx, rekeyName, &old, moved)
	}
	next, err := k.successor(&old, newKey, reason)
	if err == nil && !old.State.Final() {
		old, err = k.settleByLookup(old, reason)
	}
	if err == nil {
		err = k.absent(&old)
	}
	if err == nil {
		err = k.cut(&old)
	}
	if err != nil {
		return err
	}
	if err := k.unassignedKey(&next); err != nil {
		return err
	}
	if err := k.recorded(k.ctx, func(id persist.ID) bool { return id == next.ID }); err != nil {
		return k.failed(newKey, err)
	}
	rec, created, err := k.beginRecord(k.ctx, next)
	switch {
	case err != nil:
		return k.failed(newKey, err)
	case rec.Sealed() != nil:
		return k.failed(newKey, rec.Sealed())
	case rec.Replaces != old.Key:
		return k.refuse(k.ctx, rekeyName, &rec, operation.Other, errors.New("the new key belongs to another operation"), ErrKeyReused).err
	case rec.HoldReason != persist.HoldRekey || rec.Enqueued: // a Rekey has let it go already
		return k.begun(rec, next)
	}
	if err := k.alone(&rec); err != nil {
		if created {
			err = errors.Join(err, k.journal.Forget(k.ctx, rec))
		}
		return err
	}
	if err := k.clock.notice(k.ctx, k.cfg); err != nil { // it may have waited for its lookup
		return k.failed(newKey, err)
	}
	if err := k.cut(&rec); err != nil {
		return err
	}
	rec.State, rec.HoldReason, rec.Enqueued = persist.StatePending, "", true
	rec.SendBefore = k.now().Round(0).Add(k.cfg.EnqueueMaxAge)
	if _, err := k.journal.Update(k.ctx, rec); err != nil {
		return k.failed(newKey, err)
	}
	k.wakeAll()
	return nil
}

// cut returns an error if the Rekey must go on no more, since its context has ended or the client is closing. rec is the record that
// it leaves as it is.
func (k rekey) cut(rec *persist.Record) error {
	cause := cmp.Or(context.Cause(k.call.Context()), context.Cause(k.call.Draining()))
	if cause == nil {
		return nil
	}
	failed := newError(rekeyName, unclear(Key(rec.Key)), cause)
	if failed.State = rec.State; rec.State == persist.StateHeld {
		failed.why = append(failed.why, ErrHeld)
	}
	return failed
}

// failed returns the error for a journal that failed.
func (k rekey) failed(key Key, err error) error {
	return outrun(rekeyName, &persist.Record{ID: persist.ID{Key: string(key)}, MaybeSent: true}, err)
}

// rekeyName is the call in errors.
const rekeyName = "rekey"

// unassignedKey returns an error if an operation of the new key stands under no account, and none of the account, so that one would
// be begun.
func (k rekey) unassignedKey(next *persist.Record) error {
	named := request.Named{Account: next.Account, Keys: []string{next.Key}}
	id, found, err := k.standsUnassigned(k.ctx, &named)
	if err == nil && found {
		var exists bool
		if exists, err = k.exists(k.ctx, next.ID); exists {
			found = false
		}
	}
	switch {
	case err != nil:
		return journalError("rekey", next, err)
	case found:
		return k.strangerError(k.ctx, "rekey", id, k.unassignedCause(k.ctx, id, next.Account))
	}
	return nil
}

// begun is a Rekey whose new operation an earlier one has let go. Errors: why it does not go on. One that was held because
// it was never sent in time goes on now, as with Enqueue; next is what it would be if it began now.
func (k rekey) begun(rec, next persist.Record) error {
	if res := k.neverGoesOn(k.ctx, rekeyName, &rec); res != nil {
		return res.err
	}
	next.SendBefore = next.Created.Add(k.cfg.EnqueueMaxAge)
	if err := k.markEnqueued(k.ctx, rec, next); err != nil {
		return k.failed(Key(rec.Key), err)
	}
	k.wakeAll()
	return nil
}

// absent says what keeps an operation from being tried under another key; nil if it durably is settled as absent.
func (k rekey) absent(old *persist.Record) error {
	switch {
	case old.State != persist.StateSettled || old.Effect != persist.EffectAbsent:
		return k.refuse(k.ctx, rekeyName, old, operation.KeyOnly, fmt.Errorf("it is %v, and not settled as absent", old.State), whyFinal(old)...).err
	}
	if err := k.journal.Flush(k.ctx); err != nil {
		return k.failed(Key(old.Key), err)
	}
	return nil
}

// successor is the record of the new operation, as it is begun: held, and never sent.
func (k rekey) successor(old *persist.Record, newKey Key, reason string) (persist.Record, error) {
	prof := k.profileOf(k.call, old)
	cause := k.cfg.lacksToRekey(old, prof).Err()
	var next persist.Record
	if cause == nil {
		next, cause = request.Rekeyed(old, prof, string(newKey))
	}
	if cause != nil {
		return next, k.refuse(k.ctx, rekeyName, old, operation.KeyOnly, cause, ErrConfig).err
	}
	next.Created, next.Note = k.now().Round(0), reason
	next.KeepAnswer, next.KeepKey = k.cfg.keeping(next.Window)
	next.State, next.HoldReason = persist.StateHeld, persist.HoldRekey
	return next, nil
}

// alone returns an error if there is another operation in the place of the one that rec replaces.
func (k rekey) alone(rec *persist.Record) error {
	for other, err := range k.journal.List(k.ctx, persist.Query{Account: rec.Account}) {
		if err == nil {
			err = other.Sealed() // it may be that one
		}
		switch {
		case err != nil:
			return k.failed(Key(rec.Key), err)
		case other.Account == rec.Account && other.Replaces == rec.Replaces && other.Key != rec.Key:
			cause := fmt.Errorf("it goes on under the key %q already, which is %v", other.Key, other.State)
			about := unclear(Key(rec.Replaces))
			about.state = other.State
			return newError(rekeyName, about, cause, ErrKeyReused)
		}
	}
	return nil
}

// settleByLookup settles an unfinished operation as absent, if the API's lookup proves that nothing was made, and returns it.
// From when the record is held nobody begins a send. One that another process, or one that died, began before may still be
// on its way until the record's SendUntil; the time in which everything is found counts from then.
func (k rekey) settleByLookup(old persist.Record, reason string) (persist.Record, error) {
	prof := k.profileOf(k.call, &old)
	get, target := request.ByReference(&old, prof)
	missing := k.lacks(k.call, &old, prof, false).Err()
	switch {
	case k.leasedElsewhere(&old):
		return old, k.refuse(k.ctx, rekeyName, &old, operation.KeyOnly, errElsewhere, ErrInFlight).err
	case target == nil || prof.Reference.FoundWithin == 0:
		return old, k.refuse(k.ctx, rekeyName, &old, operation.KeyOnly, fmt.Errorf("it is %v; settle it as absent first", old.State)).err
	case missing != nil:
		return old, k.refuse(k.ctx, rekeyName, &old, operation.KeyOnly, missing, ErrConfig).err
	}
	if err := k.cut(&old); err != nil {
		return old, err
	}
	held := old
	if !rekeys(old.HoldReason) || old.NextAttempt.IsZero() { // zero: journal restored has reset it
		if held.HoldReason = persist.HoldRekeyHeld; old.State == persist.StatePending || old.HoldReason == persist.HoldRekey {
			held.HoldReason = persist.HoldRekey
		}
		held.State = persist.StateHeld
		held.NextAttempt = k.sentBy(&old).Add(prof.Reference.FoundWithin) // when the lookup may be asked
		var err error
		if held, err = k.journal.Update(k.ctx, held); err != nil {
			return old, k.failed(Key(old.Key), err)
		}
	}
	if err := k.clock.sync(k.ctx, k.cfg); err != nil { // else a clock that was set forward would ask too early
		return old, k.failed(Key(old.Key), err)
	}
	select {
	case <-time.After(held.NextAttempt.Sub(k.clock.earliest())):
	case <-k.call.Context().Done():
	case <-k.call.Draining().Done():
	}
	if err := k.cut(&held); err != nil {
		return old, err
	}
	asks := &run{engine: k.engine, call: k.call, rec: held, prof: prof}
	finding, sent := askByReference(asks, get, target)
	asks.noteOrigin(sent)
	sent.Drain()
	if finding == classify.FindingNone || finding == classify.FindingUnclear {
		if err := k.cut(&held); err != nil {
			return old, err
		}
	}
	if finding != classify.FindingNone {
		return old, k.found(&old, &held, finding, sent.Err)
	}
	return k.journalAbsent(held, reason)
}

// sentBy returns the moment after which no send of a record is on its way that is held now: each client says for its own sends how
// long that may be.
func (k rekey) sentBy(rec *persist.Record) time.Time {
	by, now := rec.SendUntil, k.now().Round(0)
	if by.IsZero() && rec.MaybeSent { // whoever marked it does not say
		by = k.sendUntil()
	}
	if by.Before(now) {
		return now
	}
	return by
}

// rekeys reports that a record is held for a Rekey that is not finished.
func rekeys(why persist.HoldReason) bool {
	return why == persist.HoldRekey || why == persist.HoldRekeyHeld
}

// beforeRekey sets what an operation was before the first Rekey held it. One that was pending is so again: its own key is sent
// within its window, as without the Rekey. Of one that was held nobody knows any more why, so that a person settles it, or Config.Reconcile.
func beforeRekey(back, old *persist.Record) {
	back.State, back.HoldReason, back.NextAttempt = old.State, old.HoldReason, old.NextAttempt
	if !rekeys(old.HoldReason) {
		return
	}
	back.NextAttempt = time.Time{}
	switch begun := old.Replaces != "" && !old.Enqueued; { // by another Rekey, which goes on with it
	case old.HoldReason == persist.HoldRekeyHeld:
		back.HoldReason = persist.HoldUnclear
	case !begun:
		back.State, back.HoldReason = persist.StatePending, ""
	}
}

// found puts the record back as it was, and says what the lookup found.
func (k rekey) found(old, held *persist.Record, finding classify.Finding, cause error) error {
	back := *held
	beforeRekey(&back, old)
	if _, err := k.journal.Update(k.ctx, back); err != nil {
		return k.failed(Key(old.Key), err)
	}
	k.wake()
	switch finding {
	case classify.FindingSame:
		cause = errors.New("the API has what the request asks for: it took effect")
	case classify.FindingOther:
		cause = errors.New("the API has something else under the request's reference")
	default:
		cause = fmt.Errorf("the API does not say whether there is something under the request's reference (%w)", cmp.Or(cause, errors.New("the answer is none")))
	}
	cause = sanitized(cause)
	if back.State == persist.StateHeld {
		return k.refuse(k.ctx, rekeyName, &back, operation.KeyOnly, fmt.Errorf("%w; it stays held (%s); find out what became of it, and Settle it", cause, back.HoldReason), ErrHeld).err
	}
	return k.refuse(k.ctx, rekeyName, &back, operation.KeyOnly, cause).err
}

// journalAbsent settles the record as absent, and returns it.
func (k rekey) journalAbsent(held persist.Record, reason string) (persist.Record, error) {
	note := "nothing was found under its reference; " + reason
	if len(note) > persist.NoteBytesMax {
		note = reason
	}
	if err := resolve(k.ctx, k.engine, held, Resolution{Effect: EffectAbsent, Note: note}); err != nil {
		return held, k.failed(Key(held.Key), err)
	}
	settled, err := k.journal.Get(k.ctx, held.ID)
	if err != nil {
		return held, k.failed(Key(held.Key), err)
	}
	return settled, nil
}
