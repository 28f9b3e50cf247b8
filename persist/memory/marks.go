package memory

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// MarkReported implements [persist.Journal].
func (j *Journal) MarkReported(ctx context.Context, id persist.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return errClosed()
	}
	e := j.byID[id]
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

// MarkDelivered implements [persist.Results].
func (j *Journal) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return false, errClosed()
	}
	e := j.byID[id]
	if e == nil || e.rev != revision || !e.owed() {
		return false, nil
	}
	rec, err := e.record()
	if err != nil {
		return false, err
	}
	rec.OwedFrom = time.Time{}
	rec.Revision++
	j.replace(e, &rec, codec.AppendProgress(nil, &rec, codec.Inline))
	return true, nil
}
