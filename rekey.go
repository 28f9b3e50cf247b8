package oncehttp

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Rekey begins an operation that had no effect once more, under newKey: the same request, to be sent by Resume or Run
// within Config.EnqueueMaxAge, as Enqueue's. The new record names both keys (persist.Record.Replaces), and keeps reason,
// which must not be empty, as its note. The operation under key must have been settled as absent before; it does not
// change. Calling it again with the same keys is nil once the new operation exists. Best is the key under which the
// business itself would try again, Key.Generation, so that both mean one operation.
//
// Errors: those of Lookup for key; ErrConfig where reason or newKey cannot be used, or the request is no more in the
// journal or holds its key itself; ErrOutcomeUnknown while the operation is not settled, also ErrInFlight while a call runs
// it; ErrFinal where it ended otherwise; ErrKeyReused where newKey belongs to another operation, or where the operation goes on
// under a third key already, which the error names.
func (c *Client) Rekey(ctx context.Context, key, newKey Key, reason string, options ...LookupOption) error {
	const name = "rekey"
	if reason == "" || len(reason) > persist.NoteBytesMax {
		cause := fmt.Errorf("a reason of %d bytes, want 1 to %d", len(reason), persist.NoteBytesMax)
		return &Error{Op: name, Key: key, Cause: cause, is: []error{ErrOutcomeUnknown, ErrConfig}}
	}
	rec, err := c.Lookup(ctx, key, options...)
	if err != nil {
		return err
	}
	// As end does, it holds the operation's place in the table of calls meanwhile.
	caller, arrival := c.engine.shared.calls.Enter(inflight.Entry{
		Record: &rec, Context: ctx, Draining: c.draining, InDoubt: true,
	}, nil)
	if arrival == inflight.Refused {
		return &Error{Op: name, Key: key, State: rec.State, is: []error{ErrOutcomeUnknown, ErrInFlight}}
	}
	call := caller.Call()
	call.Run(func() *result {
		err = rekey{c.engine, call.Values()}.do(rec.ID, newKey, reason)
		return &result{notShared: true}
	}, crashed(name, rec.Key))
	if panicked := call.Panicked(); panicked != nil {
		panic(panicked)
	}
	return err
}

// rekey is one Rekey under way.
type rekey struct {
	*engine
	ctx context.Context
}

// do begins the new operation, held, looks for another one in the place of the old, and only then lets it go on. So of
// two Rekeys to two keys, in whatever processes, one at most goes on; and one that was cut off goes on when it is called again.
func (k rekey) do(id persist.ID, newKey Key, reason string) error {
	old, err := k.journal.Get(k.ctx, id)
	if err == nil {
		err = k.absent(&old)
	}
	if err != nil {
		return err
	}
	next, err := k.successor(&old, newKey, reason)
	if err != nil {
		return err
	}
	rec, created, err := k.journal.Begin(k.ctx, next)
	switch {
	case err != nil:
		return journalError("rekey", newKey, err)
	case rec.Replaces != old.Key:
		return &Error{Op: "rekey", Key: newKey, State: rec.State, Cause: errors.New("the new key belongs to another operation"), is: []error{ErrOutcomeUnknown, ErrKeyReused}}
	case rec.State != persist.StateHeld || rec.HoldReason != persist.HoldRekey:
		return nil // it goes on, or has ended
	}
	if err := k.alone(&rec); err != nil {
		if created {
			err = errors.Join(err, k.journal.Forget(k.ctx, rec))
		}
		return err
	}
	rec.State, rec.HoldReason, rec.Enqueued = persist.StatePending, "", true
	rec.SendBefore = k.now().Round(0).Add(k.cfg.EnqueueMaxAge)
	if _, err := k.journal.Update(k.ctx, rec); err != nil {
		return journalError("rekey", newKey, err)
	}
	k.wake()
	return nil
}

// absent says what keeps an operation from being tried under another key; nil if it durably is settled as absent.
func (k rekey) absent(old *persist.Record) error {
	switch {
	case !old.State.Final():
		return refuse("rekey", old, fmt.Errorf("it is %v; settle it as absent first", old.State), ErrOutcomeUnknown).err
	case old.State != persist.StateSettled || old.Effect != persist.EffectAbsent:
		return k.refuseFinal(k.ctx, "rekey", old, fmt.Errorf("it is %v, and not settled as absent", old.State), finals(old)...).err
	}
	if err := k.journal.Flush(k.ctx); err != nil {
		return journalError("rekey", Key(old.Key), err)
	}
	return nil
}

// successor is the record of the new operation, as it is begun: held, and never sent.
func (k rekey) successor(old *persist.Record, newKey Key, reason string) (persist.Record, error) {
	prof := k.cfg.profileOf(old)
	cause := fmt.Errorf("profile %q version %q, under which it was begun, is not known to this client", old.Profile, old.ProfileVersion)
	var next persist.Record
	if prof != nil {
		next, cause = request.Rekeyed(old, prof, string(newKey))
	}
	if cause != nil {
		return next, &Error{Op: "rekey", Key: Key(old.Key), State: old.State, Cause: cause, is: []error{ErrOutcomeUnknown, ErrConfig}}
	}
	next.Created, next.Note = k.now().Round(0), reason
	next.State, next.HoldReason = persist.StateHeld, persist.HoldRekey
	return next, nil
}

// alone returns an error if there is another operation in the place of the one that rec replaces.
func (k rekey) alone(rec *persist.Record) error {
	for other, err := range k.journal.List(k.ctx, persist.Query{Account: rec.Account}) {
		switch {
		case err != nil:
			return journalError("rekey", Key(rec.Key), err)
		case other.Account == rec.Account && other.Replaces == rec.Replaces && other.Key != rec.Key:
			cause := fmt.Errorf("it goes on under the key %q already, which is %v", other.Key, other.State)
			return &Error{Op: "rekey", Key: Key(rec.Replaces), State: other.State, Cause: cause, is: []error{ErrOutcomeUnknown, ErrKeyReused}}
		}
	}
	return nil
}
