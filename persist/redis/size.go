package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"
)

// sizeSamples is the number of fields of a key in the server's estimate of its size.
const sizeSamples = 50

// Size returns the bytes of memory of the journal's keys, as the server estimates them from some fields of each. It reads no record. A key that is not there
// counts nothing.
// Errors: ErrClosed, the context's, or the server's.
func (j *Journal) Size(ctx context.Context) (bytes int64, err error) {
	if err := j.opened(); err != nil {
		return 0, err
	}
	keys := []string{j.place}
	for _, b := range j.buckets {
		keys = append(keys, b.keys...)
	}
	sizes := make([]int64, len(keys))
	err = j.each(ctx, len(keys), func(ctx context.Context, p goredis.Pipeliner, i int) {
		p.MemoryUsage(ctx, keys[i], sizeSamples)
	}, func(i int, answer goredis.Cmder) (err error) {
		if sizes[i], err = answer.(*goredis.IntCmd).Result(); err == goredis.Nil { // there is no such key
			err = nil
		}
		return err
	})
	for _, n := range sizes {
		bytes += n
	}
	return bytes, err
}
