// Package mysql is a journal on MariaDB 10.6 or later: for several processes or machines that
// share their operations, and for programs that begin an operation in the transaction of the
// business row that it belongs to ([Begin]). MySQL is not tested, and lacks statements that
// this package uses.
//
// [Migrate] makes and updates the tables, [Open] uses them and never changes them, and
// [Print] shows the SQL to an administrator who wants to run it himself.
//
// # What it promises
//
// What a call acknowledged was committed with innodb_flush_log_at_trx_commit = 1, and
// sync_binlog = 1 where the server has a binary log, or with innodb_flush_log_at_trx_commit = 3.
// A server that says otherwise is refused on each new connection (see Options.AllowVolatile).
// Each connection switches autocommit on, whatever the server's default is.
// After a failover to a replica, the last records may be missing, also with semi-synchronous
// replication. A cluster of several writers (Galera) is not supported: its numbers do not
// grow, and a commit may fail there after the statement.
//
// A commit whose answer was lost is settled by making the same write again. Where the
// database does not answer within Options.CallTimeout, the error matches
// [persist.ErrUncertain]. It is about that one call: the journal goes on, and recovers by
// itself.
//
// MariaDB has nothing by which processes could wake each other: the journal is no persist.Notifier, and Run polls.
//
// In a transaction of the caller's own READ COMMITTED is the better isolation: at MariaDB's
// default, REPEATABLE READ, a conflict also keeps others from beginning keys beside it until
// the transaction ends.
//
// No part of a record, such as the body of a request, may be larger than the server's
// max_allowed_packet, as the journal's latest connection has found it: Begin refuses it with
// [persist.ErrTooLarge] before anything is written. In a transaction of the caller's own all parts together
// may not. A client records an answer that is larger without its body, as one over
// Config.MaxResponseBytes. Of a server whose max_allowed_packet was raised since, open the journal anew.
//
// # Nil
//
// A nil context or transaction panics, on the caller's goroutine.
package mysql
