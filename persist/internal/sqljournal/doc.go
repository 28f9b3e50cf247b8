// Package sqljournal is what the journals on SQL databases share: a record as a row and
// back, and the statements that both engines take. What they do not share is a [Dialect].
//
// # What a row is
//
// A column of its own has what a query asks for, what the database compares or sets by
// itself, and what may be large: the body of the request and that of the answer. The rest
// is two encoded parts, as in the other journals (package codec). Nothing is kept twice.
// Times are nanoseconds since 1970, since neither engine keeps nanoseconds in a time of
// its own; 0 is no time.
//
// # A lost answer
//
// When a connection ends between a write and its answer, the write may have happened, may
// be about to happen, or may never happen. No SELECT can tell: it sees no row, and the
// commit lands a moment later. So the same write is made again. Each write carries a
// random token that the row keeps. The repeated write waits for the transaction in doubt,
// because both need the same row lock or unique key; the token that stands then says
// whose write it was. See settle.
//
// # Sequence numbers
//
// A database hands out numbers in one order and commits in another. A listing that went up
// to number 10 would never come back for number 9, which commits later. Two rules prevent
// that. A listing first waits for the statements in flight that hold a number (each lasts
// for milliseconds, see Dialect.Barrier), and yields no number that was handed out later.
// A record that is begun in a transaction of the caller's own, which may last for hours,
// gets no number: the first listing or claim that sees it numbers it.
package sqljournal
