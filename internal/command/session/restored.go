package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/persist"
)

// NoteRestored notes in the journal that it was restored at now, from a backup of the time taken. A role without the right to write facts notes nothing.
func NoteRestored(ctx context.Context, ses *Session, taken, now time.Time) error {
	next := now.UTC().Format(time.RFC3339) + " " + taken.UTC().Format(time.RFC3339)
	standing, err := ses.Journal.Fact(ctx, persist.FactRestored, nil, nil)
	for err == nil && string(standing) != next {
		standing, err = ses.Journal.Fact(ctx, persist.FactRestored, standing, []byte(next))
	}
	if err == nil || errors.Is(err, persist.ErrDenied) {
		return nil
	}
	return place.JournalError(ses.Place.Name, err)
}

// RestoredText returns a sentence about the latest restore of the journal; "" if nobody has said that there was one.
func RestoredText(ctx context.Context, ses *Session) (string, error) {
	fact, err := ses.Journal.Fact(ctx, persist.FactRestored, nil, nil)
	if errors.Is(err, persist.ErrDenied) {
		return "", nil
	}
	if err != nil {
		return "", place.JournalError(ses.Place.Name, err)
	}
	at, taken, found := strings.Cut(string(fact), " ")
	if !found {
		return "", nil
	}
	return fmt.Sprintf("the journal was restored at %s from a backup of %s: what was begun in between is not in it, and counts as new here. Compare it with the API's own list (oncehttp audit) before a row is sent under another key", at, taken), nil
}
