// Package landing keeps the records with a possibly late Begin: a statement without an answer, still on its way to a
// journal's server. Such a record must not be forgotten: the statement would begin its operation once more.
package landing

import (
	"cmp"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Most is the default of Begins.Most, the largest number of kept records. If there are more, May is true for every record until
// the time of those not kept has passed.
const Most = 100_000

// Begins keeps calls of Begin with statements that may still reach the server. Each is kept until its record has ended, as an
// ended record cannot be forgotten, or until the record can no longer be sent. The zero value is ready; it is safe for
// concurrent use. An id names a record within the journal.
type Begins struct {
	// Most is as the constant; zero stands for the constant. Do not change it while the Begins is in use.
	Most int

	mu      sync.Mutex       // guards the fields below
	at      map[string]begin // by id; nil before the first add
	sweepAt int              // at this number of records, add deletes those with their time over
	overrun time.Time        // the latest time of records beyond Most; zero: there were none
}

// begin is a Begin with a statement that may still reach the server.
type begin struct {
	seq   uint64    // of the record begun by a later try
	lost  bool      // a Begin had no answer: the statement may begin a record with any seq
	until time.Time // by this process's clock: afterwards the record is not sent any more
}

// Late notes a record begun by a second try, or a later one: the statement of the first may still reach the server, and would begin it anew if it was
// forgotten.
func (b *Begins) Late(id string, rec *persist.Record) { b.add(id, rec, false) }

// Lost notes a record whose Begin got no answer: its statement may still reach the server, so the record must not be forgotten before that is over.
func (b *Begins) Lost(id string, rec *persist.Record) { b.add(id, rec, true) }

// add notes a record whose begin may appear in the database later than its call (lost: the call failed without a known result). It is kept until the operation
// can no longer be sent. Those whose time is over are removed each time the map has doubled. With Most noted records it keeps no further one: it only extends
// overrun, the time until which any record may be one of those.
func (b *Begins) add(id string, rec *persist.Record, lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, most := time.Now(), cmp.Or(b.Most, Most)
	// By this process's own clock: the record's times are by the journal's.
	until := now.Add(rec.Window + max(rec.SendBefore.Sub(rec.Created), 0)) // an operation that waits may be sent up to SendBefore
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

// May reports whether the statement of a Begin of the record with this seq may still reach the server: then the caller must not forget the record, since
// that statement would begin it anew. After a call without an answer (lost) the seq is not known, so any record of this id is meant. Until overrun, true means
// "unknown": there was no room to note all.
func (b *Begins) May(id string, seq uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	at, known := b.at[id]
	return known && !now.After(at.until) && (at.lost || at.seq == seq) || !now.After(b.overrun)
}

// End removes a record that has ended: its row stays, so a late statement begins nothing. An unknown id is ignored.
func (b *Begins) End(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.at, id)
}
