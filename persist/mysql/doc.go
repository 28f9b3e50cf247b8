// Package mysql is a journal on MariaDB 10.6 or later. It is for several processes or machines with common
// operations, and for programs that begin an operation in the transaction of its business row ([Begin]). MySQL is not
// tested, and lacks statements used by this package.
//
// [Migrate] makes and updates the tables. [Open] uses them and never changes them, and [Print] writes the SQL for an
// administrator to run by hand.
//
// # What it promises
//
// Each acknowledged call was committed with innodb_flush_log_at_trx_commit = 1, and sync_binlog = 1 if the server has
// a binary log, or with innodb_flush_log_at_trx_commit = 3. A server with other settings is refused on each new
// connection (see Options.AllowVolatile). Each connection switches autocommit on, whatever the server's default is.
// After a failover to a replica, the last records may be missing, also with semi-synchronous replication. A cluster
// of several writers (Galera) is not supported: its numbers do not grow, and a commit may fail there after the
// statement.
//
// After a lost answer to a commit, the journal makes the same write again. If the database does not answer within
// Options.CallTimeout, the error matches [persist.ErrUncertain]. It is about that one call: the journal goes on, and
// recovers by itself.
//
// MariaDB has no means for processes to wake each other: the journal is no persist.Notifier, and Run polls.
//
// In a transaction of the caller's own, READ COMMITTED is the better isolation. At MariaDB's default, REPEATABLE
// READ, a conflict also keeps others from beginning keys beside it until the transaction ends.
//
// A used key without its text (persist.Record.KeepText) is in a table of its own, to which a sweep moves it. A transaction
// of the caller's own at REPEATABLE READ that has begun a record keeps a range of that table until its end. Sweeps do not
// wait for it: they may leave the texts of some records for a later sweep.
//
// No part of a record, such as the body of a request, may be larger than the server's max_allowed_packet. Its value
// is the one of the journal's latest connection. Begin refuses a larger part with [persist.ErrTooLarge] before
// anything is written. In a transaction of the caller's own, this bound is for all parts together. A client records a
// larger answer without its body, like one over Config.MaxResponseBytes. After a server's max_allowed_packet was
// raised, open the journal anew.
//
// # Nil
//
// A nil context or transaction panics, on the caller's goroutine.
package mysql
