package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
)

// asOrdered returns an error for a batch without --ordered-by if rows with the same --url were sent in an order before: the flag was most likely forgotten, and rows that
// wait behind one that has not ended would be sent before it. A run with the flag notes its column in the journal (persist.FactOrdered), which keeps the latest ones that
// fit. With write false it notes nothing.
func (f *batchFlags) asOrdered(ctx context.Context, ses *session.Session, write bool) error {
	digest := sha256.Sum256([]byte(f.url))
	mark := hex.EncodeToString(digest[:4]) + " "
	standing, err := ses.Journal.Fact(ctx, persist.FactOrdered, nil, nil) // a line for each --url: its hash, and the column
	// Fact writes only in place of the value standing, and returns what stands then. Another process may write between: then it is tried again.
	for err == nil {
		lines := strings.Split(string(standing), "\n")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, mark) })
		switch {
		case f.orderedBy == "" && !f.orderSaid && i >= 0:
			return fmt.Errorf("journal %s: rows for this --url were sent with --ordered-by %s: say that again, or --ordered-by '' on purpose", ses.Place.Name, strings.TrimPrefix(lines[i], mark))
		case f.orderedBy == "" || !write, i >= 0 && lines[i] == mark+f.orderedBy, len(mark+f.orderedBy) > persist.FactMax, strings.Contains(f.orderedBy, "\n"):
			return nil
		case i >= 0:
			lines = slices.Delete(lines, i, i+1)
		}
		next := mark + f.orderedBy
		for _, line := range lines {
			if line != "" && len(next)+1+len(line) <= persist.FactMax {
				next += "\n" + line
			}
		}
		standing, err = ses.Journal.Fact(ctx, persist.FactOrdered, standing, []byte(next))
	}
	if errors.Is(err, persist.ErrDenied) { // a role without the right to these notes
		return nil
	}
	return place.JournalError(ses.Place.Name, err)
}
