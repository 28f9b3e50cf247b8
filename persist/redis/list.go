package redis

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
)

// The bounds of one read of a listing.
const (
	refRows   = 256     // places in an index, of one bucket
	chunkRows = 256     // records
	chunkSize = 1 << 20 // bytes, about
)

// List implements [persist.Journal]: it yields the records that q selects, in the order of their begin. It reads a part at a time, and holds no connection
// while the loop body runs. Records begun after the call are left out.
func (j *Journal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		l := listing{j: j, q: &q, erased: q.Erased(j.secret), rows: chunkRows / 8} // few at first: their size is not known
		err := j.opened()
		if err == nil {
			err = l.start(ctx)
		}
		for err == nil {
			var chunk []found
			chunk, err = l.next(ctx)
			if len(chunk) == 0 {
				break
			}
			if !l.hand(ctx, chunk, yield) {
				return
			}
			err = ctx.Err()
		}
		if err != nil {
			yield(persist.Record{}, err)
		}
	}
}

// listing is one List under way.
type listing struct {
	j       *Journal
	q       *persist.Query
	erased  persist.Query // selects the erased ones
	known   []ref         // the places of all records to come, in order; used if streams is nil
	streams []*stream     // of each bucket
	rows    int           // of the next chunk
}

// stream is one bucket's part of a listing by number.
type stream struct {
	bucket *bucket
	set    index
	from   uint64 // the lowest number not read yet
	last   uint64 // the highest number to read
	read   []ref  // and not yet taken
	over   bool   // all places are read
}

// hand yields the records of a chunk, those just read, that the query selects, and the errors of damaged ones. An erased record has digests in place of its
// account and key: l.erased is the query with these. nameListed gives a used key (the rest of an erased record) the digests that it no longer has itself. It
// returns false if the loop body has ended the loop; true also if ctx has ended, and the caller looks at that.
func (l *listing) hand(ctx context.Context, chunk []found, yield func(persist.Record, error) bool) bool {
	for i := range chunk {
		f := &chunk[i]
		if ctx.Err() != nil {
			return true
		}
		if unread := new(persist.UnreadError); errors.As(f.err, &unread) && !l.q.MatchUnread(unread) {
			continue
		}
		if f.err == nil && f.isUsed() {
			l.nameListed(f)
		}
		if (f.err != nil || l.q.Match(&f.rec) || f.rec.Erased && l.erased.Match(&f.rec)) && !yield(f.rec, f.err) {
			return false
		}
		*f = found{} // the caller may keep the record for long
	}
	return true
}

// start chooses how to read the listing. A query for a key or for one fingerprint selects few records: references to them are read at once. A caller does not
// go on with such a listing from a number later, so it needs no upper bound. The others are read by number, from all buckets at the same time.
func (l *listing) start(ctx context.Context) (err error) {
	q, j := l.q, l.j
	switch {
	case q.Key != "":
		hash := hashOf(q.Key)
		l.known, err = j.gather(ctx, []*bucket{j.of(hash)}, names, beginning(hash, accountHash), q.After)
		return err
	case q.Unresolved != nil:
		l.known, err = j.gather(ctx, j.buckets, fingerprints, beginning(string(q.Unresolved), idSize), q.After)
		return err
	}
	return l.bound(ctx)
}

// beginning returns the arguments to read those members of a sorted set that begin with prefix and have up to more further bytes.
func beginning(prefix string, more int) goredis.ZRangeArgs {
	return goredis.ZRangeArgs{ByLex: true, Start: "[" + prefix, Stop: "[" + prefix + strings.Repeat("\xff", more)}
}

