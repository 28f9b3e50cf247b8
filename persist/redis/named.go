package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
)

// A journal has a random name, and each of its buckets bears it. A bucket without it was emptied: by FLUSHALL, or by a
// restart of its server without its append-only file. Such a bucket wrongly shows a used key as
// never used.

// nameField is the field for the name in the hash of a bucket. A part of a record has a longer one.
const nameField = "journal"

// giveNames writes the journal's name (its id) into each bucket of a new journal, and then notes in the journal's hash that all have it. Until then each Open
// does so, as an earlier one may have been cut off. A bucket without a name later shows that Redis was emptied.
func (j *Journal) giveNames(ctx context.Context, place string) error {
	_, err := j.runEach(ctx, j.scripts.name, j.buckets, func(int) []any { return []any{j.id} })
	if err != nil {
		return err
	}
	return j.client.HSet(ctx, place, "named", "yes").Err()
}

// mustBe compares the name read from a bucket with the id of the journal. If it is another one or missing, Redis was emptied after the journal was
// made, and the error is persist.ErrGone.
func (j *Journal) mustBe(b *bucket, name any) error {
	if name == j.id {
		return nil
	}
	return fmt.Errorf("%w: bucket %d was emptied since the journal was made: what was sent is not known there; restore its append-only file, or use another prefix once you have compared with what the API did", persist.ErrGone, b.number)
}

// eachNamed does the work of each, with one command for each bucket, for reads that may find nothing: it also checks the buckets' names, since an
// emptied Redis finds nothing, either. Error: persist.ErrGone.
func (j *Journal) eachNamed(ctx context.Context, buckets []*bucket, ask func(ctx context.Context, p goredis.Pipeliner, i int), answered func(i int, answer goredis.Cmder) error) error {
	n := len(buckets)
	return j.each(ctx, 2*n, func(ctx context.Context, p goredis.Pipeliner, i int) {
		if i < n {
			ask(ctx, p, i)
			return
		}
		p.HGet(ctx, buckets[i-n].keys[records], nameField)
	}, func(i int, answer goredis.Cmder) error {
		if i < n {
			return answered(i, answer)
		}
		name, err := answer.(*goredis.StringCmd).Result()
		if err != nil && !errors.Is(err, goredis.Nil) {
			return err
		}
		return j.mustBe(buckets[i-n], name)
	})
}
