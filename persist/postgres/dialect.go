package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// The SQLSTATE codes with a meaning for this package.
const (
	undefinedTable      = "42P01"
	invalidSchema       = "3F000"
	serializationFailed = "40001"
	completionUnknown   = "40003"
	deadlockDetected    = "40P01"
	lockNotAvailable    = "55P03"
	limitExceeded       = "54000"
	insufficientRight   = "42501"
	checkViolation      = "23514"
)

// dialect implements sqljournal.Dialect.
type dialect struct {
	table    string
	fact     string // the table of facts, the journal's secret among them
	sequence string
	idle     time.Duration // until the server ends a transaction of several statements
	bound    string        // a common table expression to bound waits for locks, in this transaction
	begin    string        // the statement of Begin
	together string        // the statement of WriteAll

	togetherWait string // of a lock, in milliseconds
}

// dialect returns the statements and names for this journal's schema, with its time limits. A function of pg_catalog whose arguments are not of its own types
// is named with that schema: by the search path, one of another schema with other argument types could fit better. The statement of Begin inserts the row
// (mine) or reads the standing one (s). In the second case confirmStanding makes its commit wait for a standby as that of a write does.
func (o Options) dialect() *dialect {
	d := &dialect{table: o.Schema + ".record", fact: o.Schema + ".fact", sequence: o.Schema + ".record_seq", idle: o.CallTimeout / 3}
	d.bound = fmt.Sprintf("bound AS MATERIALIZED (SELECT set_config('lock_timeout', '%d', true))", o.LockWait.Milliseconds())
	d.begin = fmt.Sprintf("WITH %s, mine AS (%s) SELECT mine.seq, %s, %s FROM bound LEFT JOIN mine ON true LEFT JOIN %s s ON s.id = $1",
		d.bound, insert(d.table, "pg_catalog.nextval('"+d.sequence+"')", "bound"), confirmStanding, strings.Join(sqljournal.ReadColumns("s."), ", "), d.table)
	d.together, d.togetherWait = o.together(), strconv.FormatInt(min(o.LockWait, togetherWait).Milliseconds(), 10)
	return d
}

// confirm is an expression to write a message into the write-ahead log. Nobody reads the message, but its transaction
// is committed, and waited for, like one with changed rows. It locks nothing. A transaction without writes waits for
// nothing. Yet it may have read data of a transaction with an ended wait for a standby ("committed locally").
const confirm = "pg_logical_emit_message(true, 'oncehttp', ''::text)::text"

// confirmStanding is confirm if Begin has met a row s that is not confirmed: the caller goes on with the data of the
// row. If commits wait for no standby, visible data is on the disk already.
const confirmStanding = "CASE WHEN mine.seq IS NULL AND s.state <> 2 AND current_setting('synchronous_standby_names') <> '' THEN " + confirm + " END"

// insert returns an INSERT of one row into table. Its parameters are the row's values except Seq, in order; seq is the SQL expression for that. The
// row is selected from the query named from: that one sets the bound of the wait for locks, and so runs first. If the id is there already, nothing is inserted
// and no row returned.
func insert(table, seq, from string) string {
	var names, values []string
	for _, c := range sqljournal.Columns() {
		names = append(names, c.Name)
		if c.Name == "seq" {
			values = append(values, seq)
			continue
		}
		kind := "bytea"
		if c.Type == 'i' {
			kind = "bigint"
		}
		parameter := len(values) + 1
		if parameter > 1 {
			parameter-- // seq, the second column, has none
		}
		values = append(values, fmt.Sprintf("$%d::%s", parameter, kind))
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s ON CONFLICT (id) DO NOTHING RETURNING seq",
		table, strings.Join(names, ", "), strings.Join(values, ", "), from)
}

// insertValues returns the parameters of the INSERT of a row: its fields without the number, which the server assigns.
func insertValues(row *sqljournal.Row) []any { return slices.Delete(row.Fields(), 1, 2) }

