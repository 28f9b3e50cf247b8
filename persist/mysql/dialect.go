package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// The server's error numbers with a meaning for this package.
const (
	shutdown        = 1053 // the server shuts down
	noSuchTable     = 1146
	severalRows     = 1242 // of a subquery for one value
	packetTooLarge  = 1153 // the connection ends then
	unknownError    = 1105
	commitFailed    = 1180
	tableDenied     = 1142
	columnDenied    = 1143
	lockWaitOver    = 1205 // also of NOWAIT
	deadlock        = 1213
	interrupted     = 1317
	connectionGone  = 1927 // KILL
	statementTooLon = 1969 // max_statement_time
	constraintFails = 4025
)

// gates is the number of rows of the table of gates.
const gates = 8

// dialect implements sqljournal.Dialect.
type dialect struct {
	prefix string          // of the names of tables
	bound  string          // goes before a statement, and bounds its waits for locks
	begin  map[bool]string // the statement of Begin, for a row in clear and for a sealed one
	polls  bool            // a statement does not wait for locks, and is made again
	most   *most           // of a packet
}

// dialect returns the statements and names for this journal's database, with its time limits. There are two statements for Begin: for encrypted
// records and for those in clear. With polls (the time limit of a call is too short for a wait of whole seconds) no statement of the journal's own waits for
// a lock: it tries again. d.begin has the two by whether the record is sealed (encrypted).
func (o Options) dialect() *dialect {
	wait := o.LockWait
	if o.polls {
		wait = 0
	}
	d := &dialect{prefix: o.prefix(), polls: o.polls, bound: lockWait(wait), most: &most{}}
	d.begin = map[bool]string{}
	for _, sealed := range []bool{false, true} {
		d.begin[sealed] = d.bound + d.insert(sealed, "NEXTVAL("+d.prefix+"oncehttp_seq)", "FROM "+d.gate()+" WHERE gate = ? LOCK IN SHARE MODE")
	}
	return d
}

// lockWait returns the start of a statement that bounds the statement's waits for locks of others to d, in whole seconds.
func lockWait(d time.Duration) string {
	return fmt.Sprintf("SET STATEMENT innodb_lock_wait_timeout=%d FOR ", int(d/time.Second))
}

// gate returns the name of the table of gates: its rows are locked (shared) by transactions that take a number (seq) for a record, so that Barrier can wait for
// them.
func (d *dialect) gate() string { return d.prefix + "oncehttp_gate" }

// insert returns an INSERT of one row. Its result is the row that is in the table afterwards: the new one, or the one already there under this key,
// which it locks and does not change. Its parameters are the row's values except Seq, then those of from, then the token five times: the token tells
// a new row, whose large values are not sent back. sealed: the row is that of an encrypted record. seq is the expression for Seq, and from the end of the
// SELECT of the values, with conditions. If the key is used, the server undoes the INSERT with an error: see unused.
//
// If the journal is sealed, a row in clear gets the revision 0, and a constraint refuses it. The statement does that, not a trigger: after a KILL
// during the loading of a trigger the server has answered other statements with number 1064 (MariaDB 10.11, one of 60 runs of TestRotated).
func (d *dialect) insert(sealed bool, seq, from string) string {
	var names, values, returned []string
	for _, c := range sqljournal.Columns() {
		names = append(names, c.Name)
		value := "?"
		switch {
		case c.Name == "seq":
			value = seq
		case c.Name == "revision" && !sealed:
			value = fmt.Sprintf("? * (SELECT COUNT(*) = 0 FROM %s WHERE name = '%s' AND value <> '%s')", d.fact(), persist.FactSeal, persist.FactPlain)
		}
		values = append(values, value)
		result := c.Name
		switch c.Name {
		case "intent", "progress", "body", "answer":
			result = "IF(token = ?, NULL, " + c.Name + ")"
		}
		returned = append(returned, result)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s %s ON DUPLICATE KEY UPDATE revision = %s.revision RETURNING %s",
		d.Records(), strings.Join(names, ", "), strings.Join(values, ", "), from, d.Records(), strings.Join(append(returned, d.unused()), ", "))
}

// isSealed reports whether the row is that of a sealed (encrypted) record: its needs (what a client must have to send it) name the keys of the seal.
func isSealed(row *sqljournal.Row) bool { return bytes.Contains(row.Needs, []byte(" seal=")) }

