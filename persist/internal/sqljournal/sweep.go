package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// readRows is the largest number of records read by one statement of a sweep. It locks none of them.
const readRows = 1000

// The number of records changed by one transaction of a sweep: sweepRows at most. A transaction without an answer in time is made again with half of them;
// one in time that changed some lets the next have an eighth more, one at least. A server under load reads each row from its disk.
const (
	sweepRows = 256
	sweepMore = 8
)

// sweepMax is the largest number of records changed by a sweep with a zero Limits.Max.
const sweepMax = 10_000

// sweeping is one Sweep under way.
type sweeping struct {
	j      *Journal
	l      persist.Limits
	secret []byte // of the journal
	total  int
	packed int   // of the last transaction: used keys made
	moved  []any // of the last transaction: the values of Apart.InsertUsed

	keepsTexts bool // the role has not the rights for used keys, or other transactions hold their table
}

// Sweep implements [persist.Journal]: it returns the number of records that it has changed or removed. It reads one page of records after the other by an
// index, and locks nothing there: a server may lock each row read by a statement with changes. So the due records of a page are changed by their primary
// keys, in transactions of their own. These pass over records being changed by another process. It needs the journal's secret to erase names: without the
// right to read it, texts stay. A shelf is a kind of records: all, or the used keys (records without any text), if these have a table of their own. A prune
// with a limit for keys goes through the used keys once more, for those kept for ever.
func (j *Journal) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if j == nil {
		return 0, errNotOpened
	}
	if l.Now.IsZero() {
		now, err := j.Now(ctx)
		if err != nil {
			return 0, err
		}
		l.Now = now
	}
	if l.Max <= 0 {
		l.Max = sweepMax
	}
	s := sweeping{j: j, l: l}
	var err error
	switch s.secret, err = j.Secret(ctx); {
	case errors.Is(err, persist.ErrDenied):
		s.keepTexts()
	case err != nil:
		return 0, err
	}
	for _, of := range s.shelves() {
		if err := s.sweep(ctx, of); err != nil || s.total >= l.Max {
			return s.total, err
		}
	}
	if !l.Prune || l.KeepKey == 0 {
		return s.total, nil
	}
	err = s.pruneUsed(ctx)
	return s.total, err
}

// steps sweeps the records with the ids in due in several transactions, until Limits.Max is reached. If one takes too long, or waits too long for others,
// the next have fewer records: fewer, shared by all sweeps of the journal, is by how many, and shrinks again after steps that work. A shelf is a kind of
// records with a condition of its own for being due.
func (s *sweeping) steps(ctx context.Context, shelf shelf, due []any) error {
	fewer := &s.j.sweepsFewer
	for len(due) > 0 && s.total < s.l.Max {
		n := min(len(due), sweepRows-int(fewer.Load()), s.l.Max-s.total)
		before := s.total
		err := s.step(ctx, shelf, due[:n])
		switch {
		case err == nil:
			if s.total > before { // else others hold all of them, such as a transaction of ours that was cut: that says nothing of the time that rows take
				fewer.Store(max(fewer.Load()-int64(max(n/sweepMore, 1)), 0))
			}
			due = due[n:]
		case n == 1 && s.packed > 0 && s.j.d.Waited(err): // somebody else holds the place of the used key that the record was to become: a later sweep takes its text out
			s.keepTexts()
		case n == 1 || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !s.j.d.Waited(err):
			return err
		default:
			fewer.Store(int64(sweepRows - n/2))
		}
	}
	return nil
}

// sweep sweeps one shelf, a kind of records with one condition for being due. It reads a page of due records after the other, from the place where the last one
// ended, and ends early once Limits.Max is reached.
func (s *sweeping) sweep(ctx context.Context, shelf shelf) error {
	for at, more := (place{}), true; more; {
		var due []any
		var err error
		if due, at, more, err = s.read(ctx, shelf, at); err != nil {
			return err
		}
		if err := s.steps(ctx, shelf, due); err != nil || s.total >= s.l.Max {
			return err
		}
	}
	return nil
}