// Rebind implements sqljournal.Dialect: it replaces each question mark by PostgreSQL's $1, $2 and so on. No statement has a question mark in a
// string.
func (d *dialect) Rebind(query string) string {
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// Records implements sqljournal.Dialect: it returns the name of the table of records, ready for a statement.
func (d *dialect) Records() string { return d.table }

// SelectFact implements sqljournal.Dialect: it returns the query for the value of a fact, a named value of the journal as a whole. Its parameter is
// the name.
func (d *dialect) SelectFact() string { return "SELECT value FROM " + d.fact + " WHERE name = ?" }

// InsertFact implements sqljournal.Dialect: it returns the statement that inserts a fact, a named value of the journal as a whole, unless there is
// one of that name.
func (d *dialect) InsertFact() string {
	return "INSERT INTO " + d.fact + " (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
}

// UpdateFact implements sqljournal.Dialect: it returns the statement that replaces the value of a fact, a named value of the journal as a whole, if
// it is still the old one.
func (d *dialect) UpdateFact() string {
	return "UPDATE " + d.fact + " SET value = ? WHERE name = ? AND value = ?"
}

// By implements sqljournal.Dialect: it returns the table for a SELECT that must find its rows by this index. The index of sweeps is one of final
// records, so a statement needs the condition for them. The engine has no hint for an index: any other is left to the planner. A SELECT locks only the rows
// returned by it.
func (d *dialect) By(index sqljournal.Index) string {
	if index == sqljournal.SweepIndex {
		return "(SELECT * FROM " + d.table + " WHERE finished > 0 AND state >= 2) AS final"
	}
	return d.table
}

// Update implements sqljournal.Dialect: it returns an UPDATE of the table of records, whose wait for locks of others is bounded.
func (d *dialect) Update(set, where string) string {
	return "WITH " + d.bound + " UPDATE " + d.table + " SET " + set + " FROM bound WHERE " + where
}

// Delete implements sqljournal.Dialect: it returns a DELETE from the table of records, whose wait for locks of others is bounded.
func (d *dialect) Delete(where string) string {
	return "WITH " + d.bound + " DELETE FROM " + d.table + " USING bound WHERE " + where
}

// DeleteAll implements sqljournal.Dialect: it returns the statement that deletes n records by their ids.
func (d *dialect) DeleteAll(n int) string {
	return d.Rebind("DELETE FROM " + d.table + " WHERE id IN (" + sqljournal.Parameters(n) + ")")
}

// Orphan implements sqljournal.Dialect: it returns the condition for an operation with a generated key whose end a caller may still have to hear: unfinished
// (state below 2), or unreported. With one, it has a parameter for the fingerprint of the request.
func (d *dialect) Orphan(one bool) string {
	condition := "generated = 1 AND (unreported = 1 OR state < 2)"
	if one {
		condition += " AND fingerprint = ?"
	}
	return condition
}

// nullRow is the target of a Scan of a row that may be absent.
type nullRow struct {
	sqljournal.Row
	numbers []sql.NullInt64
}

// dest returns pointers for a Scan of a row that may be absent: then all its columns are null.
func (r *nullRow) dest() []any {
	dest := r.Fields()
	r.numbers = make([]sql.NullInt64, len(dest))
	for i, c := range sqljournal.Columns() {
		if c.Type == 'i' && c.Name != "seq" {
			dest[i] = &r.numbers[i]
		}
	}
	return dest
}

// row returns the row that was scanned, or nil if the query's outer join found none. A NULL number becomes zero.
func (r *nullRow) row() *sqljournal.Row {
	if r.ID == nil {
		return nil
	}
	for i, dest := range r.Fields() {
		if n, ok := dest.(*int64); ok {
			*n = r.numbers[i].Int64
		}
	}
	return &r.Row
}

// Begin implements sqljournal.Dialect. One statement inserts the row, or reads the row that has its id already. It returns the row now in the table;
// nil if another transaction was under way, so that the row is not visible to this statement: the caller tries again.
func (d *dialect) Begin(ctx context.Context, run sqljournal.QueryRow, row *sqljournal.Row) (*sqljournal.Row, error) {
	var seq sql.NullInt64
	var confirmed sql.NullString // of no use: the statement has made its commit wait as that of a write
	var existing nullRow
	if err := run(ctx, d.begin, insertValues(row), append([]any{&seq, &confirmed}, existing.dest()...)...); err != nil {
		return nil, err
	}
	if seq.Valid {
		row.Seq = seq
		return row, nil
	}
	return existing.row(), nil
}

// numberRows is the largest number of records numbered by Number in one statement.
const numberRows = 1000

// Number implements sqljournal.Dialect: it gives numbers to the committed records without one. It waits for others that number the same records, so that these
// have numbers when it returns. A used key (swept = 2) never gets one.
func (d *dialect) Number(ctx context.Context, conn *sql.Conn) error {
	// The rows of late are locked, so none gets a number meanwhile, and the UPDATE need not ask for that again. If it did, the planner would join the two by
	// the index of rows without a number, which its statistics believe to have one entry: 10,000 rows took a minute.
	statement := fmt.Sprintf(`WITH %s, late AS MATERIALIZED (SELECT id FROM %s, bound WHERE seq IS NULL AND swept < 2 ORDER BY id LIMIT %d FOR NO KEY UPDATE OF record)
		UPDATE %s r SET seq = pg_catalog.nextval('%s') FROM late WHERE r.id = late.id`, d.bound, d.table, numberRows, d.table, d.sequence)
	for {
		res, err := conn.ExecContext(ctx, statement)
		if err != nil {
			return err
		}
		// Fewer rows than numberRows do not mean that no more are left: others may have numbered the rest of these.
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
	}
}

// Barrier implements sqljournal.Dialect: it returns when all transactions that have taken a number before the call have ended, and are visible. Each holds a
// lock on the sequence of numbers until then. It looks again and again until none of the first holders is left; later ones have higher numbers.
func (d *dialect) Barrier(ctx context.Context, conn *sql.Conn) error {
	var first []string
	for pause := time.Millisecond; ; pause *= 2 {
		now, err := d.holders(ctx, conn)
		if err != nil {
			return err
		}
		if first == nil {
			first = now
		}
		first = slices.DeleteFunc(first, func(holder string) bool { return !slices.Contains(now, holder) })
		if len(first) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a statement that begins an operation has not ended: %w", ctx.Err())
		case <-time.After(min(pause, 50*time.Millisecond)):
		}
	}
}

