package session

import (
	"context"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/persist"
)

// seeing prepares records for display to a person. As in the records of Client.Lookup, LeaseOwner is set if somebody is sending the
// operation. A seeing is made before the records are read.
type seeing struct {
	held  *place.HeldJournal // the process holding the file; it knows its sends; nil: no process holds it
	file  string             // the journal's path; sending processes hold locks beside it; "": the journal is on a server
	known bool               // now is set
	now   time.Time          // by the clock of a journal on a server
}

// Seeing returns a seeing for the records of the session's journal. It prepares each record for display: its LeaseOwner says whether a process is sending the
// operation now. Seeing asks the server's clock once, so it must be called before the records are read. If the clock cannot be read, a lease counts as long
// as it is in the record.
func (ses *Session) Seeing(ctx context.Context) seeing {
	if ses.Place.IsFile() {
		return seeing{held: ses.held, file: ses.Place.Path}
	}
	claimer, shared := persist.As[persist.Claimer](ses.Journal)
	if !shared {
		return seeing{}
	}
	now, err := claimer.Now(ctx)
	return seeing{known: err == nil, now: now}
}

// Set corrects the record's LeaseOwner for display: it stays set only if a process is sending the operation. A lease (a claim to send) that has ended, or whose
// process has died, is taken off. If another process has the journal's file open, that process is asked.
func (s seeing) Set(rec *persist.Record) {
	leased := rec.LeaseOwner != "" // if the clock of the journal is not known
	switch {
	case s.file != "":
		place.LeaseOfLiving(s.file, rec, time.Now())
		leased = rec.Leased("", time.Now()) // "": of any process
	case s.known:
		leased = rec.Leased("", s.now)
	}
	if !leased {
		rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	}
	if s.held != nil && !rec.State.Final() && s.held.Sending(rec.ID) {
		rec.LeaseOwner = "the process that has the journal"
	}
}

// Now returns the time at which leases (claims of processes to send) were looked at: by the clock of a journal on a server, else that of this process.
func (s seeing) Now() time.Time {
	if s.known {
		return s.now
	}
	return time.Now()
}

// SeenKey returns KEY@SEEN, the key with a digest of the record as listed. By it settle, abandon and rekey notice a change of the operation since then. It returns the
// key alone if no decision about the operation is open. Call it with a record prepared by seeing.
func SeenKey(rec *persist.Record) string {
	// An operation settled as absent may still be begun anew under another key.
	if rec.State.Final() && !(rec.State == persist.StateSettled && rec.Effect == persist.EffectAbsent) {
		return rec.Key
	}
	return rec.Key + "@" + acts.Seen(rec)
}

// SplitSeen takes KEY@SEEN, as SeenKey spells it, apart. If the text does not end in a digest behind a key, key is the text, and seen is "".
func SplitSeen(text string) (key, seen string) {
	at := len(text) - acts.SeenLength
	if at < 2 || text[at-1] != '@' || strings.Trim(text[at:], "0123456789abcdef") != "" {
		return text, ""
	}
	return text[:at-1], text[at:]
}
