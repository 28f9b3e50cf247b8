// Package memory is the reference implementation of [persist.Journal], for
// tests and for measurements. It keeps nothing across a crash: an operation
// that must not happen twice needs package persist/bolt.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

var (
	_ persist.Journal     = (*Journal)(nil)
	_ persist.SendClaimer = (*Journal)(nil)

	_ persist.DueTimes  = (*Journal)(nil)
	_ persist.Counter   = (*Journal)(nil)
	_ persist.InProcess = (*Journal)(nil)
)

// Journal keeps records in memory. [New] makes one. All methods are safe for
// concurrent use; a cancelled context ends any of them before it begins.
//
// Records are held encoded: nothing is ever shared with a caller, and a
// record costs few allocations.
//
// A Journal not returned by New or NewWithSecret is closed: the methods of a zero one return
// [persist.ErrClosed], those of a nil one panic.
type Journal struct {
	persist.Attachment

	secret [persist.SecretSize]byte

	mu         sync.Mutex
	facts      map[string][]byte
	open       bool // New has made it, and Close has not been called
	seq        uint64
	byID       map[persist.ID]*entry // an erased one by its new ID
	erased     bool                  // some record is, or was
	unresolved map[[32]byte]*entry   // by fingerprint, a list through entry.next, see entry.unresolved
	owed       map[*entry]struct{}   // the entries of owed results
	order      []*entry              // by seq; dropped ones stay until half of them are dropped
	gone       int                   // number of dropped entries in order
	tally      tally
}

// entry is one record: its two encoded parts, and the fields first needed by a query.
type entry struct {
	id          persist.ID
	seq, rev    uint64
	state       persist.State
	generated   bool
	unreported  bool
	owedFrom    time.Time
	swept       bool
	dropped     bool
	nextAttempt time.Time
	sendUntil   time.Time
	created     time.Time
	origin      string
	fingerprint [32]byte
	intent      []byte
	progress    []byte // behind the intent, if there is room
	next        *entry
	counted     counted
	room        [408]byte // for both, as most records are small
}

// New returns an empty journal.
func New() *Journal {
	j := &Journal{open: true, byID: map[persist.ID]*entry{}, unresolved: map[[32]byte]*entry{}, owed: map[*entry]struct{}{}, facts: map[string][]byte{}, tally: newTally()}
	_, _ = rand.Read(j.secret[:]) // never fails
	return j
}

// NewWithSecret returns an empty journal with the secret of another one, for a copy of its records: erased ones are found by it.
func NewWithSecret(secret [persist.SecretSize]byte) *Journal {
	j := New()
	j.secret = secret
	return j
}

// Begin implements [persist.Journal]. The record is encoded before mu is taken: so
// callers disturb each other little.
func (j *Journal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if err := ready(ctx, &rec, false); err != nil {
		return persist.Record{}, false, err
	}
	rec.Revision = 1
	e := &entry{id: rec.ID, generated: rec.Generated, created: rec.Created, origin: rec.Origin, fingerprint: [32]byte(rec.Fingerprint)}
	e.begin(&rec)

	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return persist.Record{}, false, errClosed()
	}
	if existing := j.find(rec.ID); existing != nil {
		rec, err := existing.record()
		return rec, false, err
	}
	j.seq++
	rec.Seq, e.seq = j.seq, j.seq
	j.byID[e.id] = e
	j.erased = j.erased || rec.Erased // in a copy
	j.order = append(j.order, e)
	j.link(e)
	j.noteOwed(e)
	j.tally.count(e, rec.HoldReason)
	return rec, true, nil
}

// scratchMax bounds the size of a record to be encoded on the stack first. The size
// known beforehand is an upper bound, and small records are far below it.
const scratchMax = 2048

// sized returns an empty slice with room for size bytes: scratch, on the
// caller's stack, if it is large enough.
func sized(scratch *[scratchMax]byte, size int) []byte {
	if size > scratchMax {
		return make([]byte, 0, size)
	}
	return scratch[:0]
}

// begin encodes a record whole into the entry: a new one, or a tombstone. Both parts of a small record lie in the
// entry's own room: one allocation.
func (e *entry) begin(rec *persist.Record) {
	var scratch [scratchMax]byte
	b := sized(&scratch, codec.IntentSize(rec, codec.Inline)+codec.ProgressSize(rec, codec.Inline))
	b = codec.AppendIntent(b, rec, codec.Inline)
	n := len(b)
	b = codec.AppendProgress(b, rec, codec.Inline)
	e.intent = append(e.room[:0], b[:n]...)
	e.set(rec, b[n:])
}

