package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"slices"
)

// Together is a Dialect with one statement for writes of several rows.
type Together interface {
	// WriteAll inserts the rows of begins with new IDs, as Begin does. It changes the rows of changes if they are
	// unfinished and current, see ChangeColumns; their revisions grow by one. It returns the numbers of the rows known
	// to be written, by their tokens. It is one transaction, and waits for another's lock no longer than a fraction of
	// a second: a call not served goes on alone.
	WriteAll(ctx context.Context, conn *sql.Conn, begins, changes []*Row) (numbers map[string]sql.NullInt64, err error)
}

// ChangeColumns returns the columns of a change for WriteAll, which makes many changes by one statement: first those compared with the stored row, seq only if
// it is not null. Then, from token on, come the columns set by it, needs only if it is not null, and intent likewise: a new intent also sets body to null.
// WriteAll leaves a row with a later send_until as it is.
func ChangeColumns() []Column {
	return []Column{
		{"id", 'b'}, {"seq", 'i'}, {"revision", 'i'}, {"created", 'i'}, {"fingerprint", 'b'},
		{"token", 'b'}, {"state", 'i'}, {"unreported", 'i'}, {"swept", 'i'}, {"next_attempt", 'i'},
		{"finished", 'i'}, {"sweep_at", 'i'}, {"lease_owner", 'b'}, {"lease_until", 'i'}, {"send_until", 'i'}, {"owed_from", 'i'}, {"progress", 'b'}, {"answer", 'b'}, {"needs", 'b'}, {"hold_reason", 'b'}, {"intent", 'b'},
	}
}

// ChangeFields returns pointers to the row's fields, in the order of ChangeColumns.
func (r *Row) ChangeFields() []any {
	return append(append([]any{&r.ID, &r.Seq, &r.Revision, &r.Created, &r.Fingerprint}, r.always()...), &r.Intent)
}

// writeAll returns the function that writes the rows of several calls of Begin, Update and Finish by one statement. That function reports for each
// call whether its row was written: numbers has the tokens of the written rows, and the number (Seq) of each begun one. One that was not (its row was another
// than expected) must be written alone, to find out why.
func writeAll(d Together) func(context.Context, *sql.Conn, []*sharer) (func(*sharer) bool, error) {
	return func(ctx context.Context, conn *sql.Conn, calls []*sharer) (func(*sharer) bool, error) {
		var begins, changes []*Row
		for _, call := range calls {
			if call.begins {
				begins = append(begins, call.row)
			} else {
				changes = append(changes, call.row)
			}
		}
		numbers, err := d.WriteAll(ctx, conn, begins, changes)
		if err != nil {
			return nil, err
		}
		for _, row := range begins {
			row.Seq = numbers[string(row.Token)]
		}
		return func(call *sharer) bool {
			_, written := numbers[string(call.row.Token)]
			return written
		}, nil
	}
}

// getAll reads the records of several calls of Get by one statement. Each row has only an ID at first, and is filled. served reports whether the row of a
// call was filled; one that was not must be read alone. Of several calls with one ID only the first is served (so the loop goes backward): no two callers may
// share a body.
func (j *Journal) getAll(ctx context.Context, conn *sql.Conn, calls []*sharer) (served func(*sharer) bool, err error) {
	var ids []any
	waiting := make(map[string]*Row, len(calls))
	for _, call := range slices.Backward(calls) {
		ids, waiting[string(call.row.ID)] = append(ids, call.row.ID), call.row
	}
	for len(ids)&(len(ids)-1) != 0 { // a power of two, by repeats of the first: so there are few different statements to prepare
		ids = append(ids, ids[0])
	}
	query, args := j.everywhere("SELECT "+columnsRead("")+" FROM %s WHERE id IN ("+Parameters(len(ids))+")", ids...)
	result, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	filled := map[*Row]bool{}
	for result.Next() {
		var row Row
		if err := result.Scan(row.Fields()...); err != nil {
			return nil, err
		}
		if to := waiting[string(row.ID)]; to != nil {
			*to, filled[to] = row, true
		}
	}
	return func(call *sharer) bool { return filled[call.row] }, result.Err()
}
