package run

import (
	"context"
	"errors"

	"github.com/oncehttp/oncehttp/internal/alike"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/place"
	"github.com/oncehttp/oncehttp/persist"
)

// admission stops a call before it begins an operation: another operation stands in its way, or the client lacks credentials. It is safe for
// concurrent use.
type admission struct {
	cfg      *Config
	journal  persist.Journal
	holder   *holder
	places   place.Places
	alike    *alike.Lookalikes
	unbegun  *unbegun
	refusals *refusals
}

// checkOthers stops a call before it begins an operation, because of another one that stands under another name.
func (b *admission) checkOthers(ctx context.Context, name string, op *preparedRequest) error {
	if err := b.checkUnassigned(ctx, name, op); err != nil {
		return err
	}
	if err := b.checkWire(ctx, name, op); err != nil {
		return err
	}
	return b.checkPredecessors(ctx, name, op)
}

// checkUnassigned stops a call for an account while an operation of its key stands under no account. It does not if there is one of the
// account, too: then nothing is begun. (Invariant 64.)
func (b *admission) checkUnassigned(ctx context.Context, name string, op *preparedRequest) error {
	id, found, err := b.unbegun.standsUnassigned(ctx, &op.named)
	if err == nil && !found {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return b.unbegun.errorOfPlace(ctx, name, op, err)
	}
	if b.unbegun.stands(ctx, op.rec.ID) {
		return nil
	}
	return b.refusals.strangerError(ctx, name, id, b.refusals.unassignedCause(ctx, id, op.rec.Account))
}

// checkWire stops a call before it begins an operation under a key spelled, for the API, like the key of another one of the account and
// origin. A key with quotes, sent as it is, is on the wire a key without them, sent in quotes. Both may be the same business, so nothing
// is said of an effect. Of two calls at once both may begin: keyTaken stops them before their first send.
func (b *admission) checkWire(ctx context.Context, name string, op *preparedRequest) error {
	if b.unbegun.callKey(&op.named).Random {
		return nil
	}
	other, err := b.places.Namesake(ctx, op.rec)
	switch {
	case err != nil:
		return b.unbegun.errorOfPlace(ctx, name, op, err)
	case other == "":
		return nil
	}
	if b.unbegun.stands(ctx, op.rec.ID) {
		return nil
	}
	return newError(name, unclear(op.rec.Key), errTaken(other), ErrConfig)
}

// mayBegin refuses a call about to begin an operation without credentials at an origin of others' Authorize. It
// returns nil if the call may begin, and also if a record exists, or its read fails: Begin meets both. Nothing is
// written.
func (b *admission) mayBegin(ctx context.Context, name string, op *preparedRequest) *result {
	if err := b.cfg.authorized.Look(ctx); err != nil {
		return &result{err: b.unbegun.errorOfBegin(ctx, name, op, true, err)}
	}
	lack := b.cfg.lacksCredentials(op.rec.Origin, &op.credentials)
	if lack.Need == operation.Nothing {
		return nil
	}
	if _, err := b.journal.Get(context.WithoutCancel(ctx), op.rec.ID); !errors.Is(err, persist.ErrNotFound) {
		return nil
	}
	return &result{err: b.unbegun.errorAfterRead(ctx, name, op.named, true, lack.Err(), ErrConfig)}
}