// holders returns the names of the transactions that have taken a number from the sequence and have not ended: nextval locks the sequence until the end of
// the transaction.
func (d *dialect) holders(ctx context.Context, conn *sql.Conn) ([]string, error) {
	rows, err := conn.QueryContext(ctx, `SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
		AND relation = '`+d.sequence+`'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	holders := []string{}
	for rows.Next() {
		var holder string
		if err := rows.Scan(&holder); err != nil {
			return nil, err
		}
		holders = append(holders, holder)
	}
	return holders, rows.Err()
}

// OriginHash implements sqljournal.Dialect: it returns the expression for the SHA-256 of a record's origin.
func (d *dialect) OriginHash() string { return "sha256(origin)" }

// Now implements sqljournal.Dialect: it returns the expression for the server's time, in nanoseconds since 1970. now() would be the start of the
// transaction.
func (d *dialect) Now() string {
	return "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000"
}

// clock returns a part of a statement (a common table expression named clock) that reads the server's time. With it all parts of the statement see one time.
func (d *dialect) clock() string { return "clock AS MATERIALIZED (SELECT " + d.Now() + " AS now)" }

// Abandoned implements sqljournal.Dialect: it returns the statement by which the server ends a transaction that its client has left idle for too long; empty if
// the server does so anyway.
func (d *dialect) Abandoned() string {
	return fmt.Sprintf("SELECT set_config('idle_in_transaction_session_timeout', '%d', true)", d.idle.Milliseconds())
}

// Confirm implements sqljournal.Dialect. It returns a statement that changes no row, and whose commit waits for standbys like that of a write. After it,
// rows that were read before are as safe as written ones.
func (d *dialect) Confirm() string { return "SELECT " + confirm }

// messageMost is the largest size of a value, in bytes: a message to the server has less than 1 GiB, and it holds
// other values, too.
const messageMost = 1<<30 - 1<<24

// Most implements sqljournal.Dialect: it returns the largest size of a value, and the name of the server's setting for it; 0: there is no bound.
func (d *dialect) Most() (bytes int64, bound string) {
	return messageMost, "PostgreSQL, whose messages have less than 1 GiB,"
}

// TooLarge implements sqljournal.Dialect: it reports whether the server refused a statement because a value in it is too large.
func (d *dialect) TooLarge(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == limitExceeded
}

// Doubt implements sqljournal.Dialect: it tells by the error of a statement whether it may have taken effect. An answer of another severity than ERROR (FATAL)
// ends the connection, and may come after the commit, during the wait for a standby.
func (d *dialect) Doubt(err error) sqljournal.Doubt {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.SeverityUnlocalized != "ERROR", pg != nil && pg.Code == completionUnknown:
		return sqljournal.InDoubt
	case pg != nil && (pg.Code == serializationFailed || pg.Code == deadlockDetected):
		return sqljournal.Again
	case pg != nil:
		return sqljournal.Undone
	case pgconn.SafeToRetry(err):
		return sqljournal.NotSent
	}
	return sqljournal.InDoubt
}

// Denied implements sqljournal.Dialect: it reports whether the server refused a statement because the role has no right on the table.
func (d *dialect) Denied(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == insufficientRight
}

// Clear implements sqljournal.Dialect: it reports whether the table refused an unencrypted row, since the journal takes encrypted ones only.
func (d *dialect) Clear(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == checkViolation && pg.ConstraintName == "record_sealed"
}

// Waited implements sqljournal.Dialect: it reports whether the server ended a statement because its wait for another transaction was too long.
func (d *dialect) Waited(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == lockNotAvailable
}
