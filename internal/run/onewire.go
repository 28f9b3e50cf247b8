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
// is said of an effect.
func (e *engine) checkWire(ctx context.Context, name string, op *preparedRequest) error {
	other := request.OtherSpelling(op.rec)
	if other == "" || op.named.Keyless && e.cfg.randomKeys {
		return nil
	}
	rec, err := e.journal.Get(context.WithoutCancel(ctx), persist.ID{Account: op.rec.Account, Key: other})
	switch {
	case errors.Is(err, persist.ErrNotFound):
		return nil
	case err != nil:
		return e.errorOfPlace(ctx, name, op, err)
	case rec.Origin != op.rec.Origin || rec.KeyOnWire() != op.rec.KeyOnWire():
		return nil
	}
	if exists, err := e.exists(ctx, op.rec.ID); err == nil && exists { // nothing is begun
		return nil
	}
	return newError(name, unclear(op.rec.Key), fmt.Errorf("on the wire it is the key of the operation %q, which was begun with another encoding of keys; go on with that one", other), ErrConfig)
}
