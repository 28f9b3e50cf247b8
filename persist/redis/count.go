package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
)

// The fields of counts.
const (
	countPending = "p"
	countHeld    = 'h' // and the reason
)

// Count implements [persist.Counter]: it returns the numbers of pending and held records and of owed results, the begin of the oldest unfinished record, and
// the next due time. It reads four small values of each bucket. The numbers of a bucket are of one moment, those of a cluster not.
func (j *Journal) Count(ctx context.Context) (persist.Counts, error) {
	if err := j.opened(); err != nil {
		return persist.Counts{}, err
	}
	c := persist.Counts{Held: map[persist.HoldReason]int{}}
	numbers := make([]map[string]string, len(j.buckets))
	err := j.eachNamed(ctx, j.buckets, func(ctx context.Context, p goredis.Pipeliner, i int) {
		p.HGetAll(ctx, j.buckets[i].keys[counts])
	}, func(i int, answer goredis.Cmder) (err error) {
		numbers[i], err = answer.(*goredis.MapStringStringCmd).Result()
		return err
	})
	for i := 0; i < len(numbers) && err == nil; i++ {
		err = j.failed(addCounts(&c, numbers[i]))
	}
	if err == nil {
		c.Owed, err = j.countOwed(ctx)
	}
	if err == nil {
		c.Oldest, err = j.oldest(ctx)
	}
	if err == nil {
		c.NextDue, err = j.nextDue(ctx)
	}
	if err != nil {
		return persist.Counts{}, err
	}
	return c, nil
}

// addCounts adds the numbers of unfinished records of one bucket, as they stand in its hash: those pending, and those held, by reason. A field of another
// name, of a later version, is passed over.
func addCounts(c *persist.Counts, numbers map[string]string) error {
	for field, text := range numbers {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < 0:
			return fmt.Errorf("%w: a number of unfinished records is %q", persist.ErrCorrupt, text)
		case field == countPending:
			c.Pending += n
		case field != "" && field[0] == countHeld:
			c.Held[persist.HoldReason(field[1:])] += n
		}
	}
	return nil
}

// countOwed returns the number of records whose state is still owed to Config.OnResult.
func (j *Journal) countOwed(ctx context.Context) (n int, err error) {
	numbers := make([]int64, len(j.buckets)) // a call that is made again sets them again
	err = j.each(ctx, len(j.buckets), func(ctx context.Context, p goredis.Pipeliner, i int) {
		p.ZCard(ctx, j.buckets[i].keys[owed])
	}, func(i int, answer goredis.Cmder) (err error) {
		numbers[i], err = answer.(*goredis.IntCmd).Result()
		return err
	})
	for _, some := range numbers {
		n += int(some)
	}
	return n, err
}

// oldest returns the earliest Created of the unfinished records, or zero if there are none. Each bucket has an index by it.
func (j *Journal) oldest(ctx context.Context) (oldest time.Time, err error) {
	err = j.each(ctx, len(j.buckets), func(ctx context.Context, p goredis.Pipeliner, i int) {
		p.ZRange(ctx, j.buckets[i].keys[ages], 0, 0)
	}, func(_ int, answer goredis.Cmder) error {
		members, err := answer.(*goredis.StringSliceCmd).Result()
		if err != nil || len(members) == 0 {
			return err
		}
		if len(members[0]) != instantSize+idSize {
			return fmt.Errorf("%w: an index has a place of %d bytes", persist.ErrCorrupt, len(members[0]))
		}
		if at := timeOf([]byte(members[0])); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
		return nil
	})
	return oldest, err
}

// nextDue returns the earliest time from which a pending record can be claimed, or zero if there is none, or if one can be claimed at once.
func (j *Journal) nextDue(ctx context.Context) (next time.Time, err error) {
	found := false
	err = j.each(ctx, len(j.buckets), func(ctx context.Context, p goredis.Pipeliner, i int) {
		p.ZRangeWithScores(ctx, j.buckets[i].keys[due], 0, 0)
	}, func(_ int, answer goredis.Cmder) error {
		places, err := answer.(*goredis.ZSliceCmd).Result()
		if err != nil || len(places) == 0 {
			return err
		}
		// The least score is that of a record without a due time (the zero time, in the year 1): at once.
		at := time.Time{}
		if micros := int64(places[0].Score); micros > -yearOne*1e6 {
			at = time.UnixMicro(micros).UTC()
		}
		if !found || at.Before(next) {
			next, found = at, true
		}
		return nil
	})
	return next, err
}
