package view

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// IsDueUnsent reports whether an operation is due at now, no process at all ("" names none) has a lease of it (a claim to send it), and it was certainly
// never sent. It then waits for a worker.
func IsDueUnsent(rec *persist.Record, now time.Time) bool {
	return rec.State == persist.StatePending && rec.Sends == 0 && !rec.MaybeSent && !rec.NextAttempt.After(now) && !rec.Leased("", now)
}
