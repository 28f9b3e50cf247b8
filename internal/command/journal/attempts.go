package journal

import (
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// look prepares a record for display by see, which takes the leases (claims to send an operation) of dead processes off. If it took one off, look keeps the time
// until which that process's send may still be on its way, so that attempts can say that more may have been made.
func look(see interface{ Set(rec *persist.Record) }, rec *persist.Record) {
	leased := rec.LeaseOwner != ""
	see.Set(rec)
	if leased && rec.LeaseOwner == "" && rec.SendUntil.After(rec.DesertedUntil) {
		rec.DesertedUntil = rec.SendUntil
	}
}

// attempts returns the number of recorded attempts as text, such as 2, or 2+ if more may have been made. The record was prepared by look.
func (c clock) attempts(rec *persist.Record) string {
	if c.uncounted(rec) {
		return fmt.Sprintf("%d+", rec.Attempts)
	}
	return fmt.Sprint(rec.Attempts)
}

// uncounted reports whether an operation may have had attempts that its record does not count: those of a process that died, or of one that is sending it. Attempts
// are recorded at the end of a run. In a journal without leases (claims of processes) a record does not tell who has died: then the count is complete only if there
// was a single run (Drives), and it is recorded.
func (c clock) uncounted(rec *persist.Record) bool {
	switch {
	case !rec.MaybeSent || rec.State.Final():
		return false
	case rec.LeaseOwner != "", !rec.DesertedUntil.IsZero(), rec.HoldReason == persist.HoldRestored: // what was made after the copy is not in it
		return true
	}
	return !c.leased && (rec.Attempts == 0 || rec.Drives > 1)
}