// bound starts a listing by number, up to the highest number given out. From then on no bucket gives out a lower one. So all records up to it are there to be
// read, and a listing continued after the last of them misses none. It reads the smallest index that has all records of the query.
func (l *listing) bound(ctx context.Context) error {
	last, err := l.j.lastNumber(ctx)
	if err != nil {
		return err
	}
	set := all
	if l.q.Owed {
		set = owed
	} else if l.q.AnyUnresolved {
		set = unresolved
	} else if len(l.q.States) > 0 && !slices.ContainsFunc(l.q.States, persist.State.Final) {
		set = unfinished
	}
	for _, b := range l.j.buckets {
		l.streams = append(l.streams, &stream{bucket: b, set: set, from: b.first(l.q.After), last: last})
	}
	return nil
}

// next reads the next records, in the order of their Seq; none at the end. By their size it sets l.rows, the number of records in the next read: about
// chunkSize bytes, but at most twice as many records as now.
func (l *listing) next(ctx context.Context) ([]found, error) {
	for {
		refs, err := l.take(ctx)
		if err != nil || len(refs) == 0 {
			return nil, err
		}
		chunk, err := l.j.fetch(ctx, refs)
		if err != nil {
			return nil, err
		}
		size := 1 // never 0: it divides below
		for i := range chunk {
			size += chunk[i].size()
		}
		l.rows = max(1, min(chunkRows, 2*len(refs), len(refs)*chunkSize/size))
		if len(chunk) > 0 { // else all of them have gone since
			return chunk, nil
		}
	}
}

// take returns references to the next records, l.rows at most: the bucket, the id and the number of each. A listing by key or fingerprint has all of them
// already (l.known), any other one merges the streams of the buckets.
func (l *listing) take(ctx context.Context) (refs []ref, err error) {
	if l.streams == nil {
		n := min(l.rows, len(l.known))
		refs, l.known = l.known[:n], l.known[n:]
		return refs, nil
	}
	for len(refs) < l.rows {
		first, err := l.first(ctx)
		if first == nil || err != nil {
			return refs, err
		}
		refs = append(refs, first.read[0])
		first.read = first.read[1:]
	}
	return refs, nil
}

// first returns the stream whose next record has the lowest Seq, or nil at the end. A stream is the part of an index in one bucket, and buckets are
// listed side by side.
func (l *listing) first(ctx context.Context) (first *stream, err error) {
	if err := l.fill(ctx); err != nil {
		return nil, err
	}
	for _, s := range l.streams {
		if len(s.read) > 0 && (first == nil || bySeq(s.read[0], first.read[0]) < 0) {
			first = s
		}
	}
	return first, nil
}

// bySeq compares two records by their numbers (Seq), the order of their begins; the result is negative if a comes first.
func bySeq(a, b ref) int { return cmp.Compare(a.seq(), b.seq()) }

// fill reads more references for each stream that has none left and is not at its end. A stream is one sorted set of a bucket, in the order of the
// listing.
func (l *listing) fill(ctx context.Context) error {
	var empty []*stream
	for _, s := range l.streams {
		if len(s.read) == 0 && !s.over {
			empty = append(empty, s)
		}
	}
	return l.j.each(ctx, len(empty), func(ctx context.Context, p goredis.Pipeliner, i int) {
		s := empty[i]
		p.ZRangeArgsWithScores(ctx, goredis.ZRangeArgs{
			Key: s.bucket.keys[s.set], ByScore: true, Start: s.from, Stop: s.last, Count: refRows,
		})
	}, func(i int, answer goredis.Cmder) error {
		members, err := answer.(*goredis.ZSliceCmd).Result()
		if err == nil {
			empty[i].take(members)
		}
		return err
	})
}

// take keeps the references that were read from the index, and notes where the next read begins, behind the last of them. Fewer than asked for (refRows) are
// the last.
func (s *stream) take(members []goredis.Z) {
	s.read = make([]ref, 0, len(members))
	for _, m := range members {
		id, _ := m.Member.(string)
		s.read = append(s.read, ref{s.bucket, id, uint64(m.Score)})
	}
	s.over = len(members) < refRows
	if n := len(s.read); n > 0 {
		s.from = s.read[n-1].number + 1
	}
}
