// Package sqljournal is the common part of the journals on SQL databases: a record as a row and back, and the
// statements common to both engines. Their differences are in a [Dialect].
//
// # What a row is
//
// A value has a column of its own if a query asks for it, or if the database compares or sets it. So have the large
// values: the body of the request and the body of the answer. The rest is two encoded parts, as in the other journals
// (package codec). Nothing is kept twice. Times are nanoseconds since 1970, since neither engine keeps nanoseconds in
// a time of its own; 0 is no time.
//
// # A lost answer
//
// When a connection ends between a write and its answer, the write may have happened, may be about to happen, or may
// never happen. No SELECT can tell: it may see no row, and the commit lands a moment later. So the same write is made
// again. Each write carries a random token, kept in the row. The repeated write waits for the transaction in doubt,
// because both need the same row lock or unique key; the standing token then identifies the write. See settle.
//
// # Used keys
//
// A sweep leaves of an ended record hardly more than that its key was used (persist.Record.KeepText). On PostgreSQL this
// is a row of the same table with few columns. MariaDB has a table of their own for such rows, see [Apart]: the sweep
// moves the row there in one transaction. A read of both tables is one statement. A write that makes a row with an id
// looks for a used key behind that, in its own transaction.
//
// # Sequence numbers
//
// A database hands out numbers in one order and commits in another. A listing up to number 10 would never come back
// for number 9, committed later. Two rules prevent that. First, a listing waits for the statements in flight with a
// number (each lasts for milliseconds, see Dialect.Barrier), and yields no number handed out later. Second, a record
// begun in a transaction of the caller's own gets no number, as such a transaction may last for hours. The first
// listing or claim to see the record numbers it.
package sqljournal
