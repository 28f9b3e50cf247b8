package main

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// seeing prepares records for a person who looks at them: their LeaseOwner says whether somebody is sending the operation, as in
// what Client.Lookup returns. It is made before the records are read.
type seeing struct {
	held  bool      // another process has the file: what it is sending now is not known
	known bool      // now is set
	now   time.Time // by the journal's clock; zero: nobody else has the journal
}

// seeing returns how records of the session's journal are seen.
func (ses *session) seeing(ctx context.Context) seeing {
	if _, held := persist.As[*heldJournal](ses.journal); held {
		return seeing{held: true}
	}
	claimer, shared := persist.As[persist.Claimer](ses.journal)
	if !shared || ses.place.isFile() {
		return seeing{known: true}
	}
	now, err := claimer.Now(ctx)
	return seeing{known: err == nil, now: now}
}

// set sets the record's LeaseOwner.
func (s seeing) set(rec *persist.Record) {
	switch {
	case s.held && rec.State == persist.StatePending:
		rec.LeaseOwner = "the process that has the journal"
	case s.known && (s.now.IsZero() || !rec.Leased("", s.now)):
		rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	}
}
