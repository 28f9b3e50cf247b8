package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// seeing prepares records for a person who looks at them: their LeaseOwner says whether somebody is sending the operation, as in
// what Client.Lookup returns. It is made before the records are read.
type seeing struct {
	held  *heldJournal // the process that has the file, which knows what it is sending; nil: no process has it
	file  string       // the journal's path, beside which processes that send hold locks; "": the journal is on a server
	known bool         // now is set
	now   time.Time    // by the clock of a journal on a server
}

// seeing returns the function that prepares records of the session's journal for a look.
func (ses *session) seeing(ctx context.Context) seeing {
	if ses.place.isFile() {
		return seeing{held: ses.held, file: ses.place.path}
	}
	claimer, shared := persist.As[persist.Claimer](ses.journal)
	if !shared {
		return seeing{}
	}
	now, err := claimer.Now(ctx)
	return seeing{known: err == nil, now: now}
}

// set sets the record's LeaseOwner.
func (s seeing) set(rec *persist.Record) {
	leased := rec.LeaseOwner != "" // where the clock of the journal is not known
	switch {
	case s.file != "":
		leased = rec.Leased("", time.Now()) && ownerLives(s.file, rec.LeaseOwner)
	case s.known:
		leased = rec.Leased("", s.now)
	}
	if !leased {
		rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	}
	if s.held != nil && !rec.State.Final() && s.held.sending(rec.ID) {
		rec.LeaseOwner = "the process that has the journal"
	}
}

// seenKey is KEY@SEEN, by which settle, abandon and rekey know whether an operation has moved since it was listed; the key
// alone of one about which nobody has anything to say. The record was prepared by seeing.
func seenKey(rec *persist.Record) string {
	if rec.State.Final() && !(rec.State == persist.StateSettled && rec.Effect == persist.EffectAbsent) {
		return rec.Key
	}
	return rec.Key + "@" + operation.Seen(rec)
}

// splitSeen takes KEY@SEEN apart. seen is empty if the text does not end so.
func splitSeen(text string) (key, seen string) {
	at := len(text) - operation.SeenLength
	if at < 2 || text[at-1] != '@' || strings.Trim(text[at:], "0123456789abcdef") != "" {
		return text, ""
	}
	return text[:at-1], text[at:]
}

// seenRecord is the operation of an argument, and what it looked like when it was listed; empty if that was not said.
type seenRecord struct {
	persist.Record
	seen string
}

var errNoSuchKey = errors.New("no such key")

// findSeen is find for KEY or KEY@SEEN. A key that ends like the latter is a key.
func (f *actFlags) findSeen(ctx context.Context, ses *session, text string) (seenRecord, error) {
	rec, err := f.find(ctx, ses, text)
	if key, seen := splitSeen(text); errors.Is(err, errNoSuchKey) && seen != "" {
		rec, err = f.find(ctx, ses, key)
		if !errors.Is(err, errNoSuchKey) {
			return seenRecord{rec, seen}, err
		}
	}
	if errors.Is(err, errNoSuchKey) {
		err = f.notFound(text)
	}
	return seenRecord{Record: rec}, err
}

// unmoved parts the operations that the act may be done to from those that have moved since they were seen. On a terminal that is
// not the list of keys it asks about the latter. An operation of which nobody said as what it was seen is shown and asked about there;
// elsewhere it is an error if the act is bound, or the keys were listed before.
func unmoved(all []seenRecord, a act, listed, yes bool, s streams) (records []persist.Record, moved []string, err error) {
	asks := !listed && !yes && isTerminal(s.in) && isTerminal(s.err)
	for i := range all {
		switch rec := &all[i]; {
		case a.done(&rec.Record):
		case rec.seen == "" && rec.State.Final() && a.kind != operation.BeginAnew: // it says how it has ended
		case rec.seen == "" && (a.bound || listed) && !asks:
			return nil, nil, fmt.Errorf("%q: say KEY@SEEN, as journal list and journal stuck show it: a worker may have sent it since you looked; nothing was changed", clip(rec.Key))
		case rec.seen == "" && a.bound:
			err = s.confirm(false, knownText(&rec.Record))
		case rec.seen != "" && operation.MovedSince(rec.seen, &rec.Record, a.kind):
			if asks {
				err = s.confirm(false, "It has moved since it was seen: "+knownText(&rec.Record))
			}
			if !asks || err != nil {
				moved, err = append(moved, seenKey(&rec.Record)), nil
				continue
			}
		}
		if err != nil {
			return nil, nil, err
		}
		records = append(records, all[i].Record)
	}
	return records, moved, nil
}

// sayMoved prints what has moved, and adds it to the error of the others.
func sayMoved(moved []string, err error, s streams) error {
	if len(moved) == 0 {
		return err
	}
	for _, key := range moved {
		say(s.out, "left alone, it has moved since it was seen: %s", key)
	}
	left := fmt.Errorf("%s moved since they were seen; look again", count(len(moved), "operation"))
	return &exitError{status: exitUnknown, err: errors.Join(err, left)}
}