// insertValues returns the parameters for the INSERT made by insert: the row's fields without Seq, those of from (parameters of a condition behind the values),
// and the row's token five times: the statement asks in five places if the row in the table is this new one.
func insertValues(row *sqljournal.Row, from ...any) []any {
	values := append(slices.Delete(row.Fields(), 1, 2), from...)
	return append(values, row.Token, row.Token, row.Token, row.Token, row.Token)
}

// Rebind implements sqljournal.Dialect: it turns the question marks of a statement into placeholders of the server, which are the same here.
func (d *dialect) Rebind(query string) string { return query }

// fact returns the name of the table of facts, the journal's secret among them.
func (d *dialect) fact() string { return d.prefix + "oncehttp_fact" }

// SelectFact implements sqljournal.Dialect: it returns the query for the value of a fact, a named value of the journal as a whole. Its parameter is
// the name.
func (d *dialect) SelectFact() string { return "SELECT value FROM " + d.fact() + " WHERE name = ?" }

// InsertFact implements sqljournal.Dialect: it returns the statement that inserts a fact, a named value of the journal as a whole, unless there is
// one of that name.
func (d *dialect) InsertFact() string {
	return "INSERT IGNORE INTO " + d.fact() + " (name, value) VALUES (?, ?)"
}

// UpdateFact implements sqljournal.Dialect: it returns the statement that replaces the value of a fact, a named value of the journal as a whole, if
// it is still the old one.
func (d *dialect) UpdateFact() string {
	return "UPDATE " + d.fact() + " SET value = ? WHERE name = ? AND value = ?"
}

// Records implements sqljournal.Dialect: it returns the name of the table of records, ready for a statement.
func (d *dialect) Records() string { return d.prefix + "oncehttp_record" }

// By implements sqljournal.Dialect: it returns the table for a SELECT that must find its rows by this index: the server must not choose another.
func (d *dialect) By(index sqljournal.Index) string {
	name := map[sqljournal.Index]string{sqljournal.PrimaryKey: "PRIMARY", sqljournal.SweepIndex: "record_sweep", sqljournal.CountIndex: "record_count"}[index]
	return d.Records() + " FORCE INDEX (" + name + ")"
}

// Update implements sqljournal.Dialect: it returns an UPDATE of the table of records, whose wait for locks of others is bounded.
func (d *dialect) Update(set, where string) string {
	return d.bound + "UPDATE " + d.Records() + " SET " + set + " WHERE " + where
}

// Delete implements sqljournal.Dialect: it returns a DELETE from the table of records, whose wait for locks of others is bounded.
func (d *dialect) Delete(where string) string {
	return d.bound + "DELETE FROM " + d.Records() + " WHERE " + where
}

// DeleteAll returns the statement that deletes n records by their ids.
func (d *dialect) DeleteAll(n int) string { return d.deleteAll(d.Records(), n) }

// deleteAll returns the statement that deletes n rows of a table by their ids. For a plain list (IN) the server may scan the table, and lock every row; so the
// ids are joined to it by its primary key.
func (d *dialect) deleteAll(table string, n int) string {
	return fmt.Sprintf("DELETE r FROM (SELECT ? AS id%s) v STRAIGHT_JOIN %s r FORCE INDEX (PRIMARY) ON r.id = v.id",
		strings.Repeat(" UNION ALL SELECT ?", n-1), table)
}

// Orphan implements sqljournal.Dialect: it returns the condition for an operation with a generated key whose end a caller may still have to hear.
// With one, it has a parameter for the fingerprint of the request. The column orphan is computed by the server.
func (d *dialect) Orphan(one bool) string {
	if one {
		return "orphan = ?"
	}
	return "orphan IS NOT NULL"
}

// Begin implements sqljournal.Dialect: one statement inserts the row and returns the one that stands there, which may be the row itself. It locks a
// gate, a row of a small table, by which Barrier waits for it. A random one of several gates, so that these locks do not all meet in one row.
func (d *dialect) Begin(ctx context.Context, run sqljournal.QueryRow, row *sqljournal.Row) (*sqljournal.Row, error) {
	standing, err := d.put(ctx, run, row.ID, d.begin[isSealed(row)], insertValues(row, rand.IntN(gates)))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: a row of the table of gates is missing; run the journal's Migrate again: %w", ErrNotMigrated, err)
	}
	return standing, err
}

