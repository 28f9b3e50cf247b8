package memory

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// MarkReported implements [persist.Journal]: it clears Unreported of an ended record. It does nothing if there is no such record, or if the record is
// not Unreported.
func (j *Journal) MarkReported(ctx context.Context, id persist.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return errClosed()
	}
	e := j.find(id)
	if e == nil || !e.unreported {
		return nil
	}
	rec, err := e.record()
	if err != nil {
		return err
	}
	rec.Unreported = false
	rec.Revision++
	j.replace(e, &rec, codec.AppendProgress(nil, &rec, codec.Inline))
	return nil
}

// MarkDelivered implements [persist.Results]: the state of the record at this revision was handed to Config.OnResult. It returns false if the record has
// another revision, or owes nothing.
func (j *Journal) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	return j.owe(ctx, id, revision, time.Time{})
}

// Postpone implements [persist.SharedResults]: the state of the record at this revision is to be handed to Config.OnResult from this time on. It returns
// false if the record has another revision, or owes nothing.
func (j *Journal) Postpone(ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
	return j.owe(ctx, id, revision, from)
}

// owe sets OwedFrom of the record: the time from which its result is owed to Config.OnResult. The zero time means that it was delivered. It changes
// nothing, and returns false, if the record has another revision or owes nothing.
func (j *Journal) owe(ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return false, errClosed()
	}
	e := j.find(id)
	if e == nil || e.rev != revision || !e.owed() {
		return false, nil
	}
	rec, err := e.record()
	if err != nil {
		return false, err
	}
	rec.OwedFrom = from
	rec.Revision++
	j.replace(e, &rec, codec.AppendProgress(nil, &rec, codec.Inline))
	return true, nil
}
