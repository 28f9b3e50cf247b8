package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// This file has the table of used keys: ended records without their text. In the table of records each null of theirs would have a place in eight indexes.

// used returns the name of the table of used keys, the rest of erased records.
func (d *dialect) used() string { return d.prefix + "oncehttp_used" }

// until returns the name of the table with the times from which used keys, the rest of erased records, may be removed. It is an index without those
// that are kept for ever.
func (d *dialect) until() string { return d.prefix + "oncehttp_used_until" }

// unused returns the last value of an INSERT into the table of records. It is null, or an error of the server if the row was inserted and a used key (the
// rest of an erased record) has its id: a subquery for one value gives two rows (severalRows), and that undoes the INSERT. Its
// parameter is the token of the row. The server computes it behind the write: the write has waited for a sweep that moved a record of this id, and the lock
// makes the read see what was committed, at every isolation.
func (d *dialect) unused() string {
	return fmt.Sprintf("IF(token = ?, (SELECT two.n FROM %s u JOIN (SELECT 1 AS n UNION ALL SELECT 2) two WHERE u.id = %s.id LOCK IN SHARE MODE), NULL)", d.used(), d.Records())
}

// put runs an INSERT made by insert, with these values, for a row of this id. It returns the row that stands under the id now: the new one, an earlier
// record's, or that of a used key (the rest of an erased record). It is nil if the used key that prevented the INSERT has just been removed. Error: also
// sql.ErrNoRows if the INSERT had nothing to insert.
func (d *dialect) put(ctx context.Context, run sqljournal.QueryRow, id []byte, insert string, values []any) (*sqljournal.Row, error) {
	var standing sqljournal.Row
	err := run(ctx, insert, values, append(standing.Fields(), new(sql.NullInt64))...)
	var my *mysql.MySQLError
	if !errors.As(err, &my) || my.Number != severalRows {
		return &standing, err
	}
	err = run(ctx, d.bound+"SELECT "+usedRow()+" FROM "+d.used()+" WHERE id = ? LOCK IN SHARE MODE", []any{id}, standing.Fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &standing, err
}

// usedRow returns the columns of a record for a SELECT from the table of used keys itself: the result of Used is a derived table, in which a lock would lock
// nothing.
func usedRow() string {
	var columns []string
	for _, c := range sqljournal.Columns() {
		column := usedColumn(c)
		if c.Type == 'i' && c.Name != "seq" {
			column = "COALESCE(" + column + ", 0)"
		}
		columns = append(columns, column)
	}
	return strings.Join(columns, ", ")
}

// usedColumn returns the expression for a column of the table of records when a row of the table of used keys is read in its
// place: the column of this name, 2 for swept, else NULL. A used key is what is left of an ended record.
func usedColumn(c sqljournal.Column) string {
	switch {
	case slices.Contains(sqljournal.UsedColumns(), c.Name):
		return c.Name
	case c.Name == "swept":
		return "2"
	}
	return "NULL"
}

// Used implements sqljournal.Apart: it returns the table of used keys for a SELECT, with the columns of the table of records. The index of sweeps is a table
// of its own (t), with the times of those that are not kept for ever; a time is read from it, so that the server goes by its order. For another index the table
// of used keys (u) is read alone.
func (d *dialect) Used(index sqljournal.Index) string {
	from, at := d.used()+" u", "u."
	if index == sqljournal.SweepIndex {
		from, at = d.until()+" t STRAIGHT_JOIN "+d.used()+" u ON u.id = t.id", "t."
	}
	var columns []string
	for _, c := range sqljournal.Columns() {
		column := usedColumn(c)
		switch {
		case c.Name == "id" || c.Name == "sweep_at":
			column = at + column
		case column == c.Name:
			column = "u." + column
		}
		columns = append(columns, column+" AS "+c.Name)
	}
	return "(SELECT " + strings.Join(columns, ", ") + " FROM " + from + ") AS used"
}

// InsertUsed implements sqljournal.Apart: it inserts used keys (the rests of erased records) into their table. It fails at once if it would have to wait:
// the transaction of a sweep has locked records, and a caller's transaction at REPEATABLE READ that has begun a record keeps a range of the table of used keys
// locked until its end. values has the columns of one row after the other.
func (d *dialect) InsertUsed(ctx context.Context, tx *sql.Tx, values []any) error {
	columns := sqljournal.UsedColumns()
	id, sweepAt := slices.Index(columns, "id"), slices.Index(columns, "sweep_at")
	var until []any
	for row := range slices.Chunk(values, len(columns)) {
		if row[sweepAt] != nil {
			until = append(until, row[sweepAt], row[id])
		}
	}
	if err := insertRows(ctx, tx, d.used(), columns, values); err != nil || len(until) == 0 {
		return err
	}
	return insertRows(ctx, tx, d.until(), []string{"sweep_at", "id"}, until)
}

// insertRows inserts rows with these values into a table, and waits for no lock.
func insertRows(ctx context.Context, tx *sql.Tx, table string, columns []string, values []any) error {
	row := "(" + sqljournal.Parameters(len(columns)) + ")"
	rows := row + strings.Repeat(", "+row, len(values)/len(columns)-1)
	_, err := tx.ExecContext(ctx, lockWait(0)+"INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES "+rows, values...)
	return err
}

// DeleteUsed implements sqljournal.Apart: it deletes used keys by their ids, with their times, and returns their number. The times go first: they are found by
// the rows of the used keys.
func (d *dialect) DeleteUsed(ctx context.Context, tx *sql.Tx, ids []any) (int64, error) {
	times := fmt.Sprintf("DELETE t FROM (SELECT ? AS id%s) v STRAIGHT_JOIN %s u FORCE INDEX (PRIMARY) ON u.id = v.id STRAIGHT_JOIN %s t FORCE INDEX (PRIMARY) ON t.sweep_at = u.sweep_at AND t.id = u.id",
		strings.Repeat(" UNION ALL SELECT ?", len(ids)-1), d.used(), d.until())
	if _, err := tx.ExecContext(ctx, times, ids...); err != nil {
		return 0, err
	}
	res, err := tx.ExecContext(ctx, d.deleteAll(d.used(), len(ids)), ids...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// LookUsed implements sqljournal.Apart: it returns the query for a used key (the rest of an erased record) with this id, made after a write of a record with
// the same id. The lock makes it see what was committed, whatever the transaction's snapshot.
func (d *dialect) LookUsed() string {
	return d.bound + "SELECT id FROM " + d.used() + " WHERE id = ? LOCK IN SHARE MODE"
}