// or adds an alternative to the WHERE clause, with its parameters.
func (c *condition) or(where string, args ...any) {
	c.where, c.args = c.where+" OR "+where, append(c.args, args...)
}

// isFinal is the condition of a record ready for sweeps.
const isFinal = "finished > 0 AND state >= 2"

// place is the end of a page in the index.
type place struct {
	sweepAt int64
	id      []byte
}

// read reads the next page of a shelf, a kind of records to be swept, after the place from, by the index of sweeps. It returns the ids of the due
// records on it, at, the place of its last record, and whether more pages follow. It locks nothing.
func (s *sweeping) read(ctx context.Context, shelf shelf, from place) (due []any, at place, more bool, err error) {
	c := condition{args: slices.Clone(shelf.due.args)}
	c.and(shelf.in.where, shelf.in.args...)
	if from.id != nil {
		c.and("sweep_at >= ? AND (sweep_at > ? OR sweep_at = ? AND id > ?)", from.sweepAt, from.sweepAt, from.sweepAt, from.id)
	}
	query := s.j.d.Rebind(fmt.Sprintf("SELECT id, sweep_at, CASE WHEN %s THEN 1 ELSE 0 END FROM %s WHERE %s ORDER BY sweep_at, id LIMIT %d",
		shelf.due.where, s.by(shelf, SweepIndex), c.where, readRows))
	err = s.j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		due, at = nil, from
		rows, err := conn.QueryContext(ctx, query, c.args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		n := 0
		for ; rows.Next(); n++ {
			var is int
			at.id = nil // so that Scan does not write over the bytes that due has
			if err := rows.Scan(&at.id, &at.sweepAt, &is); err != nil {
				return err
			}
			if is == 1 {
				due = append(due, at.id)
			}
		}
		more = n == readRows
		return rows.Err()
	})
	return due, at, more, err
}

// step sweeps the records with these ids in one transaction. If it would make the first used key of the journal, it first notes in the facts that
// there are such keys, and tries again: other programs look for them only then. s.moved are the rows for the table of used keys, so an error for a missing
// right then is about that table. A role without the right to insert into the table of used keys leaves all texts.
func (s *sweeping) step(ctx context.Context, shelf shelf, ids []any) error {
	changed, unnoted, err := s.try(ctx, shelf, ids)
	again := err == nil && unnoted
	switch {
	case again:
		err = s.noteUsed(ctx)
	case len(s.moved) > 0 && s.j.d.Denied(err):
		s.keepTexts()
		again, err = true, nil
	}
	if again && err == nil {
		changed, _, err = s.try(ctx, shelf, ids)
	}
	s.total += changed
	return err
}

// keepTexts makes this sweep leave all texts of records from now on: the role has no right to replace them by used keys, or one of those is in the way. With
// KeepText of zero the limits of a prune take none.
func (s *sweeping) keepTexts() { s.keepsTexts, s.l.KeepText = true, 0 }

// noteUsed notes in the journal's facts that there are used keys, records without their text, before the first is made. If the database role may not
// write facts, the sweep leaves all texts, and that is no error. uses is set if the note was made.
func (s *sweeping) noteUsed(ctx context.Context) error {
	_, err := s.j.fact(ctx, usedFact, nil, []byte{1})
	if errors.Is(err, persist.ErrDenied) {
		s.keepTexts()
		err = nil
	}
	s.j.uses.Store(err == nil && !s.keepsTexts)
	return err
}

