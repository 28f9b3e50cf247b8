package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
)

// ref is the place of a record in an index. number is 0 if it is not known yet.
type ref struct {
	bucket *bucket
	id     string
	number uint64
}

// seq returns the record's Seq: its number in the whole journal, made of the bucket's number and its number there.
func (r ref) seq() uint64 { return r.bucket.seqOf(r.number) }

// found is a record read from the journal, or the error of its reading.
type found struct {
	*entry
	bucket *bucket
	rec    persist.Record
	err    error // persist.ErrCorrupt
}

// number returns the record's number in its bucket; 0 if the head is too short to have one.
func (e *entry) number() uint64 {
	if len(e.head) < headSize && !e.isUsed() {
		return 0
	}
	return binary.BigEndian.Uint64(e.head)
}

// size returns the entry's approximate memory in bytes. The 512 bytes are for its small fields.
func (e *entry) size() int {
	return 512 + len(e.intent) + len(e.progress) + len(e.body) + len(e.answer)
}

// each sends n commands to Redis at once: ask adds the i-th one to the pipeline. It calls answered with each answer, in order. If the connection fails, all
// are sent again: answered may be called again for the same i.
func (j *Journal) each(ctx context.Context, n int, ask func(ctx context.Context, p goredis.Pipeliner, i int), answered func(i int, answer goredis.Cmder) error) error {
	if n == 0 {
		return nil
	}
	return j.read(ctx, func(ctx context.Context) error {
		answers, err := j.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i := range n {
				ask(ctx, p, i)
			}
			return nil
		})
		if err != nil && !errors.Is(err, goredis.Nil) { // Nil: one of the values is absent, for answered to judge
			return err
		}
		for i, answer := range answers {
			if err := answered(i, answer); err != nil {
				return err
			}
		}
		return nil
	})
}

// parts reads some parts of the records that refs name, in the same order; which has a letter for each part, such as 'h' for the head. A record that is gone
// is nil. All parts of a record are read in one step, so that they fit together.
func (j *Journal) parts(ctx context.Context, refs []ref, which string) ([]*entry, error) {
	entries := make([]*entry, len(refs))
	err := j.each(ctx, len(refs), func(ctx context.Context, p goredis.Pipeliner, i int) {
		p.HMGet(ctx, refs[i].bucket.keys[records], fields(refs[i].id, which)...)
	}, func(i int, answer goredis.Cmder) error {
		values, err := answer.(*goredis.SliceCmd).Result()
		entries[i] = entryOf(refs[i].id, values)
		return err
	})
	return entries, err
}

// fetch reads the records at these places, in their order. A record is left out if it has gone or has another number by now, so that another one stands there
// (0: the reference does not say the number).
func (j *Journal) fetch(ctx context.Context, refs []ref) ([]found, error) {
	entries, err := j.parts(ctx, refs, everyPart)
	if err != nil {
		return nil, err
	}
	chunk := make([]found, 0, len(refs))
	for i, e := range entries {
		if e == nil || refs[i].number != 0 && e.number() != refs[i].number {
			continue
		}
		f := found{entry: e, bucket: refs[i].bucket}
		f.rec, f.err = e.record(f.bucket)
		chunk = append(chunk, f)
	}
	return chunk, nil
}

// gather asks all of the buckets for members of a sorted set, and returns references to their records with a Seq above after, in order. The ids are the last
// bytes of the members. An emptied Redis is persist.ErrGone, since it would seem to have none.
func (j *Journal) gather(ctx context.Context, buckets []*bucket, set index, within goredis.ZRangeArgs, after uint64) ([]ref, error) {
	members := make([][]string, len(buckets))
	err := j.eachNamed(ctx, buckets, func(ctx context.Context, p goredis.Pipeliner, i int) {
		within.Key = buckets[i].keys[set]
		p.ZRangeArgs(ctx, within)
	}, func(i int, answer goredis.Cmder) (err error) {
		members[i], err = answer.(*goredis.StringSliceCmd).Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	var refs []ref
	for i, b := range buckets {
		for _, member := range members[i] {
			refs = append(refs, ref{bucket: b, id: member[max(0, len(member)-idSize):]})
		}
	}
	return j.inOrder(ctx, refs, after)
}

// inOrder reads the numbers (Seq) of the records that refs name, and returns the references in the order of these. It leaves out those up to the number
// after, and those no longer there.
func (j *Journal) inOrder(ctx context.Context, refs []ref, after uint64) ([]ref, error) {
	numbered := make([]ref, 0, len(refs))
	for part := range slices.Chunk(refs, refRows) {
		heads, err := j.parts(ctx, part, "h")
		if err != nil {
			return nil, err
		}
		for i, e := range heads {
			if e == nil {
				continue
			}
			r := ref{part[i].bucket, part[i].id, e.number()}
			if r.seq() > after {
				numbered = append(numbered, r)
			}
		}
	}
	slices.SortFunc(numbered, bySeq)
	return numbered, nil
}
