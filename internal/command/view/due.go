package view

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// IsDueUnsent reports whether an operation is due at now, nobody has it, and it was never sent, nor may have been: whoever enqueued
// it waits for a worker.
func IsDueUnsent(rec *persist.Record, now time.Time) bool {
	return rec.State == persist.StatePending && rec.Sends == 0 && !rec.MaybeSent && !rec.NextAttempt.After(now) && !rec.Leased("", now)
}
