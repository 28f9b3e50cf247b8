package persist

import (
	"context"
	"time"
)

// Results is a journal able to find the results owed to oncehttp.Config.OnResult (Query.Owed) without reading the other
// records. It is optional: find it with [As].
type Results interface {
	// MarkDelivered clears Record.OwedFrom of the record with this ID if it is at this revision, and raises the revision. It
	// reports whether it did: false if the record has changed since, owes nothing, or is not there.
	//
	// Visible to every later call at once. Durable as a MarkReported, or sooner. If a crash loses it, the result is owed again.
	// Errors: ErrUncertain, ErrClosed, ErrCorrupt, the context's, or the journal's own.
	MarkDelivered(ctx context.Context, id ID, revision uint64) (delivered bool, err error)
}

// SharedResults is a [Results] for several processes. Only one of them at a time hands a result to its OnResult: it first postpones the
// result, for as long as this call may take. The others leave the result alone until then. It is optional: find it with [As].
type SharedResults interface {
	Results

	// Postpone sets Record.OwedFrom of the record with this ID to from if the record is at this revision and owes a result, and raises
	// the revision. It reports whether it did: of any number of concurrent calls for one revision at most one.
	// Visible and durable as a MarkDelivered.
	// Errors: ErrUncertain, ErrClosed, ErrCorrupt, the context's, or the journal's own.
	Postpone(ctx context.Context, id ID, revision uint64, from time.Time) (postponed bool, err error)
}
