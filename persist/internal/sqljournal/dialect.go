package sqljournal

import (
	"context"
	"database/sql"
	"time"
)

// QueryRow runs a query for one row, and scans it. It is a method of a connection or of a transaction, or wraps one
// of another interface. Error: also sql.ErrNoRows.
type QueryRow func(ctx context.Context, query string, args []any, dest ...any) error

// OnConn returns a QueryRow, a function that reads one row, for statements on a connection.
func OnConn(conn *sql.Conn) QueryRow {
	return func(ctx context.Context, query string, args []any, dest ...any) error {
		return conn.QueryRowContext(ctx, query, args...).Scan(dest...)
	}
}

// OnTx returns a QueryRow, a function that reads one row, for statements in a transaction.
func OnTx(tx *sql.Tx) QueryRow {
	return func(ctx context.Context, query string, args []any, dest ...any) error {
		return tx.QueryRowContext(ctx, query, args...).Scan(dest...)
	}
}

// Doubt is the meaning of a database error for the statement ended by it.
type Doubt int

// The kinds of errors. The zero value is the cautious one.
const (
	InDoubt Doubt = iota // the statement may have taken effect, or may take effect yet
	NotSent              // nothing of it reached the database
	Again                // the database undid it; the same statement may succeed at once
	Undone               // the database answered with an error and undid it
)

// Index is an index of the table of records.
type Index int

// The indexes for By.
const (
	PrimaryKey Index = iota // id
	SweepIndex              // sweep_at, id; it may lack unfinished records
	CountIndex              // state, hold_reason, created; it may lack final records
)

// Dialect holds the differences between the engines.
type Dialect interface {
	// Rebind turns the question marks of a statement into the engine's placeholders.
	Rebind(query string) string
	// Records is the name of the table of records, ready for a statement.
	Records() string
	// By is Records for a SELECT that has to find its rows by this index, independent of the engine's statistics of
	// the table. It is for statements for which the engine may otherwise lock, or read, more rows than these.
	By(index Index) string
	// Update and Delete return a statement to change records. It waits for another's lock no longer than its bound.
	// set is "column = ?, …", and where is a condition.
	Update(set, where string) string
	Delete(where string) string
	// DeleteAll returns a statement, with the engine's placeholders, to delete n records by their ids. The ids are its
	// parameters. It reads no other records.
	DeleteAll(n int) string
	// Orphan returns the condition for unresolved records under generated keys, in the form answered by the engine
	// from an index. With one, the condition selects those of one fingerprint, a parameter.
	Orphan(one bool) string
	// Owed returns the condition for records owed to OnResult (persist.Record.Owed), in the form answered by the engine
	// from an index.
	Owed() string
	// Begin inserts the row in one statement, with a number of its own, unless its ID exists. It returns the standing
	// row: row itself, with Seq set, or another's. A nil row means a race with another Begin, ended just now: call
	// Begin again. The standing row, unless it is confirmed, is as safe as after Confirm.
	Begin(ctx context.Context, run QueryRow, row *Row) (standing *Row, err error)
	// Number gives a number to each committed record without one that is no used key.
	Number(ctx context.Context, conn *sql.Conn) error
	// Barrier returns when no statement in flight at the call holds a number any more. Such a statement ends by
	// itself.
	Barrier(ctx context.Context, conn *sql.Conn) error
	// OriginHash returns an expression for the SHA-256 of a record's origin. The origin itself may be longer than an
	// index entry.
	OriginHash() string
	// Denied reports whether the database refused a statement because the role has no right on its table.
	Denied(err error) bool
	// Clear reports whether the database refused a row in clear, since the journal is sealed.
	Clear(err error) bool
	// SelectFact returns a query for a fact's value; its parameter is the fact's name. InsertFact inserts a fact, with
	// the parameters name and value, unless there is one of that name. UpdateFact replaces a fact's value; its
	// parameters are the new value, the name and the old value. Each parameter is a "?", in this order.
	SelectFact() string
	InsertFact() string
	UpdateFact() string
	// Size returns a query for the bytes of the tables of records and facts, with their indexes.
	Size() string
	// Now returns an expression for the server's time when it makes the statement, in nanoseconds since 1970, in UTC.
	Now() string
	// Claim leases up to n pending records, in one transaction. They fulfil the condition, are due at now and at
	// lease.DueBy, and their lease has ended at now. It calls taken for each, in any order, with the row as it was
	// before. It writes the progress returned by taken, and the row's SendUntil. now is the server's time of the
	// claim.
	Claim(ctx context.Context, conn *sql.Conn, where string, args []any, lease Lease, n int, taken func(row *Row, now int64) (progress []byte)) (now int64, err error)
	// Renew lets the owner's leases of pending records last for lease.For from now on, and returns the ids of those
	// records. now is the server's time. Renew passes over records locked by another transaction, and waits for none.
	Renew(ctx context.Context, conn *sql.Conn, lease Lease, ids [][]byte) (held [][]byte, now int64, err error)
	// DueTimes calls found for up to n groups (an origin and needs) of pending records selected by the condition, with
	// the earliest next_attempt of each group. The groups come in the order of the hashes of the origins, then of the
	// needs. The first one is the first behind the hash after and the parameter needs. It is one statement, and reads
	// each from the index of origins. On an error, found was called for the first groups.
	DueTimes(ctx context.Context, conn *sql.Conn, where string, args []any, after, needs []byte, n int, found func(origin, needs []byte, next int64)) error
	// Abandoned returns a statement for the start of a transaction of several statements. The server then ends the
	// transaction by itself, and frees its locks, if the next statement does not come for a while. This happens behind
	// a network with dropped packets, for example. Empty: the server does so anyway.
	Abandoned() string
	// Confirm returns a statement without a change to any row. Its commit waits like every other commit, for a
	// standby, for example. After it, the data read before on its connection is as safe as the data written. Empty:
	// there is none.
	Confirm() string
	// Most returns the largest size of a row's value, by the server's latest settings, and the name of the bound. With
	// 0 bytes, there is no bound.
	Most() (bytes int64, bound string)
	// TooLarge reports whether the database undid, or refused, a statement because a value is too large for it.
	TooLarge(err error) bool
	// Doubt sorts an error of the driver.
	Doubt(err error) Doubt
	// Waited reports whether the database undid a statement because its wait for another transaction had reached the
	// bound.
	Waited(err error) bool
}

