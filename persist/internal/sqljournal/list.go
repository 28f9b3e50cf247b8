package sqljournal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// The bounds of one page of a listing.
const (
	pageRows  = 256     // records
	pageBytes = 4 << 20 // a page ends there, however few records it has
)

// condition is a WHERE clause and its parameters.
type condition struct {
	where string
	args  []any
}

// and adds one more condition, with its parameters, to the WHERE clause.
func (c *condition) and(where string, args ...any) {
	if c.where != "" {
		c.where += " AND "
	}
	c.where += where
	c.args = append(c.args, args...)
}

// named adds the condition for the account and the key of q to the WHERE clause, or for their digests in erased, unless it is nil. An account selects the
// accounts inside it, too ("a|b" is inside "a"). An erased record is found by its id, a hash of its old key, then one of its old account. A row with
// swept = 2 is a used key (a record without any text): it has no names, and in place of the account the hashes of the accounts around it.
func (c *condition) named(q, erased *persist.Query) {
	if !q.AllAccounts {
		// '}' follows '|', so these are all accounts with a '|' behind the account.
		const in = "account = ? OR account >= ? AND account < ?"
		within := func(account string) []any {
			return []any{[]byte(account), []byte(account + "|"), []byte(account + "}")}
		}
		where, args := in, within(q.Account) // the account itself, then the bounds of those inside it
		if erased != nil {
			where, args = in+" OR "+in, append(args, within(erased.Account)...)
		}
		of := sha256.Sum256([]byte(q.Account))
		hash := of[:accountHash]
		c.and(fmt.Sprintf("(swept < 2 AND (%s) OR swept = 2 AND (substr(id, %d) = ? OR position(? IN account) > 0))", where, keyHash+1), append(args, hash, hash)...)
	}
	if q.Key != "" {
		first := keyPrefix(q.Key)
		last := append(slices.Clone(first), strings.Repeat("\xff", accountHash)...)
		c.and("id >= ? AND id <= ?", first, last)
		if erased == nil {
			c.and("(op_key = ? OR swept = 2)", []byte(q.Key))
		} else {
			c.and("(op_key IN (?, ?) OR swept = 2)", []byte(q.Key), []byte(erased.Key))
		}
	}
}

// selecting returns the WHERE clause of the listing, without its After: the number from which it goes on.
func (l *listing) selecting() condition { return l.j.selectingOf(l.q, l.erased) }

// selecting returns the WHERE clause of q for records that are not erased, without its After: the number from which a listing goes on.
func (j *Journal) selecting(q *persist.Query) condition { return j.selectingOf(q, nil) }

// selectingOf returns the WHERE clause for q, without its After. erased, which may be nil, has the digests of q's account and key: erased records are
// stored under these, and are selected, too. The origin is found by its hash, since an index has no room for all of it. Unresolved selects the records of one
// request under a generated key whose end no caller has heard, and AnyUnresolved all of these.
func (j *Journal) selectingOf(q, erased *persist.Query) condition {
	c := condition{}
	c.and("1 = 1") // a query may select all records
	c.named(q, erased)
	if q.Origin != "" {
		sum := sha256.Sum256([]byte(q.Origin))
		c.and(j.d.OriginHash()+" = ? AND origin = ?", sum[:], []byte(q.Origin))
	}
	if q.Needs != "" {
		c.and("needs = ?", []byte(q.Needs))
	}
	if len(q.States) > 0 {
		list := make([]string, len(q.States))
		for i, s := range q.States {
			list[i] = fmt.Sprint(uint8(s))
		}
		c.and("state IN (" + strings.Join(list, ", ") + ")")
	}
	if !q.DueBy.IsZero() {
		c.and("next_attempt <= ?", nanoseconds(q.DueBy))
	}
	if q.Unresolved != nil {
		c.and(j.d.Orphan(true), q.Unresolved)
	} else if q.AnyUnresolved {
		c.and(j.d.Orphan(false))
	}
	if q.Owed {
		c.and(j.d.Owed())
	}
	return c
}

