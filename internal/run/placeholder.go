package run

import (
	"context"
	"errors"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file writes placeholders: the records of generations that were skipped, see package intent.

// placeholderTries bounds the looks at the generations below an operation, while others begin them.
const placeholderTries = 5

// placehold writes a placeholder before the first send under a next generation of a key: an ended record without a request under a lower generation,
// so that no call begins that one later. met is true if another call has begun an operation there: the caller looks once more. After an error nothing
// may be sent. After a crash between its two writes, the next run of the operation ends the placeholder.
func placehold(ctx context.Context, t *task, key string) (met bool, err error) {
	base, now := request.Base(t.rec.Account), t.engine.now().Round(0)
	for range placesMax {
		id := persist.ID{Account: base, Key: key}
		// Its place may be inside the account, by the headers of the request that select an account of the API.
		if len(t.rec.Scopes) > 0 {
			beside, err := t.engine.places.Of(ctx, id)
			if err != nil {
				return false, err
			}
			id.Account = intent.Place(base, t.rec.Scopes, beside)
		}
		rec, created, err := t.engine.writer.begin(ctx, intent.Placeholder(&t.rec, id, wireKey(t, key), now))
		switch {
		case err != nil:
			return false, err
		case !created && intent.OtherScope(t.rec.Scopes, &rec): // it has taken the place since
			continue
		// An operation was begun here: it may still take effect.
		case !created && !intent.IsSkipped(&rec):
			return true, nil
		case rec.State.Final():
			return false, nil
		}
		err = t.journal.Finish(ctx, intent.EndedPlaceholder(rec, now))
		if errors.Is(err, persist.ErrStale) || errors.Is(err, persist.ErrNotFound) {
			return true, nil
		}
		return false, err
	}
	return false, errElsewherePlace
}

// wireKey returns a key of the same operation in the form in which the API gets it; "" if the API gives the key itself. A key that the API does not
// accept is returned as it is.
func wireKey(t *task, key string) string {
	if t.rec.ServerToken {
		return ""
	}
	if wire, err := request.SpellKey(t.prof, key); err == nil {
		return wire
	}
	return key
}
