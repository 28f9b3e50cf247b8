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

// MarkDelivered implements [persist.Results], in the journal below: the record's state at this revision was handed to Config.OnResult. It returns false if
// nothing is owed at this revision.
func (r results) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	return r.below.MarkDelivered(ctx, r.s.StoredID(id), revision)
}

// sharedResults makes a journal over a persist.SharedResults one, too.
type sharedResults struct {
	results
	shared persist.SharedResults
}

// Postpone implements [persist.SharedResults], in the journal below: the record's state is to be handed to Config.OnResult from this time on. It returns
// false if nothing is owed at this revision.
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

// The same journals over a persist.Counter: numbers, reasons and times are in clear.
type (
	wakingCounts struct {
		wakingResults
		persist.Counter
	}
	claimingCounts struct {
		claimingResults
		persist.Counter
	}
	knowingCounts struct {
		knowingResults
		persist.Counter
	}
)

// owing returns the sealed journal over j with the abilities that j has, if j finds owed results (ends still to be given to Config.OnResult) and due times;
// else nil. A Claimer is shared by processes: it must be able to share results, too. Each combination of abilities is a type of its own, since callers find an
// ability by a type assertion. sealed is the common part of these types.
func (s *Sealer) owing(j persist.Journal, sealed journal) persist.Journal {
	below, finds := persist.As[persist.Results](j)
	due, knows := persist.As[persist.DueTimes](j)
	if !finds || !knows {
		return nil
	}
	counter, counts := persist.As[persist.Counter](j)
	claimer, claims := persist.As[persist.Claimer](j)
	if !claims {
		known := knowingResults{knowingTimes{sealed, times{due, s}}, results{below, s}}
		if counts {
			return &knowingCounts{known, counter}
		}
		return &known
	}
	shared, is := persist.As[persist.SharedResults](j)
	if !is {
		return nil
	}
	both, owed := claimingTimes{claiming{sealed, claimer}, times{due, s}}, sharedResults{results{below, s}, shared}
	notifier, wakes := persist.As[persist.Notifier](j)
	switch {
	case wakes && counts:
		return &wakingCounts{wakingResults{waking{both, notifier}, owed}, counter}
	case wakes:
		return &wakingResults{waking{both, notifier}, owed}
	case counts:
		return &claimingCounts{claimingResults{both, owed}, counter}
	}
	return &claimingResults{both, owed}
}
