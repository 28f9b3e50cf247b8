// Package postgres is a journal on PostgreSQL 13 or later: for several processes or machines
// that share their operations, and for programs that begin an operation in the transaction of
// the business row that it belongs to ([Begin]).
//
// [Migrate] makes and updates the tables, [Open] uses them and never changes them, and
// [Print] shows the SQL to an administrator who wants to run it himself.
//
// # What it promises
//
// What a call acknowledged was committed with fsync and synchronous_commit on; a server that says
// otherwise is refused on each new connection (see Options.AllowVolatile; behind a pooler, a
// connection to the server that the pooler makes later is not looked at). After a failover to a
// standby that does not replicate synchronously, the last records may be missing. With
// synchronous_commit = local, which is accepted, no standby does.
//
// A commit whose answer was lost is settled by making the same write again, which also waits
// for a synchronous standby where it finds that the first one has taken effect. Where the
// database does not answer within Options.CallTimeout, the error matches
// [persist.ErrUncertain]. It is about that one call: the journal goes on, and recovers by
// itself.
//
// # PgBouncer
//
// It works through PgBouncer in transaction mode: it uses no prepared statement with a name,
// and no state of a session outside a transaction. Only what other processes enqueue is not heard
// through it, but found by polling: Options.ListenURL gives the one connection that listens a URL of the server itself.
//
// # Nil
//
// A nil context, transaction or connection panics, on the caller's goroutine.
package postgres
