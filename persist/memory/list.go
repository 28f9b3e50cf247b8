package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// step is the number of records looked at in one hold of the lock.
const step = 256

// List implements [persist.Journal]: it yields the records that q selects, in the order of their begin. Records begun after the call are left out, so that a
// loop ends even if its body begins records. Most calls ask for unresolved records (a caller may still have to hear their end) and find none: these return
// at once.
func (j *Journal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	ended := ctx.Err() != nil // a nil ctx panics here, with nothing held
	j.mu.Lock()
	last := j.seq
	none := j.noneUnresolved(&q) && j.open && !ended // else listed yields the error
	j.mu.Unlock()
	if none {
		return func(func(persist.Record, error) bool) {}
	}
	return j.listed(ctx, q, last)
}

// noneUnresolved reports whether an index shows that q selects nothing, without a look at the records: q asks for unresolved records (a caller may still have
// to hear their end) or for owed results, and there are none. q.Unresolved is a fingerprint, of 32 bytes. False proves nothing. The caller holds mu.
func (j *Journal) noneUnresolved(q *persist.Query) bool {
	if len(q.Unresolved) == 32 {
		return j.unresolved[[32]byte(q.Unresolved)] == nil
	}
	return q.AnyUnresolved && len(j.unresolved) == 0 || q.Owed && len(j.owed) == 0
}

// listed yields the records that q selects, up to the Seq last. It is apart from List, and must not be inlined: then List allocates nothing if there
// is nothing to list.
//
//go:noinline
func (j *Journal) listed(ctx context.Context, q persist.Query, last uint64) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		for after := q.After; after < last; {
			found, next, err := j.page(ctx, &q, after, last)
			for i := range found {
				if !yield(found[i], nil) {
					return
				}
			}
			if err != nil {
				yield(persist.Record{}, err)
				return
			}
			after = next
		}
	}
}

// page returns the records that q selects among the next step entries after a number (Seq). next is the number to go on from. last is the highest number of
// the listing, and next is last when the listing is done. An erased record has digests for an ID: it is looked for by these, too.
func (j *Journal) page(ctx context.Context, q *persist.Query, after, last uint64) (found []persist.Record, next uint64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return nil, 0, errClosed()
	}
	entries, next := j.candidates(q, after), last
	if len(entries) > step {
		entries = entries[:step]
		next = entries[step-1].seq
	}
	erased := q.Erased(j.secret[:])
	for _, e := range entries {
		if e.seq > last || e.dropped || !e.match(q) && !(j.erased && e.match(&erased)) {
			continue
		}
		rec, err := e.record()
		if err != nil {
			return found, 0, err
		}
		found = append(found, rec)
	}
	return found, next, nil
}

// candidates returns the entries that q may select with a number (Seq) above after, oldest first. Two indexes help: of results owed to Config.OnResult, and,
// by fingerprint, of records whose end a caller without a key may still have to hear. The entries are part of the journal's own slice, not to be changed, or a
// new one made from an index. The caller holds mu.
func (j *Journal) candidates(q *persist.Query, after uint64) []*entry {
	bySeq := func(e *entry, seq uint64) int { return cmp.Compare(e.seq, seq) }
	entries := j.order
	switch {
	case q.Owed:
		entries = slices.SortedFunc(maps.Keys(j.owed), func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	case len(q.Unresolved) == 32:
		entries = nil
		for e := j.unresolved[[32]byte(q.Unresolved)]; e != nil; e = e.next {
			entries = append(entries, e)
		}
		slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	}
	from, _ := slices.BinarySearchFunc(entries, after+1, bySeq)
	return entries[from:]
}

// match reports whether q selects the entry. The record is decoded only if q asks for its needs (the requirements on a client), since all other conditions are
// about fields of the entry. A damaged record counts as selected then, so that the caller decodes it and reports the error.
func (e *entry) match(q *persist.Query) bool {
	if q.Needs != "" {
		rest := *q
		rest.Needs = ""
		if !e.match(&rest) {
			return false
		}
		rec, err := e.record()
		return err != nil || rec.Needs().String() == q.Needs
	}
	head := persist.Record{ID: e.id, Seq: e.seq, State: e.state, Generated: e.generated, Unreported: e.unreported, OwedFrom: e.owedFrom, NextAttempt: e.nextAttempt}
	head.Fingerprint, head.Origin = e.fingerprint[:], e.origin
	return q.Match(&head)
}

// Sweep implements [persist.Journal]: it drops what ended records need not keep any more by l, and returns the number of changed records. It goes through
// all records in steps, and gives up mu in between. It ends after l.Max changed records, or 10,000 if that is zero.
func (j *Journal) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	now, left := l.Now, l.Max
	if now.IsZero() {
		now = time.Now()
	}
	if left <= 0 {
		left = 10_000
	}
	total := 0
	for after := uint64(0); ; {
		n, next, more, err := j.sweepStep(ctx, &l, now, after, left-total)
		total += n
		if err != nil || !more || total == left {
			return total, err
		}
		after = next
	}
}

// sweepStep sweeps the next records after a Seq, until left of them have changed. It returns the number of changed ones, the Seq after which the next
// step begins, and whether there are more.
func (j *Journal) sweepStep(ctx context.Context, l *persist.Limits, now time.Time, after uint64, left int) (n int, next uint64, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return 0, 0, false, errClosed()
	}
	// A copy, because drop moves the entries of order.
	entries := j.candidates(&persist.Query{}, after)
	entries = slices.Clone(entries[:min(step, len(entries))])
	for _, e := range entries {
		if n == left {
			break
		}
		changed, err := j.sweepOne(e, l, now)
		if err != nil {
			return n, 0, false, err
		}
		if changed {
			n++
		}
		next = e.seq
	}
	return n, next, len(entries) == step, nil
}

// sweepOne applies the limits to one record. Depending on its age it stays, becomes a tombstone (its key is remembered, its content goes), or goes
// whole. It reports whether anything changed. The caller holds mu.
func (j *Journal) sweepOne(e *entry, l *persist.Limits, now time.Time) (changed bool, err error) {
	if e.dropped || !e.state.Final() {
		return false, nil
	}
	rec, err := e.record()
	if err != nil {
		return false, err
	}
	drop, strip := l.Sweep(&rec, now)
	switch {
	case drop:
		j.drop(e)
	case strip:
		was, erased := e.unresolved(), rec.Erased
		l.Strip(&rec, now, j.secret[:])
		rec.Revision++
		e.generated = rec.Generated
		if rec.Erased && !erased {
			j.rename(e, &rec)
		}
		e.begin(&rec) // into its room again
		if was && !e.unresolved() {
			j.unlink(e)
		}
	}
	return drop || strip, nil
}