// readCommitted returns the options of this package's own transactions.
func readCommitted() *sql.TxOptions { return &sql.TxOptions{Isolation: sql.LevelReadCommitted} }

// numberRows is the largest number of records numbered by Number in one transaction.
const numberRows = 1000

// The waits of Number for others numbering the same records.
const (
	numberTries = 20
	numberPause = 10 * time.Millisecond
)

// barrierTries is the number of Barrier's tries to find nobody behind a gate, before it waits for the statements
// behind it. A later statement then waits as well.
const barrierTries = 5

// Barrier implements sqljournal.Dialect: it returns when all transactions that have taken a number before the call have ended. Each holds a shared
// lock on one gate, a row of a small table. So an exclusive lock on each gate proves it.
func (d *dialect) Barrier(ctx context.Context, conn *sql.Conn) error {
	for gate := range gates {
		if err := d.passed(ctx, conn, gate); err != nil {
			return fmt.Errorf("a statement that begins an operation has not ended: %w", err)
		}
	}
	return nil
}

// passed returns when every transaction that held a lock on this gate at the call has ended. A gate is a row of a small table. It first tries without
// a wait: a waiting exclusive lock would hold up others. After barrierTries such tries it waits.
func (d *dialect) passed(ctx context.Context, conn *sql.Conn, gate int) (err error) {
	query := "SELECT gate FROM " + d.gate() + " WHERE gate = ? FOR UPDATE"
	for try := range barrierTries {
		err = conn.QueryRowContext(ctx, query+" NOWAIT", gate).Scan(new(int))
		var my *mysql.MySQLError
		if err == nil || !errors.As(err, &my) || my.Number != lockWaitOver {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond << try):
		}
	}
	return conn.QueryRowContext(ctx, d.bound+query, gate).Scan(new(int))
}

// OriginHash implements sqljournal.Dialect: it returns the expression for the SHA-256 of a record's origin. It is a column of the table.
func (d *dialect) OriginHash() string { return "origin_hash" }

// Now implements sqljournal.Dialect: it returns the expression for the server's time, in nanoseconds since 1970. It is the start of the statement, in
// UTC whatever the time zone of the session.
func (d *dialect) Now() string {
	return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) * 1000"
}

// Claim implements sqljournal.Dialect: it gives up to n due rows to the owner of the lease, and writes into each the progress that taken returns for it. The
// server has no UPDATE … RETURNING. Claim locks, and then writes, each row by the primary key: a plan with a scan of the table would lock every row. where and
// args select the records; with lease.Group that is one group, an origin and needs.
func (d *dialect) Claim(ctx context.Context, conn *sql.Conn, where string, args []any, lease sqljournal.Lease, n int, taken func(*sqljournal.Row, int64) []byte) (now int64, err error) {
	tx, err := conn.BeginTx(ctx, readCommitted())
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	from := d.Records()
	if lease.Group { // else the server may read all due records before those asked for
		from += " FORCE INDEX (record_origin)"
	}
	rows, err := tx.QueryContext(ctx, fmt.Sprintf(`SELECT %s, %s FROM %s WHERE %s AND state = 0
			AND next_attempt <= %s AND next_attempt <= ? AND (lease_owner = ? OR lease_until <= %s) ORDER BY next_attempt, seq LIMIT %d FOR UPDATE SKIP LOCKED`,
		d.Now(), sqljournal.ColumnList(""), from, where, d.Now(), d.Now(), n), append(slices.Clone(args), lease.DueBy, []byte{})...)
	if err != nil {
		return 0, err
	}
	var written []any // of each row its id, its progress and its send_until
	for rows.Next() {
		var row sqljournal.Row
		if err := rows.Scan(append([]any{&now}, row.Fields()...)...); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		progress := taken(&row, now)
		written = append(written, row.ID, progress, row.SendUntil)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	if len(written) == 0 {
		err := tx.QueryRowContext(ctx, "SELECT "+d.Now()).Scan(&now)
		return now, err
	}
	update := fmt.Sprintf(`UPDATE (SELECT ? AS id, ? AS progress, ? AS send_until%s) v STRAIGHT_JOIN %s r FORCE INDEX (PRIMARY) ON r.id = v.id
		SET r.lease_owner = ?, r.lease_until = ?, r.token = ?, r.revision = r.revision + 1, r.progress = v.progress, r.send_until = v.send_until`,
		strings.Repeat(" UNION ALL SELECT ?, ?, ?", len(written)/3-1), d.Records())
	if _, err := tx.ExecContext(ctx, update, append(written, lease.Owner, now+lease.For, lease.Token)...); err != nil {
		return 0, err
	}
	return now, tx.Commit()
}

// Renew implements sqljournal.Dialect: it extends the leases of owner on the rows with these ids. held are the ids of the extended ones: rows locked by others
// are passed over, and so are those with another owner. now is the server's time.
func (d *dialect) Renew(ctx context.Context, conn *sql.Conn, lease sqljournal.Lease, ids [][]byte) (held [][]byte, now int64, err error) {
	tx, err := conn.BeginTx(ctx, readCommitted())
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, "SELECT "+d.Now()).Scan(&now); err != nil {
		return nil, 0, err
	}
	args := []any{lease.Owner}
	for _, id := range ids {
		args = append(args, id)
	}
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT id FROM %s FORCE INDEX (PRIMARY) WHERE lease_owner = ? AND state = 0 AND id IN (%s) FOR UPDATE SKIP LOCKED",
		d.Records(), sqljournal.Parameters(len(ids))), args...)
	if err != nil {
		return nil, 0, err
	}
	free, err := idsOf(rows)
	if err != nil || len(free) == 0 {
		return nil, now, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE "+d.Records()+" SET lease_until = ? WHERE id IN ("+sqljournal.Parameters(len(free))+")", append([]any{now + lease.For}, free...)...)
	if err != nil {
		return nil, 0, err
	}
	for _, id := range free {
		held = append(held, id.([]byte))
	}
	return held, now, tx.Commit()
}

