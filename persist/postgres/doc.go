// Package postgres is a journal on PostgreSQL 13 or later. It is for several processes or machines with common
// operations, and for programs that begin an operation in the transaction of its business row ([Begin]).
//
// [Migrate] makes and updates the tables. [Open] uses them and never changes them, and [Print] writes the SQL for an
// administrator to run by hand.
//
// # What it promises
//
// Each acknowledged call was committed with fsync and synchronous_commit on. A server with other settings is refused
// on each new connection (see Options.AllowVolatile). Each write also sets synchronous_commit for its transaction if it
// is off, and is refused if fsync is off: behind a pooler, too, and in a pool of the program's own ([OpenPool]). After a
// failover to a standby without synchronous replication, the last records may be missing.
// The value synchronous_commit = local is accepted; with it, no standby replicates synchronously.
//
// After a lost answer to a commit, the journal makes the same write again. If the first write has taken effect, the
// second one also waits for a synchronous standby. If the database does not answer within Options.CallTimeout, the
// error matches [persist.ErrUncertain]. It is about that one call: the journal goes on, and recovers by itself.
//
// # PgBouncer
//
// It works through PgBouncer in transaction mode: it uses no prepared statement with a name, and no state of a
// session outside a transaction. But through PgBouncer the journal does not hear of operations enqueued by other
// processes, and finds them by polling. For the listening connection, set Options.ListenURL to a URL of the server
// itself.
//
// # Nil
//
// A nil context, transaction or connection panics, on the caller's goroutine.
package postgres
