// Package landing keeps which records may yet be begun by a statement without an answer, which is still on its way to a journal's server.
// Such a record must not be forgotten: the statement would begin its operation once more.
package landing

import (
	"cmp"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Most is how many records are kept at most. Of more, no record at all may be forgotten until the time of those that are not kept.
const Most = 100_000

// Begins are Begins whose statements may yet land. Each is kept until its record has ended, which then cannot be forgotten, or until
// nothing of it is sent any more. The zero value is ready; it is safe for concurrent use.
type Begins struct {
	// Most is as the constant, which zero stands for. Not to be changed while it is in use.
	Most int

	mu      sync.Mutex
	at      map[string]begin
	sweepAt int       // at so many, those whose time is over are left out
	overrun time.Time // the latest time of those that are not kept
}

// begin is a Begin whose statement may yet land.
type begin struct {
	seq   uint64 // of the record that a later try has begun; lost: whatever stands there
	lost  bool
	until time.Time
}

// Late notes a record that was begun by a second try, or a later one: the first may yet land.
func (b *Begins) Late(id string, rec *persist.Record) { b.add(id, rec, false) }

// Lost notes a record whose Begin ended without an answer.
func (b *Begins) Lost(id string, rec *persist.Record) { b.add(id, rec, true) }

func (b *Begins) add(id string, rec *persist.Record, lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, most := time.Now(), cmp.Or(b.Most, Most)
	// By this process's own clock: the record's times are by the journal's.
	until := now.Add(rec.Window + max(rec.SendBefore.Sub(rec.Created), 0))
	if b.at == nil {
		b.at, b.sweepAt = map[string]begin{}, most/2
	}
	if len(b.at) >= b.sweepAt {
		for id, at := range b.at {
			if now.After(at.until) {
				delete(b.at, id)
			}
		}
		b.sweepAt = min(max(2*len(b.at), most/2), most)
	}
	before, known := b.at[id]
	if !known && len(b.at) >= most {
		if until.After(b.overrun) {
			b.overrun = until
		}
		return
	}
	b.at[id] = begin{seq: rec.Seq, lost: lost || before.lost, until: until}
}

// May reports whether a statement that begins the record of this number may yet land.
func (b *Begins) May(id string, seq uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	at, known := b.at[id]
	return known && !now.After(at.until) && (at.lost || at.seq == seq) || !now.After(b.overrun)
}

// End notes that the record has ended.
func (b *Begins) End(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.at, id)
}
