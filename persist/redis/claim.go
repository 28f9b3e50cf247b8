package redis

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
)

// claiming is one Claim under way.
type claiming struct {
	j     *Journal
	q     *persist.Query
	now   time.Time
	until time.Time
	owner string
	lines []*line          // of each bucket; if the query names an origin, two of each group of needs in each account there
	from  map[string]*line // by id: the line of its place

	claimed []persist.Record
	damaged error // of an unreadable record
}

// line is the due records of one bucket, or a part of them, longest first.
type line struct {
	bucket *bucket
	within goredis.ZRangeArgs // of due by score, or of origins by member
	read   []goredis.Z        // by the time from which they are due; not yet looked at
	left   int64              // places read and still in the index: looked at in vain, or not yet
	over   bool               // all places are read
}

// Claim implements [persist.Claimer]: it gives up to n due records to owner, for the time of a lease, and returns them, with the time by the journal's clock.
// In a cluster the clock of one node counts for all nodes. A damaged record is passed over; its error is returned only if nothing could be claimed.
func (j *Journal) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	now, err := j.Now(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	c := claiming{j: j, q: &q, now: now, until: now.Add(lease), owner: owner, from: map[string]*line{}}
	if err := c.start(ctx); err != nil {
		return nil, now, err
	}
	for len(c.claimed) < n {
		refs, err := c.next(ctx, n-len(c.claimed))
		if err == nil && len(refs) > 0 {
			err = c.take(ctx, refs)
		}
		if err != nil {
			return c.claimed, now, err
		}
		if len(refs) == 0 {
			break
		}
	}
	if len(c.claimed) == 0 {
		return nil, now, c.damaged
	}
	return c.claimed, now, nil
}

// start chooses the index that a claim reads: that of the due records of each origin if the query names an origin, else that of all due records. A
// line is the part of such an index in one bucket.
func (c *claiming) start(ctx context.Context) (err error) {
	if c.q.Origin != "" {
		c.lines, err = c.j.linesOf(ctx, c.q, c.now)
		return err
	}
	upTo := strconv.FormatInt(microseconds(c.now.Unix(), c.now.Nanosecond()), 10)
	for _, b := range c.j.buckets {
		c.lines = append(c.lines, &line{bucket: b, within: goredis.ZRangeArgs{Key: b.keys[due], ByScore: true, Start: "-inf", Stop: upTo}})
	}
	return nil
}

// next returns references to the next n records of this claim, from an index by due time: those due for longest first, each record once. c.from notes the line
// (the part of the index in one bucket) that each is from. Fewer: the index has no more.
func (c *claiming) next(ctx context.Context, n int) (refs []ref, err error) {
	for len(refs) < n {
		if err := c.fill(ctx, n); err != nil {
			return nil, err
		}
		var first *line
		for _, l := range c.lines {
			if len(l.read) > 0 && (first == nil || l.read[0].Score < first.read[0].Score) {
				first = l
			}
		}
		if first == nil {
			break
		}
		id, _ := first.read[0].Member.(string)
		refs = append(refs, ref{bucket: first.bucket, id: id})
		c.from[id] = first
		first.read = first.read[1:]
	}
	return refs, nil
}

// fill reads up to n more references for each line (the part of an index in one bucket) that has none left. A line is over once a read returns fewer than n. A
// read goes on behind the places already read and still in the index (left): a claimed record leaves its place, and the others stay. One of the two kinds of
// index is ordered by members (ByLex), the other by scores.
func (c *claiming) fill(ctx context.Context, n int) error {
	var empty []*line
	for _, l := range c.lines {
		if len(l.read) == 0 && !l.over {
			empty = append(empty, l)
		}
	}
	return c.j.each(ctx, len(empty), func(ctx context.Context, p goredis.Pipeliner, i int) {
		within := empty[i].within
		within.Offset, within.Count = empty[i].left, int64(n)
		if within.ByLex {
			p.ZRangeArgs(ctx, within)
		} else {
			p.ZRangeArgsWithScores(ctx, within)
		}
	}, func(i int, answer goredis.Cmder) error {
		places, err := placesIn(answer)
		if err == nil {
			empty[i].read, empty[i].over = places, len(places) < n
			empty[i].left += int64(len(places))
		}
		return err
	})
}

