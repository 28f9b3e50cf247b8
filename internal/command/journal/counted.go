package journal

import (
	"context"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
)

// counted takes the numbers of the alert from the journal's own counts, without reading records, and returns true. It returns false if records must be read: if they
// are listed, if only some operations are selected, if some are older than --fail-over, or if the journal does not count.
func (a *alert) counted(ctx context.Context, ses *session.Session, sel selection) (bool, error) {
	sel.query.States = nil                                      // those of stuck, pending and held, are counted anyway
	counter, counts := persist.As[persist.Counter](ses.Journal) // a journal that keeps its own counts
	if !a.flags.quiet || !counts || !sel.all() {
		return false, nil
	}
	c, err := counter.Count(ctx)
	// Of the ages the counts have the oldest only.
	if err != nil || a.flags.overSet() && !c.Oldest.IsZero() && a.now.Sub(c.Oldest) > a.flags.over {
		return false, err
	}
	a.pending, a.held = c.Pending, c.AllHeld()
	return true, nil
}
