package redis

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// MarkDelivered implements [persist.Results]: the state of the record at this revision was handed to Config.OnResult. It returns false if the record has
// another revision, or owes nothing. It is durable on return.
func (j *Journal) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	return j.owe(ctx, id, revision, time.Time{})
}

// Postpone implements [persist.SharedResults]: the state of the record at this revision is to be handed to Config.OnResult from this time on. It returns
// false if the record has another revision, or owes nothing. It is durable on return.
func (j *Journal) Postpone(ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
	return j.owe(ctx, id, revision, from)
}

// owe sets the time from which the record's result is owed to Config.OnResult; zero: it is delivered. done is false, and nothing has changed, if the record is
// gone, has another revision, or owes nothing. The script compares the revision again.
func (j *Journal) owe(ctx context.Context, id persist.ID, revision uint64, from time.Time) (done bool, err error) {
	rec, err := j.Get(ctx, id)
	if errors.Is(err, persist.ErrNotFound) {
		return false, nil
	}
	if err != nil || rec.Revision != revision || !rec.Owed() {
		return false, err
	}
	rec.OwedFrom = from
	b := j.of(idOf(id))
	e := b.newEntry(&rec, revision+1)
	ended, over := scores(&rec)
	err = j.settle(ctx, func(ctx context.Context, _ bool) error {
		word, _, err := j.run(ctx, j.scripts.owe, b, e.id, b.numberOf(rec.Seq), revision, e.head, e.progress, ended, over)
		done = word == "done"
		return err
	})
	return done && err == nil, err
}
