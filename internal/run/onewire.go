package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// checkWire stops a call before it begins an operation under a key spelled, for the API, like the key of another one of the account and
// origin. A key with quotes, sent as it is, is on the wire a key without them, sent in quotes. Both may be the same business, so nothing
// is said of an effect. Of two calls at once both may begin: keyTaken stops them before their first send.
func (e *engine) checkWire(ctx context.Context, name string, op *preparedRequest) error {
	if op.named.Keyless && e.cfg.randomKeys {
		return nil
	}
	other, err := e.namesake(ctx, op.rec)
	switch {
	case err != nil:
		return e.errorOfPlace(ctx, name, op, err)
	case other == "":
		return nil
	}
	if exists, err := e.exists(ctx, op.rec.ID); err == nil && exists { // nothing is begun
		return nil
	}
	return newError(name, unclear(op.rec.Key), errTaken(other), ErrConfig)
}

// namesake returns the key of another operation of the account and origin with the same key on the wire; "" if there is none.
func (e *engine) namesake(ctx context.Context, rec *persist.Record) (string, error) {
	other := request.OtherSpelling(rec)
	if other == "" {
		return "", nil
	}
	standing, err := e.journal.Get(context.WithoutCancel(ctx), persist.ID{Account: rec.Account, Key: other})
	switch {
	case errors.Is(err, persist.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case standing.Origin != rec.Origin || standing.KeyOnWire() != rec.KeyOnWire():
		return "", nil
	}
	return other, nil
}

// errTaken returns the error about another operation with the same key on the wire.
func errTaken(other string) error {
	return fmt.Errorf("on the wire it is the key of the operation %q, which was begun with another encoding of keys; go on with that one", other)
}

// keyTaken reports whether another operation has the key on the wire, with the reason as the error. It looks once in a run, when the run's own record stands: of
// two that look, the later one finds the other. So one at most is sent, in all processes, also if both were begun at once. An error alone: the journal does not tell.
func (r *run) keyTaken(ctx context.Context) (taken bool, err error) {
	if r.oneWire || r.given.AskedAgain || r.rec.Generated && !r.rec.Business {
		return false, nil
	}
	other, err := r.namesake(ctx, &r.rec)
	if other != "" {
		return true, errTaken(other)
	}
	r.oneWire = err == nil
	return false, err
}