// Abandoned implements sqljournal.Dialect: it returns the statement by which the server ends a transaction that its client has left; empty if the
// server does so anyway. The sessions of the pool have the setting.
func (d *dialect) Abandoned() string { return "" }

// Confirm implements sqljournal.Dialect. It returns "": a statement that changes no row is not in the binary log, so its commit waits for no replica,
// and would not make rows that were read before as safe as written ones.
func (d *dialect) Confirm() string { return "" }

// Most implements sqljournal.Dialect: it returns the largest size of a value, and the name of the server's setting for it; 0: there is no bound. A
// value too large for a packet as a part of a statement is sent in a packet of its own.
func (d *dialect) Most() (bytes int64, bound string) { return d.most.Load(), serverPacket }

// TooLarge implements sqljournal.Dialect: it reports whether an error means that a statement is longer than the server takes, by the driver's own check or by
// the server's answer.
func (d *dialect) TooLarge(err error) bool {
	var my *mysql.MySQLError
	switch {
	case errors.Is(err, mysql.ErrPktTooLarge):
		return true
	case !errors.As(err, &my):
		return false
	}
	return my.Number == packetTooLarge || my.Number == unknownError && strings.Contains(my.Message, packetName)
}

// Doubt implements sqljournal.Dialect: it tells by the error of a statement whether it may have taken effect. Without an answer of the server it may. The
// errors of a server stop or of a KILL may come during a commit. With polls, the end of a wait for a lock is Again: the journal tries again in place of a
// longer wait.
func (d *dialect) Doubt(err error) sqljournal.Doubt {
	var my *mysql.MySQLError
	switch {
	case errors.Is(err, mysql.ErrPktTooLarge):
		return sqljournal.Undone // found before it was sent
	case !errors.As(err, &my):
		return sqljournal.InDoubt
	}
	switch my.Number {
	case shutdown, commitFailed, interrupted, connectionGone, statementTooLon:
		return sqljournal.InDoubt
	case deadlock:
		return sqljournal.Again
	case lockWaitOver:
		if d.polls {
			return sqljournal.Again
		}
	}
	return sqljournal.Undone
}

// Denied implements sqljournal.Dialect: it reports whether the server refused a statement because the role has no right on the table.
func (d *dialect) Denied(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && (my.Number == tableDenied || my.Number == columnDenied)
}

// Clear implements sqljournal.Dialect: it reports whether the table refused an unencrypted row, since the journal takes encrypted ones only.
func (d *dialect) Clear(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == constraintFails && strings.Contains(my.Message, "the journal is sealed")
}

// Waited implements sqljournal.Dialect: it reports whether the server ended a statement because its wait for another transaction was too long.
func (d *dialect) Waited(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == lockWaitOver
}