// Update implements [persist.Journal].
func (j *Journal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := ready(ctx, &rec, false); err != nil {
		return persist.Record{}, err
	}
	if err := j.change(&rec, j.current); err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// Finish implements [persist.Journal].
func (j *Journal) Finish(ctx context.Context, rec persist.Record) error {
	if err := ready(ctx, &rec, true); err != nil {
		return err
	}
	return j.change(&rec, j.current)
}

// Amend implements [persist.Journal].
func (j *Journal) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := cmp.Or(ctx.Err(), rec.ReadyToAmend()); err != nil {
		return persist.Record{}, err
	}
	if err := j.change(&rec, j.ended); err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// change replaces the progress of the record found by its ID and revision, and
// counts rec's revision up. What Begin has frozen must be as it was. Of both SendUntil the later stays, and is in rec.
// Errors: those of find, and persist.ErrInvalid.
func (j *Journal) change(rec *persist.Record, find func(*persist.Record) (*entry, error)) error {
	next := *rec
	next.Revision++
	var scratch [scratchMax]byte
	progress := codec.AppendProgress(sized(&scratch, codec.ProgressSize(&next, codec.Inline)), &next, codec.Inline)

	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := find(rec)
	if err != nil {
		return err
	}
	if !rec.Created.Equal(e.created) || !bytes.Equal(rec.Fingerprint, e.fingerprint[:]) {
		return fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
	}
	if e.sendUntil.After(next.SendUntil) {
		next.SendUntil, rec.SendUntil = e.sendUntil, e.sendUntil
		progress = codec.AppendProgress(nil, &next, codec.Inline)
	}
	rec.Revision = next.Revision
	j.replace(e, &next, progress)
	return nil
}

// replace gives the entry another progress, and keeps the index of
// unresolved records true. The caller holds mu.
func (j *Journal) replace(e *entry, rec *persist.Record, progress []byte) {
	was := e.unresolved()
	if rec.RequestDropped {
		e.begin(rec) // into its room again, without the request
	} else {
		e.set(rec, progress)
	}
	switch is := e.unresolved(); {
	case was && !is:
		j.unlink(e)
	case is && !was:
		j.link(e)
	}
	j.noteOwed(e)
	j.tally.count(e, rec.HoldReason)
}

// Assign implements [persist.Journal].
func (j *Journal) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	if err := ctx.Err(); err != nil {
		return persist.Record{}, err
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, err
	}
	next := rec
	next.Account = account
	next.Revision++

	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.standing(&rec)
	switch {
	case err != nil:
		return persist.Record{}, err
	case !rec.Created.Equal(e.created) || !bytes.Equal(rec.Fingerprint, e.fingerprint[:]):
		return persist.Record{}, fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
	case j.find(next.ID) != nil:
		return persist.Record{}, fmt.Errorf("%w: account %q, key %q", persist.ErrExists, account, rec.Key)
	}
	delete(j.byID, e.id)
	e.id = next.ID
	j.byID[e.id] = e
	e.begin(&next)
	j.tally.count(e, next.HoldReason)
	return next.Clone(), nil
}

// Secret implements [persist.Journal].
func (j *Journal) Secret(ctx context.Context) ([]byte, error) {
	if err := j.Flush(ctx); err != nil { // whether it is open
		return nil, err
	}
	return slices.Clone(j.secret[:]), nil
}

// Fact implements [persist.Journal].
func (j *Journal) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	if err := cmp.Or(persist.CheckFact(name, value), ctx.Err()); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return nil, persist.ErrClosed
	}
	if value != nil && bytes.Equal(j.facts[name], old) {
		j.facts[name] = bytes.Clone(value)
	}
	return bytes.Clone(j.facts[name]), nil
}

// Flush implements [persist.Journal]. Nothing is ever queued here.
func (j *Journal) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return errClosed()
	}
	return nil
}

// Forget implements [persist.Journal].
func (j *Journal) Forget(ctx context.Context, rec persist.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.current(&rec)
	if err == nil {
		j.drop(e)
	}
	return err
}

// Get implements [persist.Journal].
func (j *Journal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if err := ctx.Err(); err != nil {
		return persist.Record{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return persist.Record{}, errClosed()
	}
	e := j.find(id)
	if e == nil {
		return persist.Record{}, notFound(id)
	}
	return e.record()
}

// Close implements [persist.Journal]. It drops all records.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open = false
	j.byID, j.unresolved, j.owed, j.order, j.tally = nil, nil, nil, nil, tally{}
	return nil
}

// current returns the entry of the unfinished record from the caller's read. The caller holds mu.
// Errors: persist.ErrNotFound, persist.ErrStale, persist.ErrClosed.
func (j *Journal) current(rec *persist.Record) (*entry, error) {
	e, err := j.standing(rec)
	if err == nil && e.state.Final() {
		return nil, stale(rec, e)
	}
	return e, err
}

// ended is current for a final record.
func (j *Journal) ended(rec *persist.Record) (*entry, error) {
	e, err := j.standing(rec)
	if err == nil && !e.state.Final() {
		return nil, stale(rec, e)
	}
	return e, err
}

// standing is current for a record in any state.
func (j *Journal) standing(rec *persist.Record) (*entry, error) {
	if !j.open {
		return nil, errClosed()
	}
	e := j.find(rec.ID)
	switch {
	case e == nil:
		return nil, notFound(rec.ID)
	case e.seq != rec.Seq || e.rev != rec.Revision:
		return nil, stale(rec, e)
	}
	return e, nil
}

// stale returns the error for a record other than the one in the caller's read.
func stale(rec *persist.Record, e *entry) error {
	return fmt.Errorf("%w: %q is %v at revision %d", persist.ErrStale, rec.Key, e.state, e.rev)
}

// set gives the entry a copy of another progress, and notes the fields first needed by a
// query.
func (e *entry) set(rec *persist.Record, progress []byte) {
	e.rev, e.state, e.nextAttempt, e.sendUntil = rec.Revision, rec.State, rec.NextAttempt, rec.SendUntil
	e.swept, e.unreported, e.owedFrom = rec.Swept, rec.Unreported, rec.OwedFrom
	e.progress = append(e.intent[len(e.intent):], progress...)
}

// record decodes the entry. The record shares nothing with it.
func (e *entry) record() (persist.Record, error) {
	rec := persist.Record{Seq: e.seq}
	_, err := codec.DecodeIntent(e.intent, &rec)
	_, err2 := codec.DecodeProgress(e.progress, &rec)
	return rec, errors.Join(err, err2)
}

// ready makes the checks of Begin, Update and Finish before they look at the journal.
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

// errClosed returns the error of every method after Close.
func errClosed() error { return fmt.Errorf("persist/memory: %w", persist.ErrClosed) }

// notFound returns the error for an ID without a record.
func notFound(id persist.ID) error {
	return fmt.Errorf("%w: account %q, key %q", persist.ErrNotFound, id.Account, id.Key)
}