// try sweeps the records with these ids in one transaction, except those that have changed and are no longer due, and those locked by others. Reading them
// again with a lock makes sure that they are still due. shelf is the kind of records. changed is the number of changed and deleted ones. unnoted means that it
// has rolled back: it would have made the first used key (the rest of an erased record) of the journal, and the fact that the journal has such keys must be
// noted before.
func (s *sweeping) try(ctx context.Context, shelf shelf, ids []any) (changed int, unnoted bool, err error) {
	c := condition{"id IN (" + Parameters(len(ids)) + ") AND " + isFinal, slices.Clone(ids)}
	c.and(shelf.in.where, shelf.in.args...)
	c.and(shelf.due.where, shelf.due.args...)
	lock := " FOR UPDATE SKIP LOCKED"
	if shelf.apart {
		lock = "" // a used key never changes
	}
	query := s.j.d.Rebind("SELECT " + sweptColumns + " FROM " + s.by(shelf, PrimaryKey) + " WHERE " + c.where + lock)
	err = s.j.attempt(ctx, func(ctx context.Context, conn *sql.Conn) error {
		changed, unnoted, s.packed, s.moved = 0, false, 0, nil
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if bound := s.j.d.Abandoned(); bound != "" { // makes the server end the transaction, should this process leave it open
			if _, err := tx.ExecContext(ctx, bound); err != nil {
				return err
			}
		}
		rows, err := readSwept(ctx, tx, query, c.args)
		if err != nil {
			return err
		}
		if changed, err = s.change(ctx, tx, shelf, rows); err != nil {
			return err
		}
		if s.packed > 0 && !s.j.uses.Load() {
			changed, unnoted = 0, true
			return nil
		}
		return tx.Commit()
	})
	return changed, unnoted, err
}

