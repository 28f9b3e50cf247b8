package results

import (
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// This file counts the attempts of an operation whose earlier calls made some, too.

// CountWhole gives the line of an operation that has not ended the attempts and sends of the operation's whole life, by its record, in place of those of this run. The
// lines of ended operations have these from the start.
func (l *Line) CountWhole(rec *persist.Record) {
	if l.Error == nil || l.Attempts == 0 || rec.Attempts <= l.Attempts { // it has ended, this run tried nothing, or no earlier run did
		return
	}
	of := counted{here: l.Attempts, all: rec.Attempts}
	l.Error.Message = of.in(l.Error.Message)
	l.Attempts, l.Sends = rec.Attempts, max(l.Sends, rec.Sends)
}

// OfWholeLife returns err, an error of a run that made here attempts, with the attempts of the operation's whole life in its text, as CountWhole has put them into the
// operation's line l.
func OfWholeLife(err error, here int, l *Line) error {
	if l.Attempts <= here {
		return err
	}
	return &counted{err: err, here: here, all: l.Attempts}
}

// counted is an error of a run whose text counts the attempts of earlier runs, too.
type counted struct {
	err       error
	here, all int
}

// Error returns the text of the error, with both counts.
func (c *counted) Error() string { return c.in(c.err.Error()) }

// Unwrap returns the error of the run.
func (c *counted) Unwrap() error { return c.err }

// in returns a text with both counts in place of that of the run.
func (c *counted) in(text string) string {
	return strings.Replace(text, " after "+words.Count(c.here, "attempt"), fmt.Sprintf(" after %d attempts, %d of them by this call", c.all, c.here), 1)
}
