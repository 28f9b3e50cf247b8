package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// crash returns the disk after a loss of power, or the end of the only process. It keeps all durable changes and, by chance, a part of the others: of each
// record the first changes. With a deliberate bug it also keeps a change with half of its answer. The old disk is closed.
func (d *disk) crash(r *rand.Rand) store {
	d.mu.Lock()
	defer d.mu.Unlock()
	lost := map[persist.ID]bool{}
	share := pick(r, 0, 0, 0.5, 1)
	for _, c := range d.wait {
		id := c.rec.ID
		if lost[id] = lost[id] || r.Float64() >= share; !lost[id] {
			keep(d.safe, c)
		} else if d.bug == BugTornCommit && c.rec.Answer != nil && !c.gone {
			a := *c.rec.Answer
			a.Body = a.Body[:len(a.Body)/2]
			c.rec.Answer = &a
			keep(d.safe, c)
		}
	}
	next := newDisk(d.dice+1, d.fails, d.bug)
	next.secret, next.facts, next.mem = d.secret, maps.Clone(d.facts), memory.NewWithSecret(d.secret)
	next.restore(d.safe, d.last)
	d.broken = fmt.Errorf("sim: %w", persist.ErrClosed)
	return next
}

// restore fills an empty simulated disk with records, each at its Seq and Revision. It repeats their history, since a journal in memory has no other way: a
// number (Seq) of a forgotten record is used up by a filler. last is the highest number given.
func (d *disk) restore(records map[persist.ID]persist.Record, last uint64) {
	seq := uint64(0)
	skip := func(to uint64) { // the records there were forgotten
		for ; seq < to; seq++ {
			filler := persist.Record{
				ID: persist.ID{Key: "filler"}, Origin: "-", Method: "-", WireKey: "-", Fingerprint: make([]byte, 32),
			}
			standing, _, err := d.mem.Begin(context.Background(), filler)
			must(errors.Join(err, d.mem.Forget(context.Background(), standing)))
		}
	}
	for _, rec := range bySeq(records) {
		skip(rec.Seq - 1)
		seq = rec.Seq
		d.safe[rec.ID] = d.replay(rec)
	}
	skip(last)
	d.last = last
}

// replay writes rec into a new journal after a simulated crash, and returns it as written. It begins the record and changes it as often as its Revision says,
// since a journal takes no record at a later revision. A final record is unfinished until its last change.
func (d *disk) replay(rec persist.Record) persist.Record {
	ctx, unfinished := context.Background(), rec.Clone()
	if rec.State.Final() {
		unfinished.State, unfinished.Effect, unfinished.Swept, unfinished.Unreported, unfinished.KeyTold = persist.StatePending, persist.EffectUnknown, rec.Erased, false, false
	}
	standing, _, err := d.mem.Begin(ctx, unfinished)
	must(err)
	for standing.Revision+1 < rec.Revision || standing.Revision < rec.Revision && !rec.State.Final() {
		unfinished.Seq, unfinished.Revision = standing.Seq, standing.Revision
		standing, err = d.mem.Update(ctx, unfinished)
		must(err)
	}
	if rec.State.Final() {
		final := rec.Clone()
		final.Seq, final.Revision = standing.Seq, standing.Revision
		must(d.mem.Finish(ctx, final))
	}
	standing, err = d.mem.Get(ctx, rec.ID)
	must(err)
	return standing
}

// must panics if a record cannot be restored: an error of the simulator.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("sim: a record cannot be restored: %v", err))
	}
}
