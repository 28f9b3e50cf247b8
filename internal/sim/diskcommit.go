package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the commits of the disk: what is written, what is durable, and what a crash takes.

// change is one record after one write.
type change struct {
	rec    persist.Record
	gone   bool // it was forgotten, and is seen until the Forget is durable
	waited bool // a caller waits until it is durable, and so do other callers of the record
}

// write makes one change in memory, by apply (nil: there is nothing to change), and waits until it is durable if durable is true. It may fail before anything is
// written, as on a full disk: then nothing has changed, for certain. So do four in five of the drawn failures. Else the commit fails later: then nothing is known,
// and the journal refuses all work until a crash has decided.
func (d *disk) write(id persist.ID, durable bool, apply func() (*change, error)) error {
	d.mu.Lock()
	d.quiet(id)
	if d.broken != nil {
		defer d.mu.Unlock()
		return d.broken
	}
	d.writes++
	trouble, fails := d.dice.unit(id.Account+id.Key, d.writes), d.fails
	took := time.Duration(d.dice.hash("sync", d.writes) % uint64(d.pace))
	if trouble < fails*0.8 {
		d.mu.Unlock()
		time.Sleep(took)
		return errFull
	}
	c, err := apply()
	if err != nil || c == nil {
		d.mu.Unlock()
		return err
	}
	c.waited = durable
	n := d.put(*c)
	d.mu.Unlock()
	if !durable {
		time.AfterFunc(finishDelay, func() { d.commit(n, false) })
		return nil
	}
	if d.hurries(c) {
		time.AfterFunc(took+finishDelay, func() { d.commit(n, false) })
		return nil
	}
	time.Sleep(took)
	return d.commit(n, trouble < fails)
}

// hurries reports whether a deliberate bug lets this write return before it is durable: a begin (its revision is 1), a later change, or a Forget (gone).
func (d *disk) hurries(c *change) bool {
	switch d.bug {
	case BugSendBeforeSync:
		return c.rec.Revision == 1 && !c.gone
	case BugMarkBeforeSync:
		return c.rec.Revision > 1 && !c.gone
	case BugLazyForget:
		return c.gone
	}
	return false
}

// put adds a change that readers see, and a crash still loses, and returns its number for the commit. The caller holds mu.
func (d *disk) put(c change) int {
	d.wait = append(d.wait, c)
	return d.first + len(d.wait)
}

// commit makes durable all changes up to the n-th, or, with fails, breaks the journal. A commit takes along all earlier writes, as every journal's does.
func (d *disk) commit(n int, fails bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case n <= d.first: // another commit took it along
		return nil
	case d.broken != nil:
		return d.broken
	case fails:
		d.broken = fmt.Errorf("sim: %w", persist.ErrUncertain)
		return d.broken
	}
	d.settle(n)
	return nil
}

// settle makes the changes up to the n-th durable: no simulated crash takes them back. A record is removed from memory only now (gone).
func (d *disk) settle(n int) {
	for ; d.first < n; d.first++ {
		c := d.wait[0]
		d.wait = d.wait[1:]
		keep(d.safe, c)
		if !c.gone {
			continue
		}
		if err := d.mem.Forget(context.Background(), c.rec); err != nil {
			panic(fmt.Sprintf("sim: a record changed while it was forgotten: %v", err))
		}
	}
}

// keep applies a durable change to records, the content of the simulated disk.
func keep(records map[persist.ID]persist.Record, c change) {
	if c.gone {
		delete(records, c.rec.ID)
		return
	}
	records[c.rec.ID] = c.rec
}