// List implements [persist.Journal]: it yields the records that q selects, in the order of their numbers (Seq). It reads a page at a time, and holds no
// connection while the loop body runs. Records begun after the call are left out. When ctx ends, its error is the last element.
//
// A committed record can not be numbered while another transaction has locked it. In a query for one key, for unresolved records or for owed results, such a
// record has Seq 0 and comes last. Other queries leave it out, and then end with an error, unless q.After is set: the record will have a later number. A
// journal opened for reading yields all records without a number, first. Used keys (records without any text) come at the end.
func (j *Journal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		if j == nil {
			yield(persist.Record{}, errNotOpened)
			return
		}
		l := listing{j: j, q: &q, after: number(q.After), rows: pageRows, lastID: []byte{}}
		var err error
		if l.erased, l.secret, err = j.erasedBy(ctx, &q); err == nil {
			l.unlisted, err = l.hasUnlisted(ctx)
		}
		if err != nil {
			yield(persist.Record{}, err)
			return
		}
		for !l.over {
			page, err := l.next(ctx)
			for i := range page {
				rec, err := page[i].Record()
				if err == nil && page[i].isUsed() {
					l.nameFound(page[i].ID, &rec)
				}
				page[i] = Row{} // the caller may keep the record for long
				if !yield(rec, err) {
					return
				}
				if ctx.Err() != nil && (i+1 < len(page) || !l.over) {
					yield(persist.Record{}, ctx.Err())
					return
				}
			}
			if err != nil {
				yield(persist.Record{}, err)
				return
			}
		}
	}
}

// number returns a Seq in the form of its column, which is signed.
func number(seq uint64) int64 { return int64(min(seq, math.MaxInt64)) }

// listing is one List under way.
type listing struct {
	j      *Journal
	q      *persist.Query
	erased *persist.Query // see erasedBy
	after  int64          // the last number yielded
	last   int64          // the last number to yield, once bounded
	rows   int            // of the next page

	bounded bool
	over    bool

	unnumbered []Row // records without a number, not yielded yet

	secret   []byte // of the journal; nil: not known, or not needed
	used     []Row  // used keys of one key, not yielded yet
	unlisted bool   // used keys may be left, behind all others
	usedRest bool   // those are read
	usedAt   []byte // the id behind which they are

	// Of the records with the number after. Mostly there is one, see pageOfSame.
	same   [][]byte // the ids of those in the last page, or nil
	sameID []byte   // the last id yielded beside them

	// Of a journal opened for reading.
	lastID  []byte          // the last id without a number yielded
	seen    map[string]bool // all such ids
	seenAll bool            // there are no more
}

// short reports whether the query is for one key, for unresolved records (a caller may still have to hear their end) or for owed results. The result is
// nearly always one short page, read from the index. Nobody goes on after it by q.After, so it needs no bound before it turns out to be longer.
func (l *listing) short() bool {
	return l.q.Key != "" || l.q.Unresolved != nil || l.q.AnyUnresolved || l.q.Owed
}

// next reads the next page of a listing: first the records that have a number or get one, then the used keys. A used key is the rest of an erased record,
// and has no number. l.over tells that there are no more pages.
func (l *listing) next(ctx context.Context) ([]Row, error) {
	if l.usedRest {
		return l.nextUsed(ctx)
	}
	page, err := l.nextNumbered(ctx)
	if l.over && err == nil {
		page, l.used = append(page, l.used...), nil
		l.usedRest = l.unlisted
		l.over = !l.usedRest
	}
	return page, err
}

// nextNumbered reads the next page of records that have a number (the order of a listing) or get one now. Records locked by other transactions cannot get
// one. A short listing (for one key, for unresolved records or for owed results) has them at its end; any other ends with an error if there are some. A short
// listing needs one statement only, if all its records have numbers. Any other is bounded first: records begun later are left out, so it ends. keepUsed takes
// the used keys (rests of erased records) out, which come last.
func (l *listing) nextNumbered(ctx context.Context) ([]Row, error) {
	if l.j.readOnly {
		return l.nextReadOnly(ctx)
	}
	if l.short() && !l.bounded {
		page, err := l.page(ctx)
		page = l.keepUsed(page)
		if err != nil || l.over && !unnumbered(page) {
			return page, err
		}
		l.over = false // read it again, bounded
	}
	if !l.bounded {
		if err := l.bound(ctx); err != nil {
			l.over = true
			return nil, err
		}
	}
	page, err := l.page(ctx)
	if n := len(page); n > 0 {
		l.after = page[n-1].Seq.Int64
	}
	if len(l.unnumbered) == 0 {
		return page, err
	}
	l.unnumbered = among(l.unnumbered, page, false) // they have got numbers meanwhile
	switch {
	case err != nil || !l.over:
		return page, err
	case l.short():
		return append(page, l.unnumbered...), nil
	case len(l.unnumbered) > 0:
		err = l.j.failed(fmt.Errorf("operations that were committed are left out, since other transactions have locked them: %d, such as that of the key %q; list again when those have ended",
			len(l.unnumbered), l.unnumbered[0].Key))
	}
	return page, err
}

