package bolt

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

const (
	// pageMax is how many records one transaction reads. pageBytes is after how many bytes of bodies it
	// ends early. A read transaction keeps bbolt from using freed pages again, and a listing's memory must
	// stay flat.
	pageMax   = 64
	pageBytes = 1 << 20
)

// found is one result of a listing.
type found struct {
	rec persist.Record
	err error
}

// List implements [persist.Journal]: it yields the records that q selects, in the order of their begin. It leaves out records begun after the call, so that a
// loop ends even if its body begins records. An ID of an erased record is made of digests. If the journal may have such records (erases), they are looked for
// under the digests of q's account and key, too: in full, and cut short, as a used key has them (the little that stays of such a record in the file).
func (j *Journal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if err := j.start(ctx); err != nil {
		return failed(err)
	}
	j.mu.Lock()
	last, erases := j.seq, j.erases
	// Asked before every operation without a key, and nearly always in vain.
	none := j.noneUnresolved(&q) && j.usable() == nil // else listed yields the error
	j.mu.Unlock()
	if none {
		return nothing
	}
	l := listing{j: j, q: &q, last: last}
	if erased := q.Erased(j.secret[:]); erases && (erased.Account != q.Account || erased.Key != q.Key) {
		short := erased
		short.Account, short.Key = cutNames(erased.Account, erased.Key)
		l.erased = []persist.Query{erased, short}
	}
	return l.listed(ctx)
}

// noneUnresolved reports whether memory alone proves that q selects nothing, so that List need not read. It does if q asks for unresolved records (a caller
// without a key may still have to hear their end) or for owed results, and their index has none. False proves nothing. The caller holds mu.
func (j *Journal) noneUnresolved(q *persist.Query) bool {
	if len(q.Unresolved) > 0 {
		return !j.unresolved.has(j.hash.fingerprint(q.Unresolved))
	}
	return q.AnyUnresolved && len(j.unresolved.first) == 0 || q.Owed && j.slots.owed == 0
}

// failed returns a listing that yields this error and nothing else.
func failed(err error) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) { yield(persist.Record{}, err) }
}

// nothing is a listing that yields no record.
func nothing(func(persist.Record, error) bool) {}

// listed yields the records selected by q, page by page, up to the sequence number last. A damaged record comes with its error and the listing goes on; any
// other error comes last, after the records read before it. It is a function of its own and not inlined, so List allocates nothing if there is nothing to
// list.
//
//go:noinline
func (l listing) listed(ctx context.Context) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		l := l // each iteration has its own
		l.seqs, l.overlays = make([]uint64, 0, pageMax), make([]overlay, pageMax)
		for after := l.q.After; ; after = l.seqs[len(l.seqs)-1] {
			err := ctx.Err()
			if err == nil {
				err = l.next(after)
			} else {
				l.page = l.page[:0] // it was yielded before
			}
			for i := range l.page {
				if !yield(l.page[i].rec, l.page[i].err) {
					return
				}
			}
			// Last, after the records read before it.
			if err != nil {
				yield(persist.Record{}, err)
				return
			}
			if len(l.seqs) == 0 {
				return
			}
		}
	}
}

// listing is one iteration.
type listing struct {
	j    *Journal
	q    *persist.Query
	last uint64

	erased []persist.Query // select the erased records and the used keys; nil if q does, or there are none

	seqs     []uint64 // those looked at last
	page     []found  // the matching ones of them, damaged ones with their error
	overlays []overlay
}

// next reads the next records after a number (Seq) into l.page, and notes in l.seqs which numbers it has looked at; there are none at the end. Their queued
// changes (l.overlays) are taken together with the view of the file. It holds no transaction and no lock when it returns, so that the loop body may call
// anything and take its time.
func (l *listing) next(after uint64) error {
	j := l.j
	clear(l.page)
	l.page = l.page[:0]
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return err
	}
	l.seqs = j.candidates(l.seqs[:0], l.q, after, l.last)
	if len(l.seqs) == 0 {
		j.mu.Unlock()
		return nil
	}
	// All of this under one hold of mu, so the page is of one moment.
	for i, seq := range l.seqs {
		l.overlays[i] = j.overlay(seq)
		if b := j.unreadable(seq, &l.overlays[i]); b != nil {
			// Read up to here, or wait.
			if i > 0 {
				l.seqs = l.seqs[:i]
				break
			}
			_ = j.unlockAndAwait(b)
			return l.next(after)
		}
	}
	v, err := j.view()
	j.mu.Unlock()
	if err != nil {
		return err
	}
	defer v.end()
	return l.read(v)
}

