package sqljournal

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// triesInLimit is the number of tries of full length within the limit of a call. The first may hang in a network with
// dropped packets, and the next has to settle it.
const triesInLimit = 3

// The pauses between two tries.
const (
	pauseFirst = 2 * time.Millisecond
	pauseLast  = 250 * time.Millisecond
)

// errNoConnection: the database could not be reached at all. Calls fail fast then, but for settleLate.
var errNoConnection = errors.New("no connection")

// errAgain asks settle to make the statement again at once: a race with another process
// was lost, and nothing was written.
var errAgain = errors.New("another process was faster; make it again")

// settle makes a write until the database has reported its result, or the limit of the call is over. After a lost
// answer, the write is made again: it must take effect once, however often it is made, and it must find its own
// earlier effect. Once the write is handed over to the database, the end of ctx no longer ends it.
//
// Errors: those of write itself, undone by the database; persist.ErrUncertain if the limit ended while a write was in
// doubt; the context's.
//
// first, unless it is nil, is the first try. It is made together with other calls.
func (j *Journal) settle(ctx context.Context, first firstTry, write func(ctx context.Context, conn *sql.Conn, repeated bool) error) error {
	return j.settled(j.repeat(ctx, false, first, write))
}

// settleLate does the work of settle for a write that no caller waits for, and that nobody makes again if it gives up. Without a connection, it tries again,
// until the limit of the call is over or ctx ends.
func (j *Journal) settleLate(ctx context.Context, first firstTry, write func(ctx context.Context, conn *sql.Conn, repeated bool) error) error {
	return j.settled(j.repeat(ctx, true, first, write))
}

// settled returns the error of settle for the results of repeat, with the name of the journal. If the write may or may not have taken effect (inDoubt), it
// matches persist.ErrUncertain, too. A nil err stays nil.
func (j *Journal) settled(inDoubt bool, err error) error {
	if inDoubt {
		return j.failed(fmt.Errorf("%w: %w", persist.ErrUncertain, err))
	}
	return j.failed(err)
}

// attempt does the work of settle for a write that does no harm, done or not, such as a claim. Its error is never persist.ErrUncertain, since that ends a
// client's Run, its loop over the due operations.
func (j *Journal) attempt(ctx context.Context, write func(ctx context.Context, conn *sql.Conn) error) error {
	_, err := j.repeat(ctx, false, nil, func(ctx context.Context, conn *sql.Conn, _ bool) error { return write(ctx, conn) })
	return j.failed(err)
}

// firstTry is the first try of a write, with the results of Journal.try. Error: also errAlone.
type firstTry func(ctx, limited context.Context) (Doubt, error)

// repeat makes a write, and makes it again until the database reports its result or the time limit of a call is over. first, if not nil, is the first
// try. write gets repeated true if an earlier try may have taken effect. Without a connection repeat fails at once, but goes on if patient is set or an
// earlier try is in doubt. inDoubt means that nobody knows if a try took effect. errAlone comes only from first: the write is made alone, at once. An error of
// package persist about a row (isOwn) is final, also after a try in doubt: the try that read the row has waited for the earlier ones.
func (j *Journal) repeat(ctx context.Context, patient bool, first firstTry, write func(ctx context.Context, conn *sql.Conn, repeated bool) error) (inDoubt bool, err error) {
	if err := cmp.Or(ctx.Err(), j.refuseReadOnly()); err != nil {
		return false, err
	}
	if !j.enter() {
		return false, persist.ErrClosed
	}
	defer j.running.Done()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.limit)
	defer cancel()
	var doubt error // of an earlier try
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		kind, err := j.tryOr(first, ctx, limited, doubt != nil, write)
		first = nil
		switch {
		case err == nil:
			return false, nil
		case errors.Is(err, errAlone):
			continue
		case isOwn(err):
			return false, err
		case kind == InDoubt:
			doubt = err
		case doubt == nil && (kind == Undone || !patient && errors.Is(err, errNoConnection)):
			return false, err
		}
		select {
		case <-limited.Done():
			return doubt != nil, fmt.Errorf("no answer within %v: %w", j.limit, cmp.Or(doubt, err))
		case <-time.After(pause):
		}
	}
}

