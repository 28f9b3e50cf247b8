package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// NoteRestored writes to the journal that it was restored at now, from a backup of the time taken. noted is false, without an error, for a role that may not write
// this.
func NoteRestored(ctx context.Context, ses *Session, taken, now time.Time) (noted bool, err error) {
	next := now.UTC().Format(time.RFC3339) + " " + taken.UTC().Format(time.RFC3339)
	err = ChangeFact(ctx, ses, persist.FactRestored, func(string) string { return next })
	if err == nil || errors.Is(err, persist.ErrDenied) {
		return err == nil, nil
	}
	return false, err
}

// Restore is the latest restore of a journal, as told to journal restored. The zero value is none.
type Restore struct{ At, Taken string }

// RestoreOf returns the latest restore of the journal from a backup, as NoteRestored wrote it; the zero value if there was none, or for a role that may not read it.
func RestoreOf(ctx context.Context, ses *Session) (Restore, error) {
	fact, err := ses.Journal.Fact(ctx, persist.FactRestored, nil, nil) // without values it only reads
	if errors.Is(err, persist.ErrDenied) {
		return Restore{}, nil
	}
	if err != nil {
		return Restore{}, place.JournalError(ses.Place.Name, err)
	}
	at, taken, found := strings.Cut(string(fact), " ")
	if !found {
		return Restore{}, nil
	}
	return Restore{at, taken}, nil
}

// RestoredStep returns the next step for an operation that is held since a restore, if the provider did not do it. One that no key protects, or whose key the API may
// have forgotten, is not sent again under that key: releasing it would only hold it again, so that it is to be settled. journal is [place.Place.Shell].
func RestoredStep(rec *persist.Record, now time.Time, journal string) string {
	again := ""
	op, _ := acts.Released(operation.OpOf(rec, 0)) // as it would be once a person says that it may go on
	switch operation.ProspectOf(&op, now) {
	case operation.WillHaveNoKey:
		again = "no key protects another send"
	case operation.WillExpire:
		again = "the API may have forgotten the key"
	default:
		return "if the provider did not do it: oncehttp journal resume --restored " + words.ShellQuote(rec.Key) + " --journal " + journal
	}
	return again + "; if the provider did not do it: oncehttp journal settle " + words.ShellQuote(SeenKey(rec)) + " --absent --journal " + journal + ", and then a new request"
}

// RestoredText returns a sentence about the latest restore of the journal; "" if nobody has said that there was one.
func RestoredText(ctx context.Context, ses *Session) (string, error) {
	r, err := RestoreOf(ctx, ses)
	if err != nil || r == (Restore{}) {
		return "", err
	}
	return fmt.Sprintf("the journal was restored at %s from a backup of %s: what was begun in between is not in it, and counts as new here. Compare it with the API's own list (oncehttp audit) before a row is sent under another key", r.At, r.Taken), nil
}