// read reads the records with the numbers in l.seqs into the page; l.overlays has their queued changes. It ends early when their bodies are enough for one
// page. A damaged record becomes an error in the page, and the next one is read. l.erased are queries for erased records, whose account and key have become
// digests.
func (l *listing) read(v *view) error {
	size := 0
	for i, seq := range l.seqs {
		rec, matches, err := v.readMatch(seq, &l.overlays[i], l.q)
		for n := 0; n < len(l.erased) && err == nil && !matches; n++ {
			rec, matches, err = v.readMatch(seq, &l.overlays[i], &l.erased[n])
		}
		switch {
		case errors.Is(err, persist.ErrCorrupt):
			l.page = append(l.page, found{err: l.j.wrap(err)})
		case err != nil:
			return l.j.wrap(err)
		case matches:
			l.j.nameListed(l.q, &rec)
			l.page = append(l.page, found{rec: rec})
			size += len(rec.Body)
			if rec.Answer != nil {
				size += len(rec.Answer.Body)
			}
		}
		if size > pageBytes {
			l.seqs = l.seqs[:i+1]
			return nil
		}
	}
	return nil
}

// candidates appends to dst the numbers (Seqs) of the records that q may select, ascending: those after after, up to last, until dst is full (its capacity).
// It asks an index if there is one for q: by key, or by the fingerprint in q.Unresolved, of records whose end a caller without a key may still have to hear.
// The records themselves are matched later. The caller holds mu.
func (j *Journal) candidates(dst []uint64, q *persist.Query, after, last uint64) []uint64 {
	var list []uint64
	switch {
	case q.Unresolved != nil:
		list = j.unresolved.all(j.hash.fingerprint(q.Unresolved))
	// By key: the index needs the account, so each known account is tried, unless
	// there are more than accountsMax.
	case q.Key != "" && !j.accounts.tooMany:
		list = j.seqsOfKey(q)
	default:
		return j.slots.next(dst, after, last, kinds(q))
	}
	for _, seq := range list {
		if seq > after && seq <= last && len(dst) < cap(dst) {
			dst = append(dst, seq)
		}
	}
	return dst
}

// seqsOfKey returns the Seqs of one key in every account, ascending: a query for an account selects the scoped ones inside of it, too. In an erased record the
// key is a digest, in full or cut short. A hash shared by two keys may add others; they do not match later. The caller holds mu.
func (j *Journal) seqsOfKey(q *persist.Query) []uint64 {
	var list []uint64
	keys := []string{q.Key}
	if j.erases {
		erased := persist.ErasedKey(j.secret[:], q.Key)
		_, short := cutNames("", erased)
		keys = append(keys, erased, short)
	}
	for account := range j.accounts.names { // those of erased records, too
		for _, key := range keys {
			list = append(list, j.ids.all(j.hash.id(account, key))...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// kinds returns the kinds of records that q may select, as memory knows them: by state, by due time, and by the marks for an unresolved end (a caller without
// a key may still have to hear it) or an owed result (Config.OnResult has to). Final ones are of two kinds, as kept marks those that no ordinary sweep changes
// any more. A listing reads records of these kinds only, and tests each with Query.Match.
func kinds(q *persist.Query) which {
	w := which{unresolved: q.AnyUnresolved, owed: q.Owed, bounded: !q.DueBy.IsZero(), by: dueAt(q.DueBy)}
	if len(q.States) == 0 {
		w.pending, w.held, w.final, w.kept = true, true, true, true
	}
	for _, s := range q.States {
		switch {
		case s.Final():
			w.final, w.kept = true, true
		case s == persist.StateHeld:
			w.held = true
		default:
			w.pending = true
		}
	}
	return w
}

// accounts are the accounts with records, so a key can be looked up in all of them. Beyond accountsMax it
// keeps none, and such a lookup reads every record.
type accounts struct {
	names   map[string]struct{}
	tooMany bool // more than accountsMax were entered; names is nil
}

// accountsMax is how many accounts are known at most.
const accountsMax = 1024

// add enters an account, if it is not known.
func (a *accounts) add(name string) {
	if _, known := a.names[name]; !known && !a.tooMany {
		a.enter(name)
	}
}

// addBytes adds the name of an account to the set. name still lies in the mapped file, and is copied only if it is new.
func (a *accounts) addBytes(name []byte) {
	if _, known := a.names[string(name)]; !known && !a.tooMany {
		a.enter(string(name))
	}
}

// enter adds a new name to the set of accounts. Past accountsMax the set is given up, and tooMany is set: nobody can then say from memory which
// accounts there are.
func (a *accounts) enter(name string) {
	if a.names == nil {
		a.names = map[string]struct{}{}
	}
	a.names[name] = struct{}{}
	if len(a.names) > accountsMax {
		a.names, a.tooMany = nil, true
	}
}
