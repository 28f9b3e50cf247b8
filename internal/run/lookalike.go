package run

import (
	"context"
	"errors"
	"slices"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the look for operations of the same request under generated keys, made before a call without a named key begins one.

// An operation under a generated key is unresolved while it is unfinished. It is unreported once Resume or Run ended it, until a caller
// with its key was told the end. Meanwhile the same request without a key might take effect for the second time.
var (
	errUnresolved = errors.New("the same request was sent before under this generated key; send it with this key, settle it or abandon it")
	errSending    = errors.New("another process is sending the same request under a key that it generated; send it again once that has ended, or name a key of the business")
	errUnreported = errors.New("the same request was sent before under this generated key, and Resume or Run ended it; ask for its answer with this key")
)

// checkUnresolved returns an error if the same request, under a generated key, is unresolved or unreported, and nil if a call without a named key may begin. A
// loop around Do must not pay twice, and neither must a loop with business keys made by Config.NewKey only from now on. Of an operation under no account, or
// maybe another caller's, the error tells a reference only. If the journal cannot be asked, nothing may begin either. The look uses the recipe (the rules by
// which requests are compared) of every possible operation, since another version, profile or configuration may have begun it.
func (b *admission) checkUnresolved(ctx context.Context, name string, op *preparedRequest) error {
	standing, err := b.alike.Of(ctx, op.lookalike())
	if err != nil {
		return newError(name, unclearTo(unnamed, intent.HasNotLooked, op.rec.Key), err)
	}
	if standing == nil {
		return nil
	}
	look := context.WithoutCancel(ctx)
	// A key that comes back with the request may have a record: the call goes on with that.
	if !op.rec.KeyOfOneCall() && b.stands(look, op) {
		return nil
	}
	switch none := slices.Contains(op.named.Unassigned(), request.Base(standing.Account)); {
	case none:
		return b.refusals.strangerError(ctx, name, standing.ID, b.refusals.unassignedCause(ctx, standing.ID, op.rec.Account))
	case b.strangeLookalike(look, op, standing):
		return b.refusals.strangerError(ctx, name, standing.ID, errOtherCredentials)
	}
	cause, like := errUnresolved, operation.OpOf(standing, 0)
	switch (intent.Lookalike{Leased: b.holder.sentElsewhere(standing)}).InTheWay(&like) {
	case intent.NotInTheWay:
		return nil
	case intent.Unreported:
		cause = errUnreported
	case intent.SentElsewhere:
		return newError(name, unclearTo(unnamed, intent.SeesRunning, standing.Key), errSending, ErrInFlight)
	}
	failed := newError(name, subjectOf(standing, operation.Keyless), cause)
	failed.Attempts, failed.Sends = standing.Attempts, standing.Sends
	return failed
}

// strangeLookalike reports whether an operation that looks like the same request may be another caller's; true if its record cannot be read. standing
// may be only a part of the record.
func (b *admission) strangeLookalike(ctx context.Context, op *preparedRequest, standing *persist.Record) bool {
	if !op.strange(standing) {
		return false
	}
	rec, err := b.journal.Get(ctx, standing.ID) // only it has in clear a value that is a credential only now
	return err != nil || op.strange(&rec)
}