// take reads the records that refs name (bucket and id of each). It claims those that the query selects and nobody has a lease of, and adds them to c.claimed.
// One that cannot be read is left out; the error of a damaged one is kept in c.damaged.
func (c *claiming) take(ctx context.Context, refs []ref) error {
	chunk, err := c.j.fetch(ctx, refs)
	if err != nil {
		return err
	}
	chunk = slices.DeleteFunc(chunk, func(f found) bool {
		if f.err != nil && !errors.Is(f.err, persist.ErrNewer) {
			c.damaged = c.j.failed(f.err)
		}
		return f.err != nil || !c.free(&f.rec)
	})
	ours, err := c.lease(ctx, chunk)
	for _, f := range chunk {
		if !ours[f.id] {
			continue
		}
		f.rec.TakeLease(c.owner, c.until)
		f.rec.Revision++
		f.rec.Drives++
		c.claimed = append(c.claimed, f.rec)
		c.from[f.id].left-- // it is no longer due, and has left its line: the next read skips one place less
	}
	return err
}

// free reports whether the record, as it was read, can be claimed: the query selects it, it is pending and due, and nobody has a lease of it, the claimer
// neither.
func (c *claiming) free(rec *persist.Record) bool {
	return rec.State == persist.StatePending && !rec.NextAttempt.After(c.now) && !rec.Leased("", c.now) && c.q.Match(rec)
}

// lease writes the lease into those records of the chunk (just read) that have not changed since they were read (by number and revision), by one script for
// each bucket (a part of the journal). ours has the ids of the records that this claim now has.
func (c *claiming) lease(ctx context.Context, chunk []found) (ours map[string]bool, err error) {
	begin := append(append(seconds(c.now), c.owner), seconds(c.until)...)
	parts := byBucket{}
	for _, f := range chunk {
		parts.add(f.bucket, f.id, begin, f.bucket.numberOf(f.rec.Seq), f.rec.Revision)
	}
	return c.j.runParts(ctx, c.j.scripts.claim, parts)
}

// seconds returns a time in the form of the scripts: seconds since 1970 and nanoseconds.
func seconds(t time.Time) []any { return []any{t.Unix(), t.Nanosecond()} }

// Renew implements [persist.Claimer]: it extends the leases that owner has on these records, and returns the ids of the records that owner still has.
func (j *Journal) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) (held []persist.ID, now time.Time, err error) {
	if now, err = j.Now(ctx); err != nil {
		return nil, time.Time{}, err
	}
	begin := append([]any{owner}, seconds(now.Add(lease))...)
	parts, byID := byBucket{}, map[string]persist.ID{}
	for _, id := range ids {
		name := idOf(id)
		byID[name] = id
		parts.add(j.of(name), name, begin)
	}
	ours, err := j.runParts(ctx, j.scripts.renew, parts)
	for name := range ours {
		held = append(held, byID[name])
	}
	return held, now, err
}

// byBucket holds a script's arguments in each bucket, about some records of that bucket.
type byBucket map[*bucket]*part

// part holds the arguments in one bucket.
type part struct {
	ids  []string
	args []any
}

// add adds a record to the arguments of its bucket's script. begin are the arguments before the first record, and more those that follow the record's
// id.
func (p byBucket) add(b *bucket, id string, begin []any, more ...any) {
	if p[b] == nil {
		p[b] = &part{args: slices.Clone(begin)}
	}
	p[b].ids = append(p[b].ids, id)
	p[b].args = append(append(p[b].args, id), more...)
}

// runParts runs a script for the records of each bucket, and returns the ids of the records that it has changed. The script answers with their places
// among its arguments, counted from 0.
func (j *Journal) runParts(ctx context.Context, s script, parts byBucket) (changed map[string]bool, err error) {
	buckets := slices.Collect(maps.Keys(parts))
	answers, err := j.runEach(ctx, s, buckets, func(i int) []any { return parts[buckets[i]].args })
	if err != nil {
		return nil, err
	}
	changed = map[string]bool{}
	for i, b := range buckets {
		for at := range answers[i] {
			n, err := numberAt(answers[i], at)
			if err != nil {
				return changed, err
			}
			changed[parts[b].ids[n]] = true
		}
	}
	return changed, nil
}
