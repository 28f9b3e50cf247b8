package redis

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// The index origins has the pending records of one origin, needs and account beside each other; they are a group. First
// come those without a lease, by NextAttempt, then those with one, by its end. A place in it is the hash of the origin,
// the hash of the text of persist.Record.Needs, the account's hash as in the id, 'f' (free) or 'l' (leased), the time,
// and the id.
const (
	originSize = 12
	needsSize  = 8
	groupSize  = originSize + needsSize + accountHash
	placeSize  = groupSize + 1 + instantSize // without the id

	instantSize = 12
)

// yearOne is added to seconds since 1970, so none is negative.
const yearOne = 62135596800

// originHash returns the first bytes of the index members of an origin: a part of its hash.
func originHash(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return string(sum[:originSize])
}

// needsHash returns the bytes for a record's needs (the requirements on a client that sends it, such as a credential) in a member of an index: the first
// ones of a hash of their text.
func needsHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:needsSize])
}

// groupHash returns the first bytes of a record's member in the index by due times: hashes of its origin and its needs (the requirements on a client that
// sends it). The member's third part is that of the account.
func groupHash(rec *persist.Record) string {
	return originHash(rec.Origin) + needsHash(rec.Needs().String())
}

// groupNames are the names behind a group.
type groupNames struct {
	rec   persist.Record // the account and the origin alone
	needs string         // the text of its needs
}

// instant returns a time in the form of index members, whose order as bytes is that of the times: seconds since the year 1 (yearOne makes none negative), and
// nanoseconds. The scripts write the same form.
func instant(t time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(max(t.Unix()+yearOne, 0)))
	return string(binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond())))
}

// timeOf returns the time that instant has written into b: seconds since the year 1, and nanoseconds.
func timeOf(b []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(b))-yearOne, int64(binary.BigEndian.Uint32(b[8:]))).UTC()
}

// turn is the first free record of a group in one bucket, or a record after the end of its lease.
type turn struct {
	ref
	group string
	at    time.Time // its NextAttempt
	groupNames
}

// DueTimes implements [persist.DueTimes]: it returns the first due time of the pending records of each origin with the same needs, such as a credential. An
// index in each bucket has the due times by groups: the records of one account, origin and needs. A turn is the record of a group that is due first.
func (j *Journal) DueTimes(ctx context.Context, q persist.Query) (all []persist.DueTime, err error) {
	now, err := j.Now(ctx)
	if err != nil {
		return nil, err
	}
	turns, err := j.turns(ctx, &q, now)
	if err != nil {
		return nil, err
	}
	type of struct{ origin, needs string }
	first := map[of]time.Time{}
	for _, t := range turns {
		in := of{t.rec.Origin, t.needs}
		if at, known := first[in]; !known || t.at.Before(at) {
			first[in] = t.at
		}
	}
	for in, at := range first {
		all = append(all, persist.DueTime{Origin: in.origin, Needs: in.needs, At: at})
	}
	return all, nil
}

// linesOf returns the lines with the due records of the query's origin: parts of an index, each of one group (the records of one account, origin and needs). A
// group has two, for free records (f) and for those with a lease (l), up to the present: their lease is over then.
func (j *Journal) linesOf(ctx context.Context, q *persist.Query, now time.Time) (lines []*line, err error) {
	turns, err := j.turns(ctx, q, now)
	seen := map[string]bool{}
	for _, t := range turns {
		key := t.bucket.keys[origins]
		if seen[key+t.group] { // a group can have several turns
			continue
		}
		seen[key+t.group] = true
		for _, mark := range []string{"f", "l"} {
			begin := t.group + mark
			lines = append(lines, &line{bucket: t.bucket, within: goredis.ZRangeArgs{
				Key: key, ByLex: true, Start: "[" + begin, Stop: "[" + begin + instant(now) + strings.Repeat("\xff", idSize),
			}})
		}
	}
	return lines, err
}

// placesIn returns the ids in the answer to a read of a line, scored by the time from which each is due. One of the two indexes has the time as its
// score, the other within its members.
func placesIn(answer goredis.Cmder) (places []goredis.Z, err error) {
	if scored, ok := answer.(*goredis.ZSliceCmd); ok {
		return scored.Result()
	}
	members, err := answer.(*goredis.StringSliceCmd).Result()
	for _, m := range members {
		if len(m) != placeSize+idSize {
			return nil, fmt.Errorf("%w: an index has a place of %d bytes", persist.ErrCorrupt, len(m))
		}
		at := []byte(m[groupSize+1 : placeSize])
		seconds := float64(binary.BigEndian.Uint64(at)) - yearOne
		places = append(places, goredis.Z{Member: m[placeSize:], Score: seconds*1e6 + float64(binary.BigEndian.Uint32(at[8:]))/1e3})
	}
	return places, err
}

// turns returns the turns of the groups selected by q, of each bucket. A group is the records of one account, origin and needs (the requirements on a client).
// Other conditions of q are left to the caller, as a group tells nothing of them. Its turns are the pending record without a lease that is due first, and
// those whose lease is over. An unreadable record does not hide the others of its group: it is passed over, and all buckets are asked anew.
func (j *Journal) turns(ctx context.Context, q *persist.Query, now time.Time) ([]turn, error) {
	q = &persist.Query{Account: q.Account, AllAccounts: q.AllAccounts, Origin: q.Origin, Needs: q.Needs}
	over := map[*bucket][]any{} // ids to pass over
	for {
		all, err := j.allTurns(ctx, q, now, over)
		if err != nil {
			return nil, err
		}
		known, err := j.identify(ctx, all, over)
		if err != nil {
			return nil, err
		}
		if known {
			return selected(q, all), nil
		}
	}
}

