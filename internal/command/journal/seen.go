package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// seenRecord is the operation of an argument, with the SEEN of the argument; empty if it has none.
type seenRecord struct {
	persist.Record
	seen string
}

// repeats reports whether the argument of the command that named r says nothing new beside an earlier one, before: the same operation, and the same SEEN (the digest
// of the record as the user saw it) or none. With another SEEN both stay, and unmoved judges each.
func (r *seenRecord) repeats(before seenRecord) bool {
	return before.ID == r.ID && (r.seen == "" || r.seen == before.seen)
}

var errNoSuchKey = errors.New("no such key")

// findSeen returns the operation that the user names by KEY or KEY@SEEN; SEEN is a digest of the record as the user saw it. The first word of generated keys may be
// left out. A key that itself ends like @SEEN is found first.
func (f *actFlags) findSeen(ctx context.Context, ses *session.Session, text string) (seenRecord, error) {
	bare, seen := session.SplitSeen(text)
	for _, prefix := range []string{"", words.KeyPrefix} {
		rec, err := f.find(ctx, ses, prefix+text)
		if !errors.Is(err, errNoSuchKey) {
			return seenRecord{Record: rec}, err
		}
		if seen == "" {
			continue
		}
		if rec, err = f.find(ctx, ses, prefix+bare); !errors.Is(err, errNoSuchKey) {
			return seenRecord{rec, seen}, err
		}
	}
	return seenRecord{}, f.notFound(ctx, ses, text)
}

// notFound returns the error for a text that names no operation. It names the operation that the text may mean, such as one whose key ends so. That one is not changed.
func (f *actFlags) notFound(ctx context.Context, ses *session.Session, text string) error {
	key, _ := session.SplitSeen(text)
	if rec, ok := f.badSeen(ctx, ses, text); ok {
		return fmt.Errorf("%q: what follows the @ is no SEEN, which is %d digits of 0-9 and a-f; the operation is %s", words.Clip(text), acts.SeenLength, session.SeenKey(&rec))
	}
	meant, ends, many := "", "", 0
	err := session.EachRecord(ctx, ses, f.Query(), func(rec *persist.Record) error {
		if meant == "" && (words.MeansKey(text, rec.Key) || words.MeansKey(key, rec.Key)) {
			meant = rec.Key
		}
		if words.EndsKey(text, rec.Key) || words.EndsKey(key, rec.Key) {
			ends, many = rec.Key, many+1
		}
		return nil
	})
	if meant == "" && many == 1 { // of several ends none is more likely
		meant = ends
	}
	if err != nil || meant == "" {
		return f.NotFound(text)
	}
	return fmt.Errorf("%w; there is %q", f.NotFound(text), meant)
}

// badSeen returns the operation of KEY, and true, if a text is KEY@ and something that is no SEEN (a digest of hexadecimal digits), so that the error can say so.
func (f *actFlags) badSeen(ctx context.Context, ses *session.Session, text string) (persist.Record, bool) {
	at := strings.LastIndexByte(text, '@')
	if at < 1 {
		return persist.Record{}, false
	}
	for _, prefix := range []string{"", words.KeyPrefix} {
		if rec, err := f.find(ctx, ses, prefix+text[:at]); err == nil {
			return rec, true
		}
	}
	return persist.Record{}, false
}

// unmoved returns the records that the act a may change, and in moved a line for each operation that is not as its KEY@SEEN (a digest of the record) says. On a
// terminal it asks about the latter, unless the keys were listed on stdin or with --yes. If the act needs a SEEN (a.bound), or the keys were listed, an unfinished
// operation without one is asked about, or is an error: a worker may have sent it since the user looked. So is an ended one for an act that begins it anew
// (rekey): another person may have begun it since; but not a success, which that act refuses. An empty case leaves the record to the act.
func unmoved(all []seenRecord, a act, listed, yes bool, s terminal.Streams) (records []persist.Record, moved []string, err error) {
	asks := !listed && !yes && terminal.IsTerminal(s.In) && terminal.IsTerminal(s.Err)
	for i := range all {
		switch rec := &all[i]; {
		case a.done(&rec.Record): // nothing is changed
		case rec.seen == "" && rec.State.Final() && (a.kind != acts.BeginAnew || isSuccess(&rec.Record)): // nobody sends it any more
		case rec.seen == "" && (a.bound || listed) && !asks:
			return nil, nil, fmt.Errorf("%q: say KEY@SEEN, as journal list and journal stuck show it: a worker may have sent it since you looked; nothing was changed", words.Clip(rec.Key))
		case rec.seen == "" && a.bound && a.warning != nil && a.warning(&rec.Record) != "": // ask shows it, and asks
		case rec.seen == "" && a.bound:
			err = s.Confirm(false, knownText(&rec.Record)) // false: --yes was not given, or asks would be false
		case rec.seen != "" && acts.MovedSince(rec.seen, &rec.Record, a.kind):
			if asks {
				err = s.Confirm(false, "It does not stand as @"+rec.seen+" says: "+knownText(&rec.Record))
			}
			if errors.Is(err, terminal.ErrUnanswered) {
				return nil, nil, err
			}
			if !asks || err != nil { // err: the answer was no
				moved, err = append(moved, otherThanSeen(rec)), nil
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

// otherThanSeen returns a line about an operation that is not as the SEEN of its argument says. SEEN is a digest, so that nobody can tell whether it ever was.
func otherThanSeen(rec *seenRecord) string {
	return fmt.Sprintf("@%s is not how it stands, since it has moved or that is another's SEEN: %s", rec.seen, session.SeenKey(&rec.Record))
}

// movedSince returns a line about an operation that was changed while the act ran, or that another process is sending. now is its present record, read at the time at.
func movedSince(now *persist.Record, at time.Time) string {
	if sending := view.SendingText(now, at); sending != "" && !now.State.Final() {
		return sending + ", and changed by nobody else before that: " + session.SeenKey(now)
	}
	return "it has moved since it was seen: " + session.SeenKey(now)
}

// sayMoved prints the lines about operations that were left alone because they had changed, and returns err, the failures of the others, with this added. Without such
// lines it returns err.
func sayMoved(moved []string, err error, s terminal.Streams) error {
	if len(moved) == 0 {
		return err
	}
	for _, text := range moved {
		terminal.Say(s.Out, "left alone, %s", text)
	}
	left := fmt.Errorf("%s left alone: being sent, or not as seen; look at it as it stands now", words.Count(len(moved), "operation"))
	return &terminal.ExitError{Status: terminal.ExitUnknown, Err: errors.Join(err, left)}
}
