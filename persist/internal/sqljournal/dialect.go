package sqljournal

import (
	"context"
	"database/sql"
	"time"
)

// QueryRow runs a query that returns one row, and scans it. It is a method of a
// connection, of a transaction, or made of one of another interface. Error: also
// sql.ErrNoRows.
type QueryRow func(ctx context.Context, query string, args []any, dest ...any) error

// OnConn is the QueryRow of a connection.
func OnConn(conn *sql.Conn) QueryRow {
	return func(ctx context.Context, query string, args []any, dest ...any) error {
		return conn.QueryRowContext(ctx, query, args...).Scan(dest...)
	}
}

// OnTx is the QueryRow of a transaction.
func OnTx(tx *sql.Tx) QueryRow {
	return func(ctx context.Context, query string, args []any, dest ...any) error {
		return tx.QueryRowContext(ctx, query, args...).Scan(dest...)
	}
}

// Doubt says what an error of the database means for the statement that it ended.
type Doubt int

// The kinds of errors. The zero value is the cautious one.
const (
	InDoubt Doubt = iota // the statement may have taken effect, or may take effect yet
	NotSent              // nothing of it reached the database
	Again                // the database undid it, and it may succeed if it is made again at once
	Undone               // the database answered with an error and undid it
)

// Index is an index of the table of records.
type Index int

// The indexes that a statement asks for.
const (
	PrimaryKey Index = iota // id
	SweepIndex              // sweep_at, id; it may lack unfinished records
)

// Dialect is what differs between the engines.
type Dialect interface {
	// Rebind turns the question marks of a statement into the engine's placeholders.
	Rebind(query string) string
	// Records is the name of the table of records, ready for a statement.
	Records() string
	// By is Records for a SELECT that has to find its rows by this index, whatever the engine
	// knows of the table, where the engine would otherwise lock, or read, more rows than those.
	By(index Index) string
	// Update and Delete return a statement that changes records and waits for another's
	// lock no longer than its bound. set is "column = ?, …", where a condition.
	Update(set, where string) string
	Delete(where string) string
	// DeleteAll is a statement, with the engine's placeholders, that deletes n records by their
	// ids, which are its parameters, and reads no others.
	DeleteAll(n int) string
	// Orphan is the condition that selects unresolved records under generated keys, in
	// the form that the engine answers from an index. one: those of one fingerprint, a
	// parameter.
	Orphan(one bool) string
	// Begin inserts the row in one statement, with a number of its own, unless its ID
	// exists. It returns the row that stands: row itself, with Seq set, or another's. A
	// nil row is a race with another Begin that has just ended: make it again. The row that
	// stands, unless it is confirmed, is as safe as after Confirm.
	Begin(ctx context.Context, run QueryRow, row *Row) (standing *Row, err error)
	// Number numbers the records that are committed and have no number yet.
	Number(ctx context.Context, conn *sql.Conn) error
	// Barrier returns when no statement that was in flight at the call holds a number any
	// more. Such a statement ends by itself.
	Barrier(ctx context.Context, conn *sql.Conn) error
	// OriginHash is an expression for the SHA-256 of a record's origin, which may be longer
	// than an entry of an index.
	OriginHash() string
	// Denied reports whether the database refused a statement because the role has no right on its table.
	Denied(err error) bool
	// SelectFact is a query for the value of the fact whose name is its parameter. InsertFact inserts one, name and value, unless there is
	// one of that name; UpdateFact writes a value, name and the value that it replaces. All with the parameters in this order, each as "?".
	SelectFact() string
	InsertFact() string
	UpdateFact() string
	// Now is an expression for the time of the server's clock, in nanoseconds since 1970,
	// in UTC, at which its statement is made.
	Now() string
	// Claim leases up to n pending records that the condition selects, that are due at now
	// and at lease.DueBy and whose lease has ended at now, in one transaction. It calls taken for each,
	// in any order, with the row as it was before, and writes the progress that taken returns, and the row's SendUntil. now is the
	// server's time of the claim.
	Claim(ctx context.Context, conn *sql.Conn, where string, args []any, lease Lease, n int, taken func(row *Row, now int64) (progress []byte)) (now int64, err error)
	// Renew lets the owner's leases of pending records last until for after now, which is the
	// server's time, and returns the ids of those. It passes over records that another
	// transaction has locked, and waits for none.
	Renew(ctx context.Context, conn *sql.Conn, lease Lease, ids [][]byte) (held [][]byte, now int64, err error)
	// DueTimes calls found for up to n groups (an origin and needs) of pending records that the condition selects, in the order of the hashes of the
	// origins and then of the needs, from the first behind those, with the earliest next_attempt of each. It is one statement, and reads each from the index
	// of origins. On an error, found was called for the first of them.
	DueTimes(ctx context.Context, conn *sql.Conn, where string, args []any, after, needs []byte, n int, found func(origin, needs []byte, next int64)) error
	// Abandoned is a statement for the start of a transaction of several statements: the
	// server then ends it by itself, and frees its locks, where the next statement does not
	// come for a while, as behind a network that drops packets. Empty: it does so anyway.
	Abandoned() string
	// Confirm is a statement that changes no row, and whose commit waits for whatever a commit waits for, such as a standby:
	// what its connection has read before is then as safe as what it has written. Empty: there is none.
	Confirm() string
	// Most returns how many bytes a value of a row may have, by what the server said last, and the name of what bounds it. Of
	// 0 bytes: there is no bound.
	Most() (bytes int64, bound string)
	// TooLarge reports whether the database undid, or refused, a statement because a value is larger than it takes.
	TooLarge(err error) bool
	// Doubt sorts an error of the driver.
	Doubt(err error) Doubt
	// Waited reports whether the database undid a statement because it had waited for
	// another transaction for as long as it may.
	Waited(err error) bool
}

// Lease is what Claim and Renew write into records.
type Lease struct {
	Owner []byte // who takes or has them
	For   int64  // how long the lease lasts, in nanoseconds
	Token []byte // of Claim: the token of this write
	DueBy int64  // of Claim: what is due later is left, in nanoseconds since 1970
	Group bool   // of Claim: the condition names an origin and needs
}

// Config is what New needs.
type Config struct {
	DB      *sql.DB       // closed by Journal.Close
	Dialect Dialect       // of the engine
	Name    string        // how errors call the journal; it holds no credentials
	Limit   time.Duration // the time limit of one call, all its repetitions included; positive

	ReadOnly bool // whatever would write is persist.ErrReadOnly
}