// selected returns the turns that q selects. A turn is a record of a group that is due first; a group is the records of one account, origin and needs (the
// requirements on a client). t.rec has the account and origin alone, and t.needs the text of the needs.
func selected(q *persist.Query, all []turn) (turns []turn) {
	accounts := *q
	accounts.Needs = ""
	for _, t := range all {
		if accounts.Match(&t.rec) && (q.Needs == "" || q.Needs == t.needs) {
			turns = append(turns, t)
		}
	}
	return turns
}

// allTurns asks each bucket for its turns: of each group, the pending record without a lease that is due first, and those whose lease is over. The query's
// origin, and its needs if there is an origin, select the groups by their first bytes (hashes); without an origin all are read, and the caller selects by
// needs. over has, for each bucket, the ids of damaged records, which the script passes over. For each turn the script answers with three values.
func (j *Journal) allTurns(ctx context.Context, q *persist.Query, now time.Time, over map[*bucket][]any) (all []turn, err error) {
	groups := "" // the first bytes of the groups to be read
	switch {
	case q.Origin != "" && q.Needs != "":
		groups = originHash(q.Origin) + needsHash(q.Needs)
	case q.Origin != "":
		groups = originHash(q.Origin)
	}
	answers, err := j.runEach(ctx, j.scripts.turns, j.buckets, func(i int) []any {
		return append(append(seconds(now), groups), over[j.buckets[i]]...)
	})
	for i, rest := range answers {
		for at := 0; at+2 < len(rest); at += 3 {
			t, err := j.buckets[i].turnOf(rest[at], rest[at+1], rest[at+2])
			if err != nil {
				return nil, j.failed(err)
			}
			all = append(all, t)
		}
	}
	return all, err
}

// turnOf reads one turn, a record due first in its group (one account, origin and needs), out of a script's answer. place has the group and the record's id;
// sec and nano are its due time in seconds and nanoseconds. Error: persist.ErrCorrupt.
func (b *bucket) turnOf(place, sec, nano any) (turn, error) {
	p, _ := place.(string)
	s, _ := sec.(string)
	n, _ := nano.(string)
	secs, err := strconv.ParseInt(s, 10, 64)
	nanos, err2 := strconv.ParseInt(n, 10, 64)
	if len(p) != placeSize+idSize || err != nil || err2 != nil {
		return turn{}, fmt.Errorf("%w: bucket %d has answered with a place of %d bytes, due at %q and %q", persist.ErrCorrupt, b.number, len(p), s, n)
	}
	return turn{ref: ref{bucket: b, id: p[placeSize:]}, group: p[:groupSize], at: time.Unix(secs, nanos).UTC()}, nil
}

// identify fills in the names of the groups: the origin, account and needs (the requirements on a client) common to a group's records. It reads one record of
// each group that this process has not met; j.groups remembers the names for later calls. If that is damaged, its id goes into over; if it is damaged or has
// gone, known is false, and the caller asks for the turns again.
func (j *Journal) identify(ctx context.Context, all []turn, over map[*bucket][]any) (known bool, err error) {
	var refs []ref
	var groups []string
	for i := range all {
		if _, met := j.groups.Load(all[i].group); !met {
			refs, groups = append(refs, all[i].ref), append(groups, all[i].group)
		}
	}
	entries, err := j.parts(ctx, refs, "hip") // head, intent and progress: all but the bodies
	if err != nil {
		return false, err
	}
	known = true
	for i, e := range entries {
		if e == nil {
			known = false
		} else if names, ok := e.groupNames(groups[i]); !ok {
			known = false
			over[refs[i].bucket] = append(over[refs[i].bucket], refs[i].id)
		} else {
			j.groups.Store(groups[i], names)
		}
	}
	for i := range all {
		if names, met := j.groups.Load(all[i].group); met {
			all[i].groupNames = names.(groupNames)
		}
	}
	return known, nil
}

// groupNames reads the names of a group, the account, origin and needs (the requirements on a client) common to its records, from one of its entries. group
// has hashes of the three. ok is false if the entry is damaged, or its hashes are others. Of the needs of an entry of another format only the format is known,
// whatever their hash is.
func (e *entry) groupNames(group string) (names groupNames, ok bool) {
	var rec persist.Record
	if e.format() != persist.Format {
		begin, err := codec.PeekIntent(e.intent)
		if err != nil {
			return names, false
		}
		rec.ID, rec.Origin = persist.ID{Account: string(begin.Account), Key: string(begin.Key)}, string(begin.Origin)
	} else {
		_, err := codec.DecodeIntent(e.intent, &rec)
		if err == nil {
			_, err = codec.DecodeProgress(e.progress, &rec)
		}
		if err != nil || group[originSize:originSize+needsSize] != needsHash(rec.Needs().String()) {
			return names, false
		}
	}
	// Query.Match selects no record without a Seq.
	names = groupNames{rec: persist.Record{ID: persist.ID{Account: rec.Account}, Origin: rec.Origin, Seq: 1}, needs: e.needsOf(&rec)}
	return names, group[:originSize] == originHash(rec.Origin) && group[originSize+needsSize:] == idOf(rec.ID)[keyHash:]
}
