package seal

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// results makes a journal over a persist.Results one, too: all data of owed results is in clear.
type results struct {
	below persist.Results
	s     *Sealer
}

// MarkDelivered implements [persist.Results].
func (r results) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	return r.below.MarkDelivered(ctx, r.s.StoredID(id), revision)
}

// sharedResults makes a journal over a persist.SharedResults one, too.
type sharedResults struct {
	results
	shared persist.SharedResults
}

// Postpone implements [persist.SharedResults].
func (r sharedResults) Postpone(ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
	return r.shared.Postpone(ctx, r.s.StoredID(id), revision, from)
}

// The journals over a persist.DueTimes with results: with leases and wakes, with leases, and without.
type (
	wakingResults struct {
		waking
		sharedResults
	}
	claimingResults struct {
		claimingTimes
		sharedResults
	}
	knowingResults struct {
		knowingTimes
		results
	}
)

// owing returns the journal over j if j finds owed results, else nil. sealed is its common part.
func (s *Sealer) owing(j persist.Journal, sealed journal) persist.Journal {
	below, finds := persist.As[persist.Results](j)
	due, knows := persist.As[persist.DueTimes](j)
	if !finds || !knows {
		return nil
	}
	claimer, claims := persist.As[persist.Claimer](j)
	if !claims {
		return &knowingResults{knowingTimes{sealed, times{due, s}}, results{below, s}}
	}
	shared, is := persist.As[persist.SharedResults](j)
	if !is {
		return nil
	}
	both, owed := claimingTimes{claiming{sealed, claimer}, times{due, s}}, sharedResults{results{below, s}, shared}
	if notifier, wakes := persist.As[persist.Notifier](j); wakes {
		return &wakingResults{waking{both, notifier}, owed}
	}
	return &claimingResults{both, owed}
}
