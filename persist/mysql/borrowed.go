package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// session are the settings of a session that matter to the journal.
type session struct {
	autocommit, idle int64
	isolation, mode  string
}

// readSession reads them, and whether a transaction is open.
const readSession = "CAST(@@autocommit AS SIGNED), CAST(@@idle_transaction_timeout AS SIGNED), @@tx_isolation, @@sql_mode, CAST(@@in_transaction AS SIGNED)"

// dest returns pointers to the settings of a session, in the order in which they are read.
func (s *session) dest() []any { return []any{&s.autocommit, &s.idle, &s.isolation, &s.mode} }

// The session of the journal. Without a strict mode, the server cuts a value too long for its column.
const (
	ownIsolation = "READ-COMMITTED"
	strictMode   = "STRICT_TRANS_TABLES"
	ownMode      = strictMode + ",ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)

// backslashMode is the mode in which the driver writes strings otherwise. It is kept.
const backslashMode = "NO_BACKSLASH_ESCAPES"

// fits reports whether the statements of the journal mean the same in a session of this sql_mode. Only known modes do, and the strict one, which refuses values
// out of range, must be among them.
func fits(mode string) bool {
	strict := false
	for name := range strings.SplitSeq(mode, ",") {
		switch name {
		case strictMode:
			strict = true
		case "", "STRICT_ALL_TABLES", "ERROR_FOR_DIVISION_BY_ZERO", "NO_AUTO_CREATE_USER", "NO_ENGINE_SUBSTITUTION",
			"NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ONLY_FULL_GROUP_BY", backslashMode:
		default:
			return false
		}
	}
	return strict
}

// set returns the assignments that prepare the session for the journal (to), and those that restore the program's own values (back). Names of
// isolation levels and modes need no escaping. A value that is right already is left out of both lists. idle is the idle_transaction_timeout in seconds for a
// session without one: with it the server ends a transaction left open, for example after a network failure.
func (s session) set(idle int) (to, back []string) {
	assign := func(name, own, was string) {
		to, back = append(to, name+" = "+own), append(back, name+" = "+was)
	}
	if s.isolation != ownIsolation {
		assign("tx_isolation", "'"+ownIsolation+"'", "'"+s.isolation+"'")
	}
	if !fits(s.mode) {
		mode := ownMode
		if strings.Contains(s.mode, backslashMode) {
			mode += "," + backslashMode
		}
		assign("sql_mode", "'"+mode+"'", "'"+s.mode+"'")
	}
	if s.idle == 0 {
		assign("idle_transaction_timeout", strconv.Itoa(idle), "0")
	}
	if s.autocommit != 1 {
		assign("autocommit", "1", "0")
	}
	return to, back
}

// borrowed is a connection of the program's DB, used by the journal as its own. It implements driver.Conn.
type borrowed struct {
	conn  *sql.Conn
	limit time.Duration
	most  int64  // max_allowed_packet
	back  string // the statement that sets the session back; "": it was not changed
	spent bool   // a transaction may be open: the DB drops the connection
}

// prepare sets the variables of the session of a borrowed connection as the journal needs them. b.back gets the statement that sets them back, before the
// program gets its connection again. If nothing differs, nothing is sent.
func (b *borrowed) prepare(ctx context.Context, s session) error {
	to, back := s.set(max(1, int(b.limit/time.Second)))
	if len(to) == 0 {
		return nil
	}
	b.back = "SET " + strings.Join(back, ", ")
	_, err := b.conn.ExecContext(ctx, "SET "+strings.Join(to, ", "))
	return err
}

// IsValid implements [driver.Validator]. It is false, so that database/sql gives a connection back to the program's own DB after
// each call, and takes and checks one anew for the next.
func (b *borrowed) IsValid() bool { return false }

// Close gives the connection back to the program's DB, with the variables of its session as they were. b.back is the statement for that, empty if nothing was
// changed. If they cannot be set back, or a transaction may be open (spent), the connection is dropped: an ErrBadConn from Raw makes database/sql close it, and
// the Close after that returns ErrConnDone.
func (b *borrowed) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), b.limit)
	defer cancel()
	if b.back != "" && !b.spent {
		_, err := b.conn.ExecContext(ctx, b.back)
		b.spent = err != nil
	}
	if b.spent {
		_ = b.conn.Raw(func(any) error { return driver.ErrBadConn }) // drops it
	}
	if err := b.conn.Close(); !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}

// ExecContext implements [driver.ExecerContext]. The parameters are written into the text of the statement where that is safe; else it is prepared.
func (b *borrowed) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if text, ok := b.interpolated(query, args); ok {
		return b.conn.ExecContext(ctx, text)
	}
	stmt, err := b.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	return stmt.ExecContext(ctx, values(args)...)
}

