package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/landing"
)

// Journal is a journal on an SQL database. Make one with New.
type Journal struct {
	persist.Attachment

	db    *sql.DB
	d     Dialect
	apart Apart // nil: used keys are in the table of records
	name  string
	limit time.Duration

	readOnly bool // it numbers and writes nothing

	gets   *gather
	writes *gather // nil if the engine writes each row alone

	landing landing.Begins // by row ID

	uses atomic.Bool // there are used keys, as the facts say; set if they have a table of their own

	sweepsFewer atomic.Int64 // records than sweepRows in a transaction of a sweep

	mu      sync.Mutex
	shut    bool
	secret  []byte         // nil until it was asked for
	running sync.WaitGroup // calls under way; entered under mu, and not once it is shut
}

// New returns a journal on a database that has its tables. If the engine can write several rows with one statement (Together), simultaneous writes share their
// statements; reads always do.
func New(c Config) *Journal {
	j := &Journal{db: c.DB, d: c.Dialect, name: c.Name, limit: c.Limit, readOnly: c.ReadOnly}
	j.gets = &gather{j: j, reads: true, run: j.getAll}
	if d, ok := c.Dialect.(Together); ok {
		j.writes = &gather{j: j, run: writeAll(d)}
	}
	if d, ok := c.Dialect.(Apart); ok { // used keys (records without any text) have a table of their own, which is read without asking if there are any
		j.apart = d
		j.uses.Store(true)
	}
	return j
}

// A zero postgres.Journal or mysql.Journal embeds a nil Journal. Its methods report it as closed.

// errNotOpened is the error of a nil Journal.
var errNotOpened = fmt.Errorf("journal: not opened: %w", persist.ErrClosed)

// Attach implements [persist.Journal]: it returns the value that all users of this journal in this process share. The first call creates it. A journal that
// was not opened (nil) keeps no value: each call creates one.
func (j *Journal) Attach(create func() any) any {
	if j == nil {
		var nobody persist.Attachment
		return nobody.Attach(create)
	}
	return j.Attachment.Attach(create)
}

// enter counts a call that begins to use the database, so that Close waits for it. It returns false once the journal is closed. After true the caller
// must call running.Done.
func (j *Journal) enter() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.shut {
		j.running.Add(1)
	}
	return !j.shut
}

// closed returns persist.ErrClosed with the name of the journal.
func (j *Journal) closed() error { return j.failed(persist.ErrClosed) }

// Close implements [persist.Journal]: it refuses new calls, waits for those under way, and closes the database.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	was := j.shut
	j.shut = true
	j.mu.Unlock()
	j.running.Wait()
	if was { // another Close closes the database
		return nil
	}
	_ = j.db.Close() // an error here loses nothing: every method has returned after its commit
	return nil
}