// Parameters returns n question marks for the parameters of a statement, separated by commas.
func Parameters(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// sweptColumns are the columns read by a sweep: all but the bodies.
const sweptColumns = "id, seq, COALESCE(revision, 0), account, op_key, fingerprint, COALESCE(generated, 0), COALESCE(created, 0), COALESCE(sweep_at, 0), origin, needs, " +
	"state, COALESCE(unreported, 0), swept, COALESCE(next_attempt, 0), finished, lease_owner, COALESCE(lease_until, 0), COALESCE(send_until, 0), COALESCE(owed_from, 0), intent, progress"

// readSwept reads the rows of one step of a sweep by the query, which may lock them, without their bodies.
func readSwept(ctx context.Context, tx *sql.Tx, query string, args []any) (list []Row, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r Row
		err := rows.Scan(&r.ID, &r.Seq, &r.Revision, &r.Account, &r.Key, &r.Fingerprint, &r.Generated, &r.Created, &r.SweepAt, &r.Origin, &r.Needs,
			&r.State, &r.Unreported, &r.Swept, &r.NextAttempt, &r.Finished, &r.LeaseOwner, &r.LeaseUntil, &r.SendUntil, &r.OwedFrom, &r.Intent, &r.Progress)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// change applies the limits of the sweep to the rows of a shelf (one kind of records), within the transaction, and returns the number of changed and deleted
// ones. head decodes all but the bodies. Limits.Sweep decides for each: whole means that the row goes, strip that it loses its answer or its texts. A damaged
// row, and one of a later version, stays as it is. A used key (the rest of an erased record) goes into a table of its own, where the database has one, and its
// old row is deleted.
func (s *sweeping) change(ctx context.Context, tx *sql.Tx, shelf shelf, rows []Row) (changed int, err error) {
	var drop []any
	for i := range rows {
		var rec persist.Record
		if _, _, err := rows[i].head(&rec); err != nil {
			continue
		}
		text := rec.KeepText // the row keeps this value, also if this sweep leaves all texts
		if s.keepsTexts {
			rec.KeepText = 0
		}
		whole, strip := s.l.Sweep(&rec, s.l.Now)
		switch {
		case whole:
			drop = append(drop, rows[i].ID)
		case strip:
			statement, args := s.strip(&rec, &rows[i], text)
			if statement == "" {
				drop = append(drop, rows[i].ID)
				continue
			}
			if _, err := tx.ExecContext(ctx, s.j.d.Rebind(statement), append(args, rows[i].ID)...); err != nil {
				return 0, err
			}
			changed++
		}
	}
	dropped, err := s.remove(ctx, tx, shelf, drop)
	return changed + dropped, err
}

// remove deletes the rows of a shelf (one kind of records) with these ids, and returns their number: another sweep may have deleted some meanwhile. The rest
// of an erased record that moves to the table of used keys (s.moved) is inserted there first, in the same transaction.
func (s *sweeping) remove(ctx context.Context, tx *sql.Tx, shelf shelf, ids []any) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	if shelf.apart {
		n, err := s.j.apart.DeleteUsed(ctx, tx, ids)
		return int(n), err
	}
	if len(s.moved) > 0 {
		if err := s.j.apart.InsertUsed(ctx, tx, s.moved); err != nil {
			return 0, err
		}
	}
	res, err := tx.ExecContext(ctx, s.j.d.DeleteAll(len(ids)), ids...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// strip applies the limits to a record that they change, and returns the statement that writes it into its row, without the row's id as its last argument.
// text is its own KeepText, for a sweep that leaves all texts. packs must be asked before Strip, since that takes away what it looks at. Limits.Strip may drop
// the request alone, or the answer, or erase the names of the record. An erased one becomes a used key (a few values without any text) if it can. The statement
// is empty if these move to the table of used keys: then the caller deletes the row.
func (s *sweeping) strip(rec *persist.Record, row *Row, text time.Duration) (statement string, args []any) {
	wasErased, wireKey, packs := rec.Erased, rec.WireKey, usedkey.MayPack(rec)
	if s.l.Strip(rec, s.l.Now, s.secret); s.keepsTexts {
		rec.KeepText = text
	}
	set := "sweep_at = ?, revision = revision + 1, intent = ?, body = NULL, progress = ?"
	if !rec.Swept { // the answer stays
		return "UPDATE " + s.j.d.Records() + " SET " + set + " WHERE id = ?", []any{sweepAt(rec), encodeIntent(rec), codec.WithRequestDropped(row.Progress)}
	}
	if rec.Erased && !wasErased && packs {
		return s.pack(rec, row, wireKey)
	}
	if rec.Erased && !wasErased {
		rec.ID = persist.ErasedID(s.secret, rec.ID)
	}
	set += ", swept = 1, answer = NULL, generated = ?, unreported = ?, fingerprint = ?, account = ?, op_key = ?"
	return "UPDATE " + s.j.d.Records() + " SET " + set + " WHERE id = ?", []any{sweepAt(rec), encodeIntent(rec), encodeProgress(rec),
		flag(rec.Generated), flag(rec.Unreported), rec.Fingerprint, []byte(rec.Account), []byte(rec.Key)}
}

// pack returns the statement, with its parameters, that makes the row of an erased record that of a used key: hardly more is left than that its key
// was used. wireKey was its key on the wire, which tells how the key was spelled. If used keys have a table of their own, there is no statement, and the
// row is noted in moved. The account's place has the hashes of the accounts around it, by which a listing finds the row.
func (s *sweeping) pack(rec *persist.Record, row *Row, wireKey string) (statement string, args []any) {
	rec.Revision++ // it is in the packed part, as no column has it any more
	var at any
	if when, ever := rec.SweepAt(); ever {
		at = nanoseconds(when)
	}
	s.packed++
	args = []any{at, orNull(outerHashes(rec.Account)), packUsed(rec, wireKey, rec.Key)}
	if s.j.apart != nil {
		s.moved = append(append(s.moved, row.ID, row.State, row.Finished), args...)
		return "", nil
	}
	var null []string
	for _, c := range Columns() {
		if !slices.Contains(usedColumns, c.Name) && c.Name != "swept" {
			null = append(null, c.Name+" = NULL")
		}
	}
	return "UPDATE " + s.j.d.Records() + " SET swept = 2, sweep_at = ?, account = ?, progress = ?, " + strings.Join(null, ", ") + " WHERE id = ?", args
}
