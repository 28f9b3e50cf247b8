package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// usedColumns are the columns that the row of a used key has, beside swept. In a table of their own it has no others.
var usedColumns = []string{"id", "state", "finished", "sweep_at", "account", "progress"}

// UsedColumns returns the names of the columns of a table of used keys, in the order of the values of Apart.InsertUsed. A used key is the rest of an erased
// record: little more than that its key was used. Some databases keep these in a table of their own.
func UsedColumns() []string { return append([]string{}, usedColumns...) }

// usedTable returns the name of the table that has the used keys, the rest of erased records: that of all records, or on some databases a table of
// their own.
func (j *Journal) usedTable() string {
	if j.apart == nil {
		return j.d.Records()
	}
	return j.apart.Used(PrimaryKey)
}

// everywhere returns a query of all records, with its parameters, used keys (the rest of erased records: little more than that a key was used) included. format
// is a SELECT of them from the table "%s", with args as its parameters. If used keys have their own table, the query reads both, and sees each record in one of
// them: the server makes the statement on one snapshot.
func (j *Journal) everywhere(format string, args ...any) (query string, all []any) {
	query, all = strings.Replace(format, "%s", j.d.Records(), 1), args
	if j.apart != nil {
		query = "(" + query + ") UNION ALL (" + strings.Replace(format, "%s", j.usedTable(), 1) + ")"
		all = append(append([]any{}, args...), args...)
	}
	return j.d.Rebind(query), all
}

// execUnused runs a statement that gives a record the id of the row, and returns the number of changed rows. j.apart is set for databases that keep used keys,
// the rest of erased records, in a table of their own: there the primary key does not prevent that an id is in both tables. If the id is that of a used key,
// the change is undone. Error: persist.ErrExists.
func (j *Journal) execUnused(ctx context.Context, conn *sql.Conn, row *Row, statement string, args []any) (n int64, err error) {
	if j.apart == nil {
		return exec(ctx, conn, statement, args)
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	res, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	if n, err = res.RowsAffected(); err != nil || n == 0 {
		return 0, err
	}
	var used []byte
	switch err := tx.QueryRowContext(ctx, j.d.Rebind(j.apart.LookUsed()), row.ID).Scan(&used); {
	case err == nil:
		return 0, fmt.Errorf("%w: account %q, key %q", persist.ErrExists, row.Account, row.Key)
	case !errors.Is(err, sql.ErrNoRows):
		return 0, err
	}
	return n, tx.Commit()
}
