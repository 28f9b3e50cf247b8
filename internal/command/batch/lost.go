package batch

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// This file holds the mark of a lost journal: moved or deleted while a batch had it open. A new journal knows nothing of the requests of that batch, so the next
// batch asks before it makes one.

// lostPath returns the path of a small file beside a journal, ".lost" behind its name. It says that the journal was moved or deleted while a batch had it open.
func lostPath(at place.Place) string { return at.Path + ".lost" }

// markLost writes that file after a run whose journal was moved or deleted while the batch had it open: the next batch asks before it makes a new journal, which would
// know nothing of what was sent. If the file cannot be written, only the summary of this run says so.
func markLost(at place.Place) {
	text := fmt.Sprintf("%s: the journal %s was moved or deleted while a batch had it open. Put it back: a new one knows nothing of what was sent.\n", time.Now().UTC().Format(time.RFC3339), at.Path)
	_ = os.WriteFile(lostPath(at), []byte(text), 0o600)
}

// checkLost asks the user before a new journal is made in the place of one that was moved or deleted during an earlier run (markLost). It returns nil if there was
// none, if the journal is there again, or with --new-journal; then it removes the note of the loss, and so it does after a yes. A dry run removes nothing.
func (f *batchFlags) checkLost(_ context.Context, b *batch, at place.Place) error {
	if !at.IsFile() {
		return nil
	}
	mark := lostPath(at)
	if _, err := os.Lstat(mark); err != nil {
		return nil
	}
	if isNew(at) && !f.newJournal {
		warning := fmt.Sprintf("%s: its journal %s was moved or deleted while a batch had it open (see %s): put it back; in a new one what was sent is sent once more", b.in.Name, words.ShellQuote(at.Path), words.ShellQuote(mark))
		if err := f.askNew(b, warning); err != nil {
			return err
		}
	}
	if !f.dry {
		_ = os.Remove(mark)
	}
	return nil
}
