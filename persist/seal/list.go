package seal

import (
	"context"
	"iter"

	"github.com/oncehttp/oncehttp/persist"
)

// This file lists sealed records: a list by a sealed field is one list for each key.

// List implements [persist.Journal]: it yields the records that q selects, decrypted. Several keys and records in clear can need several listings of the
// journal below: they are merged by number (Seq). A record that cannot be decrypted yields an error of its own, and the listing goes on.
func (j *journal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	lists := make([]iter.Seq2[persist.Record, error], 0, 1)
	for _, below := range j.queries(q) {
		lists = append(lists, j.Journal.List(ctx, below))
	}
	sealed := lists[0]
	if len(lists) > 1 {
		sealed = merge(lists)
	}
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range sealed {
			if err == nil {
				rec, err = j.unsealListed(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// queries returns the queries to the journal below for q. That is one query with the key in its stored form (hashed if there is a HashKey). If q asks for a
// fingerprint or for needs (the requirements on a client), it is one query for each form of them: each key of the seal gives another one.
func (j *journal) queries(q persist.Query) []persist.Query {
	q.Key = j.s.stored(q.Key)
	all := []persist.Query{q}
	if q.Unresolved != nil {
		all = nil
		for _, index := range j.s.indexes(q.Unresolved) {
			q.Unresolved = index
			all = append(all, q)
		}
	}
	if q.Needs == "" {
		return all
	}
	var each []persist.Query
	for _, q := range all {
		for _, q.Needs = range j.s.needsBelow(q.Needs) {
			each = append(each, q)
		}
	}
	return each
}

// head is the next record of a listing.
type head struct {
	next func() (persist.Record, error, bool)
	rec  persist.Record
	err  error
	over bool
}

// advance reads the next record of one of the merged listings, or notes its end.
func (h *head) advance() {
	var more bool
	h.rec, h.err, more = h.next()
	h.over = !more
}

// merge yields the records of several listings as one, ordered by their numbers (Seq). An error comes as soon as it is met. It ends the listing if it is not
// about one record (OfOneRecord): a listing cannot be read on then.
func merge(lists []iter.Seq2[persist.Record, error]) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		var heads []*head
		for _, list := range lists {
			next, stop := iter.Pull2(list)
			defer stop()
			h := &head{next: next}
			h.advance()
			heads = append(heads, h)
		}
		for {
			first := earliest(heads)
			if first == nil || !yield(first.rec, first.err) || first.err != nil && !persist.OfOneRecord(first.err) {
				return
			}
			first.advance()
		}
	}
}

// earliest returns the listing whose next record comes first: one with an error, else that of the smallest Seq. It returns nil if all are at their
// end.
func earliest(heads []*head) (first *head) {
	for _, h := range heads {
		switch {
		case h.over:
		case h.err != nil:
			return h
		case first == nil || h.rec.Seq < first.rec.Seq:
			first = h
		}
	}
	return first
}
