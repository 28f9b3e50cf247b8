package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/owner"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// refusals makes the errors of calls on an operation that has a record. It is safe for concurrent use.
type refusals struct {
	journal persist.Journal // is flushed before a caller is told of an end
	holder  *holder         // tells whether another process has it
	owners  owner.Owners    // makes the Reference of a record
}

// refuse ends a call without a send; the record does not change. The result has the error for the caller. known is the call's knowledge of the record's request,
// cause the reason (may be nil), why are the sentinels. If the journal cannot make the state durable, its error replaces cause. If the answer was removed after its
// time, its status may still be known. unreported: the error tells of an effect (by ErrAnswerGone or ErrSettled) known to no caller so far.
func (f *refusals) refuse(ctx context.Context, name string, rec *persist.Record, known operation.Knowledge, cause error, why ...error) *result {
	about, err := f.durable(ctx, rec, known)
	if err != nil {
		cause = err
	}
	failed := newError(name, about, cause, why...)
	if failed.Answer = rec.Answer; rec.Answer == nil && rec.Status != 0 {
		failed.Answer = &persist.Answer{Status: rec.Status, BodyDropped: true}
	}
	if !rec.State.Final() {
		failed.NextAttempt = rec.NextAttempt
	}
	told := slices.Contains(why, ErrAnswerGone) || slices.Contains(why, ErrSettled)
	return &result{err: failed, unreported: told && rec.Unreported}
}

// durable returns a record as the subject of an error about it. A final state can be read before it is durable. So durable flushes the journal first,
// unless a send after a crash would only ask the server for the answer once more. If the flush fails, err is set, and the operation's end counts as
// unclear.
func (f *refusals) durable(ctx context.Context, rec *persist.Record, known operation.Knowledge) (subject, error) {
	about := subjectOf(rec, known)
	if op := operation.OpOf(rec, 0); !op.FlushesFirst() {
		return about, nil
	}
	err := f.journal.Flush(ctx)
	if err != nil {
		about.standing = operation.Unclear
	}
	return about, err
}

// notSame refuses a request if its key belongs to another one, or may belong to one. The record does not change.
func (f *refusals) notSame(ctx context.Context, name string, rec *persist.Record, op *preparedRequest) *result {
	if op.read.Compare(rec) == request.CannotTell {
		// Without the answer: it may be another request's.
		failed := newError(name, subjectOf(rec, operation.Incomparable), incomparable(op, rec), ErrConfig)
		return &result{err: failed}
	}
	return f.otherRequest(ctx, name, rec, op.prof)
}

// otherRequest refuses a request if its key belongs to another one. If that one was refused, or settled as absent, the error names the key
// of the next try, if the API takes it.
func (f *refusals) otherRequest(ctx context.Context, name string, rec *persist.Record, prof *profile.Profile) *result {
	var cause error
	next, op := intent.NextGeneration(rec.Key), operation.OpOf(rec, 0)
	// Only where a person might try anew, too: as for a Redrive.
	if op.NamesNext() && acts.Redrives.MayAnew(&op, acts.Successors{Replaced: rec.ReplacedBy != ""}, f.holder.clock.Earliest()) == acts.MayAct {
		if _, err := request.SpellKey(prof, next); err == nil {
			cause = fmt.Errorf("a new try needs a new key, such as %q (Key.Generation)", next)
		}
	}
	return f.refuse(ctx, name, rec, operation.Other, cause, sentinels(op.WhyOther())...)
}

// stale refuses a person's act on a record that has changed since the person saw it; moved is the change. The record stays as it is. The error does not tell of
// an absence: the person must look once more.
func (f *refusals) stale(ctx context.Context, name string, rec *persist.Record, moved error) error {
	if !operation.StandingOf(rec).TellsMoved() {
		return newError(name, unclear(rec.Key), moved, ErrStale)
	}
	why := []error{whyFinal(rec), ErrStale}
	if f.holder.leasedElsewhere(rec) && !rec.State.Final() {
		why = append(why, ErrInFlight)
	}
	return f.refuse(ctx, name, rec, operation.KeyOnly, moved, why...).err
}

// stranger returns the subject of an error for a caller that may learn nothing of an operation but its reference: the operation may be another
// caller's.
func (f *refusals) stranger(ctx context.Context, id persist.ID) subject {
	return subject{sent: true, reference: f.owners.Reference(ctx, id)}
}

// strangerError returns the error of a call stopped by an operation possibly belonging to another caller.
func (f *refusals) strangerError(ctx context.Context, name string, id persist.ID, cause error) *Error {
	return newError(name, f.stranger(ctx, id), cause, ErrAccount)
}

// refuseStranger returns the result of a call on an operation possibly belonging to another caller. Others waiting for the same result
// may know more, and start again.
func (f *refusals) refuseStranger(ctx context.Context, name string, id persist.ID) *result {
	return &result{err: f.strangerError(ctx, name, id, errOtherCredentials), notShared: true}
}

// unassignedCause returns the error of a call for account if an operation of its key has no account yet: it may be this account's. The error
// says how to assign one.
func (f *refusals) unassignedCause(ctx context.Context, id persist.ID, account string) error {
	return fmt.Errorf("an operation of it has no account; nothing is begun until Client.Assign gives it to the account "+
		"to which it belongs: %s, maybe to %q", f.owners.Reference(ctx, id), request.Base(account))
}
