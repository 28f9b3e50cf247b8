package bolt

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

const (
	// pageMax is how many records one transaction reads, and pageBytes after how
	// many bytes of bodies it ends early: a read transaction keeps bbolt from
	// using freed pages again, and a listing's memory must stay flat.
	pageMax   = 64
	pageBytes = 1 << 20
)

// found is what a listing yields.
type found struct {
	rec persist.Record
	err error
}

// List implements [persist.Journal]. Records begun after the call are left out,
// so that a loop whose body begins records ends.
func (j *Journal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	j.mu.Lock()
	last := j.seq
	j.mu.Unlock()
	return func(yield func(persist.Record, error) bool) {
		seqs := make([]uint64, 0, pageMax)
		var page []found
		for after := q.After; ; {
			err := ctx.Err()
			if err == nil {
				seqs, page, err = j.page(seqs, page[:0], &q, after, last)
			}
			for _, f := range page {
				if !yield(f.rec, f.err) {
					return
				}
			}
			if err != nil {
				yield(persist.Record{}, err)
				return
			}
			if len(seqs) == 0 {
				return
			}
			after = seqs[len(seqs)-1]
		}
	}
}

// page reads the next records, and returns which it has looked at and which of
// them match. A damaged one is among them with its error.
func (j *Journal) page(seqs []uint64, page []found, q *persist.Query, after, last uint64) ([]uint64, []found, error) {
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return nil, nil, err
	}
	seqs = j.candidates(seqs[:0], q, after, last)
	if len(seqs) == 0 {
		j.mu.Unlock()
		return seqs, page, nil
	}
	overlays := make([]overlay, len(seqs))
	for i, seq := range seqs {
		overlays[i] = j.overlay(seq)
		if b := j.unsettled(seq); b != nil && overlays[i].request {
			// The request's body is the caller's own until the commit is over.
			// Read up to here, or wait.
			if i > 0 {
				seqs = seqs[:i]
				break
			}
			_ = j.await(b)
			return j.page(seqs, page, q, after, last)
		}
	}
	tx, err := j.db.Begin(false)
	j.mu.Unlock()
	if err != nil {
		return nil, nil, j.wrap(err)
	}
	defer func() { _ = tx.Rollback() }()
	size := 0
	for i, seq := range seqs {
		rec, matches, err := readMatch(tx, seq, &overlays[i], q)
		switch {
		case errors.Is(err, persist.ErrCorrupt):
			page = append(page, found{err: j.wrap(err)})
		case err != nil:
			return seqs, page, j.wrap(err)
		case matches:
			page = append(page, found{rec: rec})
			size += len(rec.Body)
			if rec.Answer != nil {
				size += len(rec.Answer.Body)
			}
		}
		if size > pageBytes {
			return seqs[:i+1], page, nil
		}
	}
	return seqs, page, nil
}

// candidates appends to dst the Seqs after a given one, up to last, that q may
// select, ascending, until dst is full. The caller holds mu.
func (j *Journal) candidates(dst []uint64, q *persist.Query, after, last uint64) []uint64 {
	var list []uint64
	switch {
	case q.Stray != nil:
		list = j.strays.all(j.hash.fingerprint(q.Stray))
	case q.Key != "" && !j.accounts.many:
		list = j.withKey(q)
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

// withKey returns the Seqs of one key in every account that q selects.
func (j *Journal) withKey(q *persist.Query) []uint64 {
	var list []uint64
	for account := range j.accounts.names {
		list = append(list, j.ids.all(j.hash.id(account, q.Key))...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// kinds says which slots may hold what q selects.
func kinds(q *persist.Query) which {
	if len(q.States) == 0 {
		return which{open: true, final: true, swept: true}
	}
	var w which
	for _, s := range q.States {
		if s.Final() {
			w.final, w.swept = true, true
		} else {
			w.open = true
		}
	}
	return w
}

// accounts are the accounts that have records, so that a key can be looked up
// in all of them. Beyond accountsMax it gives up, and such a lookup walks.
type accounts struct {
	names map[string]struct{}
	many  bool
}

const accountsMax = 1024

func (a *accounts) add(name string) {
	if _, known := a.names[name]; !known && !a.many {
		a.enter(name)
	}
}

func (a *accounts) addBytes(name []byte) {
	if _, known := a.names[string(name)]; !known && !a.many {
		a.enter(string(name))
	}
}

func (a *accounts) enter(name string) {
	if a.names == nil {
		a.names = map[string]struct{}{}
	}
	a.names[name] = struct{}{}
	if len(a.names) > accountsMax {
		a.names, a.many = nil, true
	}
}