// Apart is a Dialect with a table of their own for used keys (records without their text). A sweep moves a row there from Records in one transaction, which
// locks the row in Records first. So a write that adds a row to Records, or gives a row another id, looks for a used key of this id afterwards, in its own
// transaction, and is undone if there is one. The look comes after the write, which has waited for a sweep under way, and it sees all that was committed: an
// earlier look could come before the sweep, and the write behind it.
type Apart interface {
	// Used is the table of used keys for a SELECT by an index, with the columns of Records. Its numbers (seq) are null. By the index of sweeps it has only
	// those that are not kept for ever.
	Used(index Index) string
	// InsertUsed inserts used keys in the transaction of a sweep. values has those of UsedColumns for each, one after the other. It waits for no lock of
	// others: see Waited.
	InsertUsed(ctx context.Context, tx *sql.Tx, values []any) error
	// DeleteUsed deletes used keys by their ids, and returns their number.
	DeleteUsed(ctx context.Context, tx *sql.Tx, ids []any) (int64, error)
	// LookUsed returns a query for the id of the used key with an id, its parameter. It waits for transactions under way, and sees all that were committed.
	LookUsed() string
}

// Lease is the lease written into records by Claim and Renew.
type Lease struct {
	Owner []byte // the owner of the leases
	For   int64  // the duration of the lease, in nanoseconds
	Token []byte // of Claim: the token of this write
	DueBy int64  // of Claim: records due later are left alone; in nanoseconds since 1970
	Group bool   // of Claim: the condition names an origin and needs
}

// Config is the configuration for New.
type Config struct {
	DB      *sql.DB       // closed by Journal.Close
	Dialect Dialect       // of the engine
	Name    string        // of the journal in errors, without credentials
	Limit   time.Duration // the time limit of one call, all its repetitions included; positive

	ReadOnly bool // writes return persist.ErrReadOnly
}