// Flush implements [persist.Journal]. Every method returns after its commit, so there is nothing to wait for: it only checks that the journal is
// open.
func (j *Journal) Flush(ctx context.Context) error {
	if j == nil {
		return errNotOpened
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !j.enter() {
		return j.closed()
	}
	j.running.Done()
	return nil
}

// ready checks the arguments of a writing method before any use of the database: the context has not ended, and the record is valid, and it has ended (its
// state is final) exactly if the method needs that.
func ready(ctx context.Context, rec *persist.Record, final bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := rec.Validate(); err != nil {
		return err
	}
	if rec.State.Final() != final {
		return fmt.Errorf("%w: state %v", persist.ErrInvalid, rec.State)
	}
	return nil
}

// NewBegun returns the row of a record that is to be begun: at revision 1, and not numbered yet.
// Errors: persist.ErrInvalid, the context's.
func NewBegun(ctx context.Context, rec *persist.Record) (*Row, error) {
	if err := ready(ctx, rec, false); err != nil {
		return nil, err
	}
	begun := *rec
	begun.Seq, begun.Revision = 0, 1
	return NewRow(&begun), nil
}

// Begin implements [persist.Journal]: it creates the record (created is true), or returns the existing one of its ID. The first try may share a statement
// with other calls. If that does not settle it, or if the row exists, it makes a statement of its own. A begin whose statement may still reach the server
// later is noted in landing: its record must not be forgotten meanwhile. standing is the row that is there afterwards; nil means a race with another Begin
// that has just ended.
func (j *Journal) Begin(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	if j == nil {
		return persist.Record{}, false, errNotOpened
	}
	row, err := NewBegun(ctx, &rec)
	if err != nil {
		return persist.Record{}, false, err
	}
	if err := row.Fits(j.d.Most()); err != nil {
		return persist.Record{}, false, j.failed(err)
	}
	alone, late := false, false // it has made a statement of its own; it has made one after another in doubt
	err = j.settle(ctx, j.writes.first(sharer{row: row, begins: true}), func(ctx context.Context, conn *sql.Conn, repeated bool) error {
		alone, late = true, late || repeated
		standing, err := j.d.Begin(ctx, OnConn(conn), row)
		if err == nil && standing == nil {
			err = errAgain
		}
		if err != nil {
			return err
		}
		existing, created, err = Begun(&rec, row, standing)
		return err
	})
	if errors.Is(err, persist.ErrUncertain) {
		j.landing.Lost(string(row.ID), &rec)
	}
	err = ErrClear(j.d, err) // ErrSealed for an unencrypted record where only encrypted ones are taken
	if err != nil && j.d.Waited(err) {
		// The operation of that transaction may be sent, so this error is no "no effect".
		err = fmt.Errorf("%w: another transaction has begun the key %q and is still open: %w", persist.ErrUncertain, rec.Key, err)
	}
	if err != nil {
		return persist.Record{}, false, err
	}
	if !alone { // inserted together with others
		existing, created, err = Begun(&rec, row, row)
	}
	if err == nil && !created {
		err = j.checkErased(ctx, &existing, rec.ID)
	}
	if created && late {
		j.landing.Late(string(row.ID), &existing)
	}
	return existing, created, err
}

// Begins returns nil if a record may be begun through the journal in a transaction of a caller's own. The errors persist.ErrClosed,
// persist.ErrReadOnly and the context's match persist.ErrOutcomeUnknown, too: nobody has looked whether the key has an operation.
func (j *Journal) Begins(ctx context.Context) error {
	err := j.Flush(ctx)
	if err == nil {
		err = j.refuseReadOnly()
	}
	return Undecided(err)
}

// Undecided returns an error of a Begin in a caller's own transaction so that it matches persist.ErrOutcomeUnknown, too: the key may already have an
// operation. nil stays nil.
func Undecided(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", persist.ErrOutcomeUnknown, err)
}

// RefuseClear returns persist.ErrSealed for a record in clear, if the records of the journal are sealed (encrypted), or will be: the table would refuse
// it, and with that the caller's transaction could only be rolled back. query reads the value of a fact, a named value of the journal; the fact
// persist.FactSeal is FactPlain, or missing, if the journal takes records in clear. Other errors are those of the query.
func RefuseClear(ctx context.Context, rec *persist.Record, run QueryRow, query string) error {
	if rec.Carrier == persist.CarrierSealed {
		return nil
	}
	var standing []byte
	err := run(ctx, query, []any{persist.FactSeal}, &standing)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case string(standing) != persist.FactPlain:
		return fmt.Errorf("%w: the journal is sealed, and the record of %q is in clear; begin it through the journal opened with its keys (persist.BeginTx), or seal it first (Sealer.Seal of package persist/seal)", persist.ErrSealed, rec.Key)
	}
	return nil
}

// ErrClear returns an error of a Begin. It matches persist.ErrSealed, too, if the database refused the row since the journal takes encrypted records
// only.
func ErrClear(d Dialect, err error) error {
	if err == nil || !d.Clear(err) {
		return err
	}
	return fmt.Errorf("%w: %w", persist.ErrSealed, err)
}

// Begun returns the results of a Begin of rec from standing, the row that is there after the insert of row. If that is row itself, or has row's token (the mark
// of this write) at the first revision, this call has inserted it: created is true, and existing is rec with its number. Else existing is the record of
// standing: another's, or one changed since.
// Error: persist.ErrCorrupt.
func Begun(rec *persist.Record, row, standing *Row) (existing persist.Record, created bool, err error) {
	if standing == row || bytes.Equal(standing.Token, row.Token) && standing.Revision == 1 {
		existing = *rec
		existing.Seq, existing.Revision = uint64(standing.Seq.Int64), 1
		return existing, true, nil
	}
	existing, err = standing.Record()
	if err == nil && !existing.Erased && existing.ID != rec.ID { // the ID of an erased one: see checkErased
		err = fmt.Errorf("%w: the row of account %q, key %q is that of account %q, key %q", persist.ErrCorrupt, rec.Account, rec.Key, existing.Account, existing.Key)
	}
	return existing, false, err
}

// Get implements [persist.Journal]: it returns the record of this ID, or persist.ErrNotFound. Simultaneous calls share a statement (j.gets); a call that this
// has not served makes its own. checkErased looks whether the row of an erased record is that of this ID.
func (j *Journal) Get(ctx context.Context, id persist.ID) (rec persist.Record, err error) {
	if j == nil {
		return persist.Record{}, errNotOpened
	}
	row := &Row{ID: RowID(id)}
	query, args := j.everywhere("SELECT "+columnsRead("")+" FROM %s WHERE id = ?", row.ID)
	err = j.read(ctx, j.gets.first(sharer{row: row}), func(ctx context.Context, conn *sql.Conn) error {
		err := conn.QueryRowContext(ctx, query, args...).Scan(row.Fields()...)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(id)
		}
		return err
	})
	if err != nil {
		return persist.Record{}, err
	}
	rec, err = row.Record()
	if err != nil {
		return persist.Record{}, j.failed(err)
	}
	if err := j.checkErased(ctx, &rec, id); err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// notFound returns the error for an ID without a record.
func notFound(id persist.ID) error {
	return fmt.Errorf("%w: account %q, key %q", persist.ErrNotFound, id.Account, id.Key)
}
