// Package memory is the reference implementation of [persist.Journal], for
// tests and for measurements. It keeps nothing across a crash: an operation
// that must not happen twice needs package persist/bolt.
package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

var (
	_ persist.Journal  = (*Journal)(nil)
	_ persist.Claimer  = (*Journal)(nil)
	_ persist.Attacher = (*Journal)(nil)
)

// Journal keeps records in memory. [New] makes one. All methods are safe for
// concurrent use; a cancelled context ends any of them before it begins.
//
// Records are held encoded, so that nothing is ever shared with a caller and a
// record costs few allocations.
type Journal struct {
	persist.Attachment

	mu     sync.Mutex
	closed bool
	seq    uint64
	byID   map[persist.ID]*entry
	stray  map[[32]byte]*entry // unfinished and generated, a list through entry.next
	order  []*entry            // by seq; dropped ones stay until compact
	gone   int                 // how many of order are dropped
}

// entry is one record: its two encoded parts, and what a query asks first.
type entry struct {
	id          persist.ID
	seq, rev    uint64
	state       persist.State
	generated   bool
	swept       bool
	dropped     bool
	nextAttempt time.Time
	created     time.Time
	fingerprint [32]byte
	intent      []byte
	fate        []byte
	next        *entry
}

// New returns an empty journal.
func New() *Journal {
	return &Journal{byID: map[persist.ID]*entry{}, stray: map[[32]byte]*entry{}}
}

// Begin implements [persist.Journal].
func (j *Journal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if err := ready(ctx, &rec, false); err != nil {
		return persist.Record{}, false, err
	}
	rec.Revision = 1
	b, n := encode(&rec)

	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return persist.Record{}, false, errClosed()
	}
	if e := j.byID[rec.ID]; e != nil {
		standing, err := e.record()
		return standing, false, err
	}
	j.seq++
	rec.Seq = j.seq
	e := &entry{id: rec.ID, seq: rec.Seq, generated: rec.Generated, created: rec.Created, intent: b[:n:n]}
	e.fingerprint = [32]byte(rec.Fingerprint)
	e.set(&rec, b[n:])
	j.byID[e.id] = e
	j.order = append(j.order, e)
	j.link(e)
	return rec, true, nil
}

// scratchMax is how large a record may be that is encoded on the stack first,
// since its size beforehand is a bound, which small records are far below.
const scratchMax = 2048

// encode returns both parts of a record, which share one allocation, and where
// the second begins.
func encode(rec *persist.Record) ([]byte, int) {
	if size := codec.IntentSize(rec, codec.Inline) + codec.FateSize(rec, codec.Inline); size > scratchMax {
		return appendBoth(make([]byte, 0, size), rec)
	}
	var scratch [scratchMax]byte
	both, n := appendBoth(scratch[:0], rec)
	return bytes.Clone(both), n
}

func appendBoth(b []byte, rec *persist.Record) ([]byte, int) {
	b = codec.AppendIntent(b, rec, codec.Inline)
	return codec.AppendFate(b, rec, codec.Inline), len(b)
}

// encodeFate returns the second part alone.
func encodeFate(rec *persist.Record) []byte {
	size := codec.FateSize(rec, codec.Inline)
	if size > scratchMax {
		return codec.AppendFate(make([]byte, 0, size), rec, codec.Inline)
	}
	var scratch [scratchMax]byte
	return bytes.Clone(codec.AppendFate(scratch[:0], rec, codec.Inline))
}

// Update implements [persist.Journal].
func (j *Journal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := ready(ctx, &rec, false); err != nil {
		return persist.Record{}, err
	}
	if err := j.change(&rec); err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// Finish implements [persist.Journal].
func (j *Journal) Finish(ctx context.Context, rec persist.Record) error {
	if err := ready(ctx, &rec, true); err != nil {
		return err
	}
	return j.change(&rec)
}

// change replaces the fate of the record that stands at rec's revision, and
// sets the new one in rec.
func (j *Journal) change(rec *persist.Record) error {
	next := *rec
	next.Revision++
	fate := encodeFate(&next)

	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.standing(rec)
	if err != nil {
		return err
	}
	if !rec.Created.Equal(e.created) || !bytes.Equal(rec.Fingerprint, e.fingerprint[:]) {
		return fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
	}
	rec.Revision = next.Revision
	e.set(&next, fate)
	if e.state.Final() {
		j.unlink(e)
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
	e, err := j.standing(&rec)
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
	if j.closed {
		return persist.Record{}, errClosed()
	}
	e := j.byID[id]
	if e == nil {
		return persist.Record{}, notFound(id)
	}
	return e.record()
}

// Close implements [persist.Journal]. Nothing outlives it.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.byID, j.stray, j.order = nil, nil, nil
	return nil
}

// standing finds the unfinished record that rec was read from.
func (j *Journal) standing(rec *persist.Record) (*entry, error) {
	if j.closed {
		return nil, errClosed()
	}
	e := j.byID[rec.ID]
	switch {
	case e == nil:
		return nil, notFound(rec.ID)
	case e.seq != rec.Seq || e.rev != rec.Revision || e.state.Final():
		return nil, fmt.Errorf("%w: %q stands %v at revision %d", persist.ErrStale, rec.Key, e.state, e.rev)
	}
	return e, nil
}

func (e *entry) set(rec *persist.Record, fate []byte) {
	e.rev, e.state, e.swept, e.nextAttempt = rec.Revision, rec.State, rec.Swept, rec.NextAttempt
	e.fate = fate
}

func (e *entry) record() (persist.Record, error) {
	rec := persist.Record{Seq: e.seq}
	_, err := codec.DecodeIntent(e.intent, &rec)
	_, err2 := codec.DecodeFate(e.fate, &rec)
	return rec, errors.Join(err, err2)
}

// link enters an unfinished record with a generated key into the stray index.
func (j *Journal) link(e *entry) {
	if e.generated && !e.state.Final() {
		e.next = j.stray[e.fingerprint]
		j.stray[e.fingerprint] = e
	}
}

func (j *Journal) unlink(e *entry) {
	first := j.stray[e.fingerprint]
	if first == e && e.next == nil {
		delete(j.stray, e.fingerprint)
		return
	}
	if first == e {
		j.stray[e.fingerprint] = e.next
	}
	for p := first; p != nil; p = p.next {
		if p.next == e {
			p.next = e.next
		}
	}
	e.next = nil
}

// drop removes a record whole. Its place in order is given up once half of the
// places are, so that removing a million records stays linear.
func (j *Journal) drop(e *entry) {
	j.unlink(e)
	delete(j.byID, e.id)
	e.dropped, e.intent, e.fate = true, nil, nil
	if j.gone++; j.gone > 64 && j.gone > len(j.order)/2 {
		j.order = slices.DeleteFunc(j.order, func(e *entry) bool { return e.dropped })
		j.gone = 0
	}
}

// ready is what every writing method asks before it looks at the journal.
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

func errClosed() error { return fmt.Errorf("persist/memory: %w", persist.ErrClosed) }

func notFound(id persist.ID) error {
	return fmt.Errorf("%w: account %q, key %q", persist.ErrNotFound, id.Account, id.Key)
}
