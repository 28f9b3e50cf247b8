package redis

import (
	"context"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// sweepRows is the number of records in one step of a sweep.
const sweepRows = 128

// sweepMax is the number of records changed by a sweep if Limits.Max is zero.
const sweepMax = 10_000

// sweeping is one Sweep under way.
type sweeping struct {
	j     *Journal
	l     persist.Limits
	total int
}

// shelf is an index and the highest score in it of a possible record to sweep.
type shelf struct {
	set  index
	upTo string
}

// Sweep implements [persist.Journal]: it returns the number of records that it has changed or removed. If l.Now is zero it takes the time from the server's
// clock. It goes through a few indexes (shelves) of ended records. Each step is one script, and passes over records changed since they were read.
func (j *Journal) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if l.Max <= 0 {
		l.Max = sweepMax
	}
	if l.Now.IsZero() {
		now, err := j.Now(ctx)
		if err != nil {
			return 0, err
		}
		l.Now = now
	}
	s := sweeping{j: j, l: l}
	for _, shelf := range s.shelves() {
		if err := s.clear(ctx, shelf); err != nil {
			return s.total, err
		}
	}
	return s.total, nil
}

// shelves returns the indexes of the records that the sweep may change, each with the highest score (a time) of those to be read: ended records with their
// answer, tombstones with an end that no caller was told, and tombstones of chosen keys. There can be millions of the last: they are read only when they may
// go. A prune (a sweep with shorter times) cannot use the time of a record's next sweep: it reads by the time of the end, or all tombstones.
func (s *sweeping) shelves() []shelf {
	answers, keys := shelf{expiring, s.ago(0)}, shelf{tombstones, s.ago(0)}
	if s.l.Prune && s.l.KeepAnswer != 0 {
		answers = shelf{finished, s.ago(s.l.KeepAnswer)}
	}
	if s.l.Prune && (s.l.KeepKey != 0 || s.l.KeepText != 0) {
		keys.upTo = "+inf"
	}
	return []shelf{answers, {unreported, s.ago(0)}, keys}
}

// ago returns the highest score of the records to be read, those with a time that lies keep or more before the present. The time is that of their end, or,
// with a keep of 0, that of their next sweep. With a negative keep it returns one above all scores.
func (s *sweeping) ago(keep time.Duration) string {
	if keep < 0 {
		return "+inf"
	}
	at := s.l.Now.Add(-keep)
	return strconv.FormatInt(microseconds(at.Unix(), at.Nanosecond()), 10)
}

// clear sweeps one shelf in all buckets, the oldest records first. A shelf is an index together with the highest score that is due. passed counts, for each
// bucket, the records that stay as they are: the next read skips as many.
func (s *sweeping) clear(ctx context.Context, from shelf) error {
	buckets, passed := s.j.buckets, make([]int, len(s.j.buckets))
	for more := true; more && s.total < s.l.Max; {
		places, err := s.places(ctx, from, passed)
		if err != nil {
			return err
		}
		more = false
		for i, ids := range places {
			ids = ids[:min(len(ids), s.l.Max-s.total)]
			if len(ids) == 0 {
				continue
			}
			changed, err := s.step(ctx, buckets[i], ids)
			if err != nil {
				return err
			}
			s.total += changed
			passed[i] += len(ids) - changed
			more = true
		}
	}
	return nil
}

// places reads the ids of the next records of a shelf (an index with the highest due score), for each bucket. passed tells how many records of the
// bucket to leave out: they stay as they are.
func (s *sweeping) places(ctx context.Context, from shelf, passed []int) ([][]string, error) {
	places := make([][]string, len(passed))
	err := s.j.each(ctx, len(passed), func(ctx context.Context, p goredis.Pipeliner, i int) {
		p.ZRangeArgs(ctx, goredis.ZRangeArgs{
			Key: s.j.buckets[i].keys[from.set], ByScore: true, Start: "-inf", Stop: from.upTo, Offset: int64(passed[i]), Count: sweepRows,
		})
	}, func(i int, answer goredis.Cmder) (err error) {
		places[i], err = answer.(*goredis.StringSliceCmd).Result()
		return err
	})
	return places, err
}

// step applies the limits to the records ids of one bucket, in one script. It returns the number of changed records: the script leaves out those that have
// changed since they were read. A damaged record stays as it is.
func (s *sweeping) step(ctx context.Context, b *bucket, ids []string) (changed int, err error) {
	refs := make([]ref, len(ids))
	for i, id := range ids {
		refs[i] = ref{bucket: b, id: id}
	}
	entries, err := s.j.parts(ctx, refs, "hip") // all but the bodies
	if err != nil {
		return 0, err
	}
	var args []any
	for _, e := range entries {
		if e == nil {
			continue
		}
		if rec, _, _, err := e.withoutBodies(b); err == nil {
			args = append(args, s.change(b, &rec, e)...)
		}
	}
	if len(args) == 0 {
		return 0, nil
	}
	err = s.j.attempt(ctx, func(ctx context.Context) error {
		_, rest, err := s.j.run(ctx, s.j.scripts.sweep, b, args...)
		if err != nil {
			return err
		}
		n, err := numberAt(rest, 0)
		changed = int(n)
		return err
	})
	return changed, err
}

// change returns the arguments of the sweep's script for one record: its id, number and revision, then its new parts, the times of its end and next sweep, and
// whether the answer stays ("stays", or "" to delete it). Empty parts delete the record. nil means that the record stays as it is. was is the entry that was
// read. A record that loses its text gets a digest for an ID, or, if it packs, becomes a used key: a head of a few bytes.
func (s *sweeping) change(b *bucket, rec *persist.Record, was *entry) []any {
	drop, strip := s.l.Sweep(rec, s.l.Now)
	seq, revision := b.numberOf(rec.Seq), rec.Revision
	switch {
	case drop:
		return []any{was.id, seq, revision, "", "", "", "", "", ""}
	case strip:
		erased, packs, wireKey, id := rec.Erased, usedkey.MayPack(rec), rec.WireKey, rec.ID
		s.l.Strip(rec, s.l.Now, s.j.secret)
		if packs = packs && rec.Erased && !erased; rec.Erased && !erased {
			rec.ID = persist.ErasedID(s.j.secret, rec.ID)
		}
		rec.Revision++
		e, answer := b.newEntry(rec, rec.Revision), ""
		if packs {
			e.pack(rec, wireKey, id)
		}
		if !rec.Swept { // the answer stays
			e.progress, answer = codec.WithRequestDropped(was.progress), "stays"
		}
		ended, over := scores(rec)
		return []any{was.id, seq, revision, e.head, e.intent, e.progress, ended, over, answer}
	}
	return nil
}
