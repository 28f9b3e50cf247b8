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

// New returns an empty journal with a random secret.
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

// Begin implements [persist.Journal]: it creates the record and returns true with it, or returns the existing one of its ID and false. The record is encoded
// before mu is taken, so that callers disturb each other little.
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
	j.erased = j.erased || rec.Erased // only the copy of a journal begins erased records
	j.order = append(j.order, e)
	j.link(e)
	j.noteOwed(e)
	j.tally.count(e, rec.HoldReason)
	return rec, true, nil
}

// scratchMax bounds the size of a record to be encoded on the stack first. The size
// known beforehand is an upper bound, and small records are far below it.
const scratchMax = 2048

// sized returns an empty slice with a capacity of at least size bytes. It uses scratch, an array on the caller's stack, if that is large enough: then
// nothing is allocated.
func sized(scratch *[scratchMax]byte, size int) []byte {
	if size > scratchMax {
		return make([]byte, 0, size)
	}
	return scratch[:0]
}

// begin encodes a whole record into the entry: that of a new record, or one that loses its request or gets another account or ID. If the record is small, both
// parts of it (intent, as it was begun, and progress, the changeable part) lie in the entry's own array.
func (e *entry) begin(rec *persist.Record) {
	var scratch [scratchMax]byte
	b := sized(&scratch, codec.IntentSize(rec, codec.Inline)+codec.ProgressSize(rec, codec.Inline))
	b = codec.AppendIntent(b, rec, codec.Inline)
	n := len(b)
	b = codec.AppendProgress(b, rec, codec.Inline)
	e.intent = append(e.room[:0], b[:n]...)
	e.set(rec, b[n:])
}

// Secret implements [persist.Journal]: it returns a copy of the journal's random secret, the key for digests in its records.
func (j *Journal) Secret(ctx context.Context) ([]byte, error) {
	if err := j.Flush(ctx); err != nil { // whether it is open
		return nil, err
	}
	return slices.Clone(j.secret[:]), nil
}

// Fact implements [persist.Journal]: it returns a named value of the journal, and writes it first if the value is still old. A nil value only reads.
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

// Flush implements [persist.Journal]. Nothing is ever queued here: it only checks that the journal is open.
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

// Get implements [persist.Journal]: it returns the record of this ID, or persist.ErrNotFound. The record shares no memory with the journal.
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

// Close implements [persist.Journal]. It drops all records; a second Close does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open = false
	j.byID, j.unresolved, j.owed, j.order, j.tally = nil, nil, nil, nil, tally{}
	return nil
}

// stale returns the error for a record that has changed since the caller read it. rec is the caller's, and e what stands in the journal.
func stale(rec *persist.Record, e *entry) error {
	return fmt.Errorf("%w: %q is %v at revision %d", persist.ErrStale, rec.Key, e.state, e.rev)
}

// set gives the entry a copy of a new progress, the encoded changeable part of rec. The copy lies behind the intent (the part frozen by Begin) in the same
// array if there is room, and else in one of its own. It also sets the entry's copies of the fields by which queries select.
func (e *entry) set(rec *persist.Record, progress []byte) {
	e.rev, e.state, e.nextAttempt, e.sendUntil = rec.Revision, rec.State, rec.NextAttempt, rec.SendUntil
	e.swept, e.unreported, e.owedFrom = rec.Swept, rec.Unreported, rec.OwedFrom
	e.progress = append(e.intent[len(e.intent):], progress...)
}

// record decodes the entry's two parts: the intent, frozen by Begin, and the progress, which may change. The record shares no memory with it.
func (e *entry) record() (persist.Record, error) {
	rec := persist.Record{Seq: e.seq}
	_, err := codec.DecodeIntent(e.intent, &rec)
	_, err2 := codec.DecodeProgress(e.progress, &rec)
	return rec, errors.Join(err, err2)
}

// errClosed returns the error of the methods after Close.
func errClosed() error { return fmt.Errorf("persist/memory: %w", persist.ErrClosed) }

// notFound returns the error for an ID without a record.
func notFound(id persist.ID) error {
	return fmt.Errorf("%w: account %q, key %q", persist.ErrNotFound, id.Account, id.Key)
}
