package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// errFull is the error of a write without any effect, for certain.
var errFull = errors.New("sim: no space left on device")

// finishDelay is the longest time of a volatile Finish, as the contract says.
const finishDelay = 10 * time.Millisecond

// disk is a journal in memory with a model of durability. Begin, Update
// and Forget return once their change is durable; a Finish is visible at once and durable
// later. Of the changes not yet durable, a crash keeps any part allowed by the
// contract: each record on its own, in the order of its changes.
type disk struct {
	persist.Attachment
	dice  dice
	fails float64       // share of failing writes
	pace  time.Duration // the longest time of a sync
	bug   Bug
	// secret is the journal's, through all crashes.
	secret [persist.SecretSize]byte

	mu     sync.Mutex
	facts  map[string][]byte // durable at once
	mem    *memory.Journal
	safe   map[persist.ID]persist.Record // kept by every crash
	wait   []change                      // visible, not durable, oldest first
	first  int                           // number of wait[0]
	writes int
	last   uint64 // the highest Seq given
	broken error  // of the failed commit; after it nothing is known
}

var (
	_ persist.Journal      = (*disk)(nil)
	_ persist.SendClaimer  = (*disk)(nil)
	_ persist.LateFinisher = (*disk)(nil)
)

// newDisk returns an empty simulated disk: a journal in memory that loses changes in a crash. fails is the probability of a failed commit. A write takes up to
// 5 ms.
func newDisk(d dice, fails float64, bug Bug) *disk {
	made := &disk{dice: d, fails: fails, pace: 5 * time.Millisecond, bug: bug, safe: map[persist.ID]persist.Record{}, facts: map[string][]byte{}}
	for i := range made.secret {
		made.secret[i] = byte(d.hash("secret", i))
	}
	made.mem = memory.NewWithSecret(made.secret)
	return made
}

// Begin implements [persist.Journal]. The change is durable when it returns without an error.
func (d *disk) Begin(ctx context.Context, rec persist.Record) (standing persist.Record, created bool, err error) {
	err = d.write(rec.ID, true, func() (*change, error) {
		if standing, created, err = d.mem.Begin(ctx, rec); err != nil || !created {
			return nil, err
		}
		// For restore: no number is given twice.
		d.last = standing.Seq
		return &change{rec: standing.Clone()}, nil
	})
	if err != nil {
		return persist.Record{}, false, err
	}
	return standing, created, nil
}

// Update implements [persist.Journal]. The change is durable when it returns without an error.
func (d *disk) Update(ctx context.Context, rec persist.Record) (updated persist.Record, err error) {
	err = d.write(rec.ID, true, func() (*change, error) {
		if updated, err = d.mem.Update(ctx, rec); err != nil {
			return nil, err
		}
		return &change{rec: updated.Clone()}, nil
	})
	if err != nil {
		return persist.Record{}, err
	}
	return updated, nil
}

// Finish implements [persist.Journal]. The change is visible at once, and durable a little later.
func (d *disk) Finish(ctx context.Context, rec persist.Record) error {
	return d.finish(ctx, rec, false)
}

// FinishLate implements [persist.LateFinisher]. It is durable on return; the delay before it, as a journal on a server may have, is made by the
// handle above.
func (d *disk) FinishLate(ctx context.Context, rec persist.Record) error {
	return d.finish(ctx, rec, true)
}

// FinishesLate implements [persist.LateFinisher]. It returns the disk itself: its FinishLate may be used.
func (d *disk) FinishesLate() persist.Journal { return d }

// finish does the work of Finish and FinishLate. durable: it returns after the commit only.
func (d *disk) finish(ctx context.Context, rec persist.Record, durable bool) error {
	return d.write(rec.ID, durable, func() (*change, error) {
		if err := d.mem.Finish(ctx, rec); err != nil {
			return nil, err
		}
		final, err := d.mem.Get(context.WithoutCancel(ctx), rec.ID)
		return &change{rec: final}, err
	})
}

// Forget implements [persist.Journal]. The record is seen until its removal is durable: only then the journal in memory forgets it, so that a stale one is
// refused here.
func (d *disk) Forget(ctx context.Context, rec persist.Record) error {
	return d.write(rec.ID, true, func() (*change, error) {
		standing, err := d.mem.Get(ctx, rec.ID)
		switch {
		case err != nil:
			return nil, err
		case standing.State.Final() || standing.Seq != rec.Seq || standing.Revision != rec.Revision:
			return nil, fmt.Errorf("sim: %w", persist.ErrStale)
		}
		return &change{rec: standing, gone: true}, nil
	})
}

// Amend implements [persist.Journal]. An earlier Finish of the record becomes durable with it.
func (d *disk) Amend(ctx context.Context, rec persist.Record) (amended persist.Record, err error) {
	err = d.write(rec.ID, true, func() (*change, error) {
		if amended, err = d.mem.Amend(ctx, rec); err != nil {
			return nil, err
		}
		return &change{rec: amended.Clone()}, nil
	})
	if err != nil {
		return persist.Record{}, err
	}
	return amended, nil
}

