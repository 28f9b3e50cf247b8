// Package landing keeps the records with a possibly late Begin: a statement without an answer, still on its way to a
// journal's server. Such a record must not be forgotten: the statement would begin its operation once more.
package landing

import (
	"cmp"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Most is the largest number of kept records. If there are more, no record at all may be forgotten until the time of
// the records not kept.
const Most = 100_000

// Begins keeps calls of Begin with statements that may yet land. Each is kept until its record has ended, as an ended
// record cannot be forgotten, or until nothing of the record is sent any more. The zero value is ready; it is safe
// for concurrent use.
type Begins struct {
	// Most is as the constant; zero stands for the constant. Do not change it while the Begins is in use.
	Most int

	mu      sync.Mutex
	at      map[string]begin
	sweepAt int       // at this number, add deletes the records with their time over
	overrun time.Time // the latest time of the records not kept
}

// begin is a Begin with a statement that may yet land.
type begin struct {
	seq   uint64 // of the record begun by a later try; with lost, any number counts
	lost  bool
	until time.Time
}

// Late notes a record begun by a second try, or a later one: the first may yet land.
func (b *Begins) Late(id string, rec *persist.Record) { b.add(id, rec, false) }

// Lost notes a record after a Begin without an answer.
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

// May reports whether a Begin of the record with this number may yet land.
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