// QueryContext implements [driver.QueryerContext]. The parameters are written into the text of the statement where that is safe; else it is prepared, and the
// prepared statement is closed with the rows.
func (b *borrowed) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	var stmt *sql.Stmt
	var read *sql.Rows
	var err error
	if text, ok := b.interpolated(query, args); ok {
		read, err = b.conn.QueryContext(ctx, text)
	} else if stmt, err = b.conn.PrepareContext(ctx, query); err == nil {
		read, err = stmt.QueryContext(ctx, values(args)...)
	}
	r := &rows{read: read, stmt: stmt}
	if err == nil {
		r.columns, err = read.Columns()
	}
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// values returns the values of the parameters without their names.
func values(args []driver.NamedValue) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		all[i] = arg.Value
	}
	return all
}

// interpolated returns a statement with its parameters in its text. The text is one round trip (a prepared statement needs more), and its bytes are binary
// ones, whatever the character set of the session and the options of the driver are. It returns false, and the statement must be prepared, for a text larger
// than the server takes in one packet, and for a value of another type. No statement of the journal has a question mark in a string.
func (b *borrowed) interpolated(query string, args []driver.NamedValue) (string, bool) {
	var text []byte
	for i, part := range strings.Split(query, "?") {
		if i > 0 && i > len(args) {
			return "", false
		}
		if i > 0 {
			switch v := args[i-1].Value.(type) {
			case nil:
				text = append(text, "NULL"...)
			case int64:
				text = strconv.AppendInt(text, v, 10)
			case bool:
				text = strconv.AppendBool(text, v)
			case string:
				text = appendHex(text, []byte(v))
			case []byte:
				if v == nil {
					text = append(text, "NULL"...)
					break
				}
				text = appendHex(text, v)
			default:
				return "", false
			}
		}
		text = append(text, part...)
		if int64(len(text)) >= b.most {
			return "", false
		}
	}
	return string(text), true
}

// appendHex appends bytes to a statement as a literal in hexadecimal digits, which no setting of the session can change.
func appendHex(text, v []byte) []byte {
	return append(hex.AppendEncode(append(text, "x'"...), v), '\'')
}

// BeginTx implements [driver.ConnBeginTx]. The session has the isolation of all transactions of this package. It sends statements itself, since the commit of a
// sql.Tx would wait for its answer without a bound.
func (b *borrowed) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if level := sql.IsolationLevel(opts.Isolation); level != sql.LevelReadCommitted && level != sql.LevelDefault || opts.ReadOnly {
		return nil, errors.New("persist/mysql: a transaction of another kind than the journal's")
	}
	if _, err := b.conn.ExecContext(ctx, "START TRANSACTION"); err != nil {
		return nil, err
	}
	return &transaction{b}, nil
}

// Begin implements [driver.Conn]. It begins a transaction with the session's isolation.
func (b *borrowed) Begin() (driver.Tx, error) {
	return b.BeginTx(context.Background(), driver.TxOptions{})
}

// Prepare implements [driver.Conn]. The journal prepares no statement.
func (b *borrowed) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("persist/mysql: the journal prepares no statement")
}

// transaction is a transaction on a borrowed connection.
type transaction struct{ b *borrowed }

// Commit implements [driver.Tx]. The words after COMMIT overrule a setting of the server: the session stays connected, and no new transaction begins.
func (t *transaction) Commit() error { return t.end("COMMIT AND NO CHAIN NO RELEASE") }

// Rollback implements [driver.Tx]. The words after ROLLBACK overrule a setting of the server: the session stays connected, and no new transaction begins.
func (t *transaction) Rollback() error { return t.end("ROLLBACK AND NO CHAIN NO RELEASE") }

// end ends the transaction by COMMIT or ROLLBACK, within a time limit of its own. After an error the transaction may be open, and the connection is not used
// again (spent).
func (t *transaction) end(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), t.b.limit)
	defer cancel()
	_, err := t.b.conn.ExecContext(ctx, statement)
	t.b.spent = err != nil
	return err
}

// rows are the rows of a query on a borrowed connection.
type rows struct {
	read    *sql.Rows // nil: the query failed
	stmt    *sql.Stmt // nil: there is none
	columns []string
}

// Columns implements [driver.Rows]. It returns their names.
func (r *rows) Columns() []string { return r.columns }

// Close implements [driver.Rows]. It closes the prepared statement, too, if there is one.
func (r *rows) Close() (err error) {
	if r.read != nil {
		err = r.read.Close()
	}
	if r.stmt != nil {
		_ = r.stmt.Close()
	}
	return err
}

// Next implements [driver.Rows], by the rows of the program's DB. Scanned into an any, a value stays as the driver gave it.
func (r *rows) Next(dest []driver.Value) error {
	if !r.read.Next() {
		if err := r.read.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	at := make([]any, len(dest))
	for i := range dest {
		at[i] = (*any)(&dest[i])
	}
	return r.read.Scan(at...)
}

// HasNextResultSet implements [driver.RowsNextResultSet]. It is always true: NextResultSet finds out if there is one, and returns io.EOF if not.
func (r *rows) HasNextResultSet() bool { return true }

// NextResultSet implements [driver.RowsNextResultSet], by the rows of the program's DB.
func (r *rows) NextResultSet() (err error) {
	if !r.read.NextResultSet() {
		if err := r.read.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	r.columns, err = r.read.Columns()
	return err
}