// tryOr makes the next try of a write: first, if it is not nil, a try made together with other calls' writes; else one by a statement of its own. repeated
// means that an earlier try may have taken effect. The Doubt says if this one may have, although it failed.
func (j *Journal) tryOr(first firstTry, ctx, limited context.Context, repeated bool, write func(context.Context, *sql.Conn, bool) error) (Doubt, error) {
	if first != nil {
		return first(ctx, limited)
	}
	return j.try(ctx, limited, repeated, write)
}

// try makes the write once, on a connection of its own. The Doubt says if the write may have taken effect although it failed. repeated means that an earlier
// try may have. If the caller leaves (ctx ends) before a connection is there, nothing is written, unless an earlier try is in doubt: then the write is still
// made, to learn its result. A part of the limit is for one try, so that there can be several.
func (j *Journal) try(ctx, limited context.Context, repeated bool, write func(context.Context, *sql.Conn, bool) error) (Doubt, error) {
	short, cancel := context.WithTimeout(limited, j.limit/triesInLimit)
	defer cancel()
	waiting := short
	if !repeated {
		var stop context.CancelFunc
		waiting, stop = context.WithCancel(short)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
	}
	conn, err := j.db.Conn(waiting)
	if err != nil && waiting.Err() == nil { // once more: a password or a certificate may have been rotated meanwhile, and nothing was sent
		conn, err = j.db.Conn(waiting)
	}
	if err != nil {
		if ctx.Err() != nil && !repeated {
			return Undone, ctx.Err()
		}
		return NotSent, fmt.Errorf("%w: %w", errNoConnection, err)
	}
	defer func() { _ = conn.Close() }()
	err = write(short, conn, repeated)
	if err != nil && !repeated && j.d.TooLarge(err) { // after an earlier try in doubt, "too large" would wrongly say that nothing was written
		err = fmt.Errorf("%w: %w", persist.ErrTooLarge, err)
	}
	return j.sort(err), err
}

// sort decides by the error of a statement whether it may have taken effect. The Doubt for a nil error does not count. InDoubt: it may. NotSent: nothing of it
// reached the database. Again and Undone: it did not take effect; after Again the same statement may succeed at once.
func (j *Journal) sort(err error) Doubt {
	switch {
	case err == nil, isOwn(err):
		return Undone
	case errors.Is(err, errAgain):
		return Again
	case errors.Is(err, driver.ErrBadConn):
		return NotSent
	}
	return j.d.Doubt(err)
}

// isOwn reports whether an error is one of package persist about a row that was read, such as persist.ErrStale, and not the failure of a statement. Such an
// error is final: to repeat the statement cannot help.
func isOwn(err error) bool {
	for _, own := range []error{persist.ErrNotFound, persist.ErrStale, persist.ErrExists, persist.ErrInvalid, persist.ErrCorrupt, persist.ErrNewer} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// failed adds the name of the journal to an error. nil stays nil. The drivers' errors hold no password.
func (j *Journal) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("journal %s: %w", j.name, err)
}

// read makes a read within the limit of a call. After a failure of the connection in use, the read is made again (but not if none can be made): the pool may
// hold connections ended by a restart of the database. first, unless it is nil, is the first try, made together with other calls.
func (j *Journal) read(ctx context.Context, first firstTry, query func(ctx context.Context, conn *sql.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !j.enter() {
		return j.closed()
	}
	defer j.running.Done()
	limited, cancel := context.WithTimeout(ctx, j.limit)
	defer cancel()
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		kind, err := j.tryOr(first, limited, limited, false, func(ctx context.Context, conn *sql.Conn, _ bool) error { return query(ctx, conn) })
		first = nil
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errAlone):
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case kind == Undone || errors.Is(err, errNoConnection):
			return j.failed(err)
		}
		select {
		case <-limited.Done():
			return j.failed(fmt.Errorf("no answer within %v: %w", j.limit, err))
		case <-time.After(pause):
		}
	}
}
