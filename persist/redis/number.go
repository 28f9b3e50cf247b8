package redis

import (
	"context"
	"errors"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// met notes the number of an existing record, if it is the highest so far. The next record begun by this process gets a higher one, in any bucket.
func (j *Journal) met(number uint64) {
	for {
		old := j.seen.Load()
		if number <= old || j.seen.CompareAndSwap(old, number) {
			return
		}
	}
}

// lastNumber returns the highest number of all buckets, and raises the others to it: a record begun from now on gets a higher one, in any bucket. A journal
// opened for reading (looks) raises none.
func (j *Journal) lastNumber(ctx context.Context) (uint64, error) {
	numbers := make([]uint64, len(j.buckets))
	err := j.eachNamed(ctx, j.buckets, func(ctx context.Context, p goredis.Pipeliner, i int) {
		p.Get(ctx, j.buckets[i].keys[clock])
	}, func(i int, answer goredis.Cmder) (err error) {
		numbers[i], err = answer.(*goredis.StringCmd).Uint64()
		if errors.Is(err, goredis.Nil) {
			return nil // nothing was begun in this bucket yet
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	last := slices.Max(numbers)
	j.met(last)
	var behind []*bucket
	for i, b := range j.buckets {
		if numbers[i] < last {
			behind = append(behind, b)
		}
	}
	if j.looks {
		return last, nil
	}
	_, err = j.runEach(ctx, j.scripts.raise, behind, func(int) []any { return []any{last} })
	return last, err
}

// Now implements [persist.Claimer]. The journal's clock is the server's; in a cluster, that of the node with the first bucket. A journal opened for
// reading asks by a plain command, without a script.
func (j *Journal) Now(ctx context.Context) (now time.Time, err error) {
	if j.looks {
		err = j.read(ctx, func(ctx context.Context) error {
			now, err = j.client.Time(ctx).Result()
			return err
		})
		return now.UTC(), err
	}
	err = j.read(ctx, func(ctx context.Context) error {
		_, rest, err := j.run(ctx, j.scripts.time, j.buckets[0])
		if err != nil {
			return err
		}
		seconds, err := numberAt(rest, 0)
		micros, err2 := numberAt(rest, 1)
		now = time.Unix(int64(seconds), int64(micros)*1e3).UTC()
		if err = errors.Join(err, err2); err == nil && len(rest) > 2 { // the third value is the name of the journal in the bucket
			err = j.mustBe(j.buckets[0], rest[2])
		}
		return err
	})
	return now, err
}
