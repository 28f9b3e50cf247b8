package journal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// forgottenNamed bounds the keys of forgotten operations in a line.
const forgottenNamed = 10

// forgotten returns a line about operations rejected with a status of --status and forgotten by the journal since, and not begun again: these need no redrive, only a
// new run. It returns nil if there are none. With --where there are none, since their requests are not kept.
func (r *redriving) forgotten(ctx context.Context) ([]string, error) {
	if len(r.where) > 0 {
		return nil, nil
	}
	sel := r.sel
	sel.query.States = nil // a forgotten operation has no state
	all, err := notDoneSince(ctx, r.ses, sel, r.end, r.s.Err)
	if err != nil {
		return nil, err
	}
	var keys []string
	for i := range all {
		if o := &all[i]; !o.Interrupted && slices.Contains(r.statuses, o.Status) && !o.Forgotten.Before(r.since) {
			keys = append(keys, o.Key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	named := strings.Join(keys[:min(len(keys), forgottenNamed)], ", ")
	if more := len(keys) - forgottenNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return []string{fmt.Sprintf("no redrive is needed for %s that the journal has forgotten: run the batch or the send again: %s; %s lists them",
		words.Count(len(keys), "rejected operation"), named, listRejectedCommand(r.ses.Place))}, nil
}
