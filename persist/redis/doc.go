// Package redis is a journal on Redis 7: for several processes or machines that share their
// operations, on one server or on a Redis Cluster. Older versions, and servers that speak the
// same protocol, were not tried.
//
// # What it promises
//
// What a call acknowledged was written to the append-only file and synced: every new connection
// is refused to a server whose settings would lose an acknowledged write or evict one, see
// [Options].AllowVolatile. After kill -9 or a power loss of that server everything
// acknowledged is there again.
//
// A write whose answer was lost is settled by making the same write again, under a random
// token. Where Redis does not answer within Options.CallTimeout, the error matches
// [persist.ErrUncertain]. It is about that one call: the journal goes on, and recovers by
// itself.
//
// # A server that comes back empty
//
// A journal has a random name, which each of its buckets bears. A bucket that was emptied, by
// FLUSHALL or since its server was started without its append-only file, is noticed by each
// journal that was open before: Begin, Get, List, Now and Claim give [persist.ErrGone], so that
// no key that was used passes for a new one. Open on a server that has nothing at all makes a
// new journal; in a cluster, where the other nodes know the journal, it is ErrGone, too.
//
// # Wakes
//
// Processes wake each other ([persist.Notifier]) on the channel "{PREFIX}:wake:DB", DB being the number of the database. A user
// with an ACL needs the right to it: &{PREFIX}:wake:*.
//
// # What it does not promise
//
// Redis replicates after it has answered. When a replica is promoted, by Sentinel, by a
// cluster or by hand, the last records that were acknowledged may be missing, whatever the
// append-only file says: a key may then be free that was used, and an operation that was sent
// may be pending again or unknown. WAIT and min-replicas-to-write make that less likely and do
// not rule it out. A server on the wrong side of a partition takes writes that are dropped
// later. A journal that must survive the loss of a machine belongs on a database that
// replicates synchronously (package postgres). After a failover, compare the journal with what
// the API says it did before anything is sent again.
//
// # Memory
//
// Redis holds every record in memory. What is remembered of a key that a caller chose (about
// 1.1 KB) is kept for ever by the other journals; here Options.KeepKey has to say for how
// long. It goes into the records that are begun with it. Requests and answers leave with [Journal.Sweep].
//
// # Large records
//
// No part of a record, such as the body of a request, may be larger than the server's proto-max-bulk-len, as the
// journal's latest connection has found it: Begin refuses it with [persist.ErrTooLarge] before anything is written. A
// client records an answer that is larger without its body.
//
// # The client library
//
// It is go-redis, whose own repetitions are switched off: they would repeat a Begin. It prints
// connections that it could not make to the standard error; its SetLogger changes that for the
// whole program.
//
// # How it is laid out
//
// A journal is a number of buckets. The keys of a bucket share a hash tag, so that they lie on
// one node of a cluster and one script changes a record with its indexes. A record is in the
// bucket that the hash of its key names. See bucket.go.
package redis
