package session

import (
	"context"

	"github.com/oncehttp/oncehttp/internal/command/place"
)

// ChangeFact replaces the value of a fact, a small value that belongs to the journal as a whole. next returns the value to write, by the one that stands; the empty text
// leaves that. It is called again if another process has written meanwhile, and once more after the write. The error is place.JournalError.
func ChangeFact(ctx context.Context, ses *Session, name string, next func(standing string) string) error {
	standing, err := ses.Journal.Fact(ctx, name, nil, nil) // without values it only reads
	for err == nil {
		value := next(string(standing))
		if value == "" || value == string(standing) {
			return nil
		}
		standing, err = ses.Journal.Fact(ctx, name, standing, []byte(value)) // compares and sets, and returns what stands then
	}
	return place.JournalError(ses.Place.Name, err)
}