// Assign implements [persist.Journal]. It is durable at once, with all earlier writes. After a failed commit (broken) it returns the error of that.
func (d *disk) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quiet(rec.ID)
	if d.broken != nil {
		return persist.Record{}, d.broken
	}
	assigned, err := d.mem.Assign(ctx, rec, account)
	if err != nil {
		return persist.Record{}, err
	}
	d.settle(d.first + len(d.wait))
	delete(d.safe, rec.ID)
	d.safe[assigned.ID] = assigned.Clone()
	return assigned, nil
}

// Secret implements [persist.Journal]. The secret is the same after each crash.
func (d *disk) Secret(context.Context) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.secret[:]), d.broken
}

// Fact implements [persist.Journal]. It sets the value if the fact stands as old, and returns it as it stands then. It is durable at once.
func (d *disk) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	if err := cmp.Or(persist.CheckFact(name, value), ctx.Err()); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return nil, d.broken
	}
	if value != nil && bytes.Equal(d.facts[name], old) {
		d.facts[name] = bytes.Clone(value)
	}
	return bytes.Clone(d.facts[name]), nil
}

// MarkReported implements [persist.Journal]. The change is visible at once, and durable with the next write, at most a second later: a crash before
// that loses it.
func (d *disk) MarkReported(ctx context.Context, id persist.ID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return d.broken
	}
	if err := d.mem.MarkReported(ctx, id); err != nil {
		return err
	}
	rec, err := d.mem.Get(ctx, id)
	if errors.Is(err, persist.ErrNotFound) {
		return nil
	}
	n := d.put(change{rec: rec})
	time.AfterFunc(time.Second, func() { _ = d.commit(n, false) }) // a later Flush tells
	return err
}

// quiet waits until no write of this record is in progress: a change that others can see may still fail to become durable. The caller holds mu.
func (d *disk) quiet(id persist.ID) {
	for d.broken == nil && d.unsettled(id) {
		d.mu.Unlock()
		time.Sleep(time.Millisecond)
		d.mu.Lock()
	}
}

// forgetting reports whether a Forget is under way: its change (gone) is not durable yet. The caller holds mu.
func (d *disk) forgetting() bool {
	return slices.ContainsFunc(d.wait, func(c change) bool { return c.gone })
}

// unsettled reports whether somebody waits for the durability of a change of the record (waited). The caller holds mu.
func (d *disk) unsettled(id persist.ID) bool {
	return slices.ContainsFunc(d.wait, func(c change) bool { return c.waited && c.rec.ID == id })
}

// Get implements [persist.Journal]. After a failed commit it returns the error of that commit.
func (d *disk) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quiet(id); d.broken != nil {
		return persist.Record{}, d.broken
	}
	return d.mem.Get(ctx, id)
}

// List implements [persist.Journal]. After a failed commit it returns the error of that commit.
func (d *disk) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.broken; err != nil {
		return func(yield func(persist.Record, error) bool) { yield(persist.Record{}, err) }
	}
	return d.mem.List(ctx, q)
}

// Flush implements [persist.Journal]. When it returns without an error, all changes before the call are durable.
func (d *disk) Flush(context.Context) error {
	d.mu.Lock()
	if err := d.broken; err != nil {
		d.mu.Unlock()
		return err
	}
	n := d.first + len(d.wait)
	took := time.Duration(d.dice.hash("flush", n) % uint64(d.pace))
	d.mu.Unlock()
	time.Sleep(took)
	return d.commit(n, false)
}

// Sweep implements [persist.Journal]. It is durable at once.
func (d *disk) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return 0, d.broken
	}
	n, err := d.mem.Sweep(ctx, l)
	d.settle(d.first + len(d.wait))
	clear(d.safe)
	for rec := range d.mem.List(context.WithoutCancel(ctx), persist.Query{AllAccounts: true}) {
		d.safe[rec.ID] = rec
	}
	return n, err
}

// Close implements [persist.Journal]. All writes become durable, and the
// records stay, for the next opener.
func (d *disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return nil
	}
	d.settle(d.first + len(d.wait))
	d.broken = fmt.Errorf("sim: %w", persist.ErrClosed)
	return nil
}

// durable returns a record as the worst crash at this moment would leave it; false: there would be none.
func (d *disk) durable(id persist.ID) (persist.Record, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rec, ok := d.safe[id]
	return rec, ok
}

// ended reports whether a record is final in the committed state of the disk, which every process reads.
func (d *disk) ended(id persist.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	rec, err := d.mem.Get(context.Background(), id)
	return err == nil && rec.State.Final()
}

// heal ends the simulated write errors, so that the end of a run can be checked.
func (d *disk) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = 0
}

// all returns every durable record, in no order.
func (d *disk) all() []persist.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.safe))
}