// unnumbered reports whether a record of the page has no number (Seq) yet: some engines give numbers after the insert. Such a page cannot be put in
// order.
func unnumbered(page []Row) bool {
	return slices.ContainsFunc(page, func(r Row) bool { return !r.Seq.Valid })
}

// among returns the rows whose records are also in the second list; if are is false, the rows whose records are not.
func among(rows, those []Row, are bool) []Row {
	ids := make(map[string]bool, len(those))
	for i := range those {
		ids[string(those[i].ID)] = true
	}
	return slices.DeleteFunc(rows, func(r Row) bool { return ids[string(r.ID)] != are })
}

// findUnnumbered notes the matching records that have no number although all records were just numbered: other transactions have locked them. Records
// begun in between are numbered by a second try, so that only locked ones are noted. A longer listing that goes on after a number looks for none: such a
// record will get a later number. A row with swept = 2 (a used key) never gets one.
func (l *listing) findUnnumbered(ctx context.Context) error {
	if l.after > 0 && !l.short() {
		return nil
	}
	find := func() (rows []Row, err error) {
		c := l.selecting()
		c.and("seq IS NULL AND swept < 2")
		rows, _, err = l.read(ctx, c)
		return rows, err
	}
	first, err := find()
	if err != nil || len(first) == 0 || l.short() {
		l.unnumbered = first
		return err
	}
	// They may have been begun just now: those that get a number now are not locked.
	if err := l.j.number(ctx); err != nil {
		return err
	}
	second, err := find()
	l.unnumbered = among(first, second, true)
	return err
}

// bound numbers the records without a number, and finds the last number for the listing: the highest number of a committed record. After Barrier, no
// transaction under way can add a record with a lower number.
func (l *listing) bound(ctx context.Context) error {
	j := l.j
	if err := j.number(ctx); err != nil {
		return err
	}
	if err := l.findUnnumbered(ctx); err != nil {
		return err
	}
	query := "SELECT COALESCE(MAX(seq), 0) FROM " + j.d.Records()
	err := j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		if err := conn.QueryRowContext(ctx, query).Scan(&l.last); err != nil {
			return err
		}
		return j.d.Barrier(ctx, conn)
	})
	l.bounded = err == nil
	return err
}

// number gives a number (seq, the order of listings) to each committed record without one. It may be repeated without harm. In a journal opened for
// reading it does nothing.
func (j *Journal) number(ctx context.Context) error {
	if j.readOnly {
		return nil
	}
	return j.attempt(ctx, func(ctx context.Context, conn *sql.Conn) error { return j.d.Number(ctx, conn) })
}

// pageOfSame reads the next records that have the same number (Seq) as the last one of the page before, in the order of their ids. The journal gives each
// number once; but a user who may update the column can give it to several records, and each must be listed. l.same are the ids of those read already, and
// l.sameID is the id after which it goes on. After the last of them l.same is nil.
func (l *listing) pageOfSame(ctx context.Context) ([]Row, error) {
	c := l.selecting()
	args := []any{l.after, l.sameID}
	for _, id := range l.same {
		args = append(args, id)
	}
	c.and("seq = ? AND id > ? AND id NOT IN ("+Parameters(len(l.same))+")", args...)
	page, full, err := l.readBy(ctx, c, "id")
	l.over = err != nil
	if n := len(page); n > 0 {
		l.sameID = page[n-1].ID
	}
	if !full {
		l.same = nil
	}
	return page, err
}

// read reads the first rows selected by the condition, by number. full: there may be more. The records of one key are few, and lie
// beside each other by their ids: the sum (seq + 0 has no index) keeps a planner without statistics from reading the whole index by number instead.
func (l *listing) read(ctx context.Context, c condition) (page []Row, full bool, err error) {
	if l.q.Key != "" {
		return l.readBy(ctx, c, "seq + 0")
	}
	return l.readBy(ctx, c, "seq")
}
