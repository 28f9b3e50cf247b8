// Package redis is a journal on Redis 7: for several processes or machines with common operations, on one server or on
// a Redis Cluster. Older versions, and other servers with the same protocol, were not tried.
//
// # Promises
//
// An acknowledged call was written to the append-only file and synced. Each new connection checks the server's
// settings. A server is refused if its settings would lose or evict an acknowledged write, see [Options].AllowVolatile.
// After kill -9 or a power loss of that server all acknowledged writes are there again.
//
// If the answer to a write is lost, the journal makes the same write again, under a random token. If Redis does not
// answer within Options.CallTimeout, the error matches [persist.ErrUncertain]. It is about that one call: the journal
// goes on, and recovers by itself.
//
// # An emptied server
//
// A journal has a random name, and each of its buckets bears it. FLUSHALL empties a bucket, and so does a restart of
// its server without its append-only file. Each journal opened before notices it: Begin, Get, List, Now and Claim
// return [persist.ErrGone], so a used key is never taken for a new one. Open on a completely empty server makes a new
// journal. In a cluster it is ErrGone, too, if the other nodes know the journal.
//
// # Transactions
//
// Redis has no transaction that a program opens, reads in and commits later: the journal is no [persist.TxBeginner], and
// persist.BeginTx refuses it. Client.Enqueue begins an operation beside a business row, not with it.
//
// # Wakes
//
// Processes wake each other ([persist.Notifier]) on the channel "{PREFIX}:wake:DB", DB being the number of the
// database. A user with an ACL needs the right to it: &{PREFIX}:wake:*.
//
// # Limits of the promises
//
// Redis replicates after it has answered. After the promotion of a replica, by Sentinel, by a cluster or by hand, the
// last acknowledged records may be missing, in spite of the append-only file. Then a used key may be free, and a sent
// operation may be pending again or unknown. WAIT and min-replicas-to-write make this less likely and do not rule it
// out. A server on the wrong side of a partition takes writes, and drops them later. If a journal must survive the loss
// of a machine, use a database with synchronous replication (package postgres). After a failover, compare the journal
// with the API's own data before anything is sent again.
//
// # Memory
//
// Redis holds every record in memory. The other journals keep the tombstone of a chosen key (here about 1.1 KB, or 0.7 KB without its text) for ever;
// here Options.KeepKey has to give a time. Begin writes it into the records. Requests and answers leave with
// [Journal.Sweep].
//
// # Large records
//
// No part of a record, such as the body of a request, may be larger than the server's proto-max-bulk-len, as found by
// the journal's latest connection. Begin refuses it with [persist.ErrTooLarge] before anything is written. A client
// records a larger answer without its body.
//
// # The client library
//
// It is go-redis. Its own repetitions are switched off: they would repeat a Begin. It prints failed connections to the
// standard error; its SetLogger changes this for the whole program.
//
// # Layout
//
// A journal is a number of buckets. The keys of a bucket share a hash tag, so they lie on one node of a cluster, and
// one script changes a record with its indexes. The hash of a record's key names its bucket. See bucket.go.
package redis
