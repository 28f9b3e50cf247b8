package journaltest

import (
	"context"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Survivors returns a journal with the unfinished operations that are left if the process is killed now.
func Survivors(t *testing.T, j persist.Journal) persist.Journal {
	t.Helper()
	return Copied(t, j, persist.StatePending, persist.StateHeld)
}

// Snapshot returns a journal with all present records of j.
func Snapshot(t *testing.T, j persist.Journal) persist.Journal {
	t.Helper()
	return Copied(t, j)
}

// Copied returns a new journal in memory with the records of j in these states. Without states, it copies all records. A journal begins only
// unfinished records, so an ended one is begun as pending, without its end, and then finished.
func Copied(t *testing.T, j persist.Journal, states ...persist.State) persist.Journal {
	t.Helper()
	to := memory.New()
	for rec, err := range j.List(context.Background(), persist.Query{AllAccounts: true, States: states}) {
		if err != nil {
			t.Fatal(err)
		}
		begun := rec
		if rec.State.Final() {
			begun.State, begun.Effect, begun.Finished, begun.Answer, begun.Unreported, begun.KeyTold = persist.StatePending, "", time.Time{}, nil, false, false
		}
		begun, _, err = to.Begin(context.Background(), begun)
		if rec.State.Final() && err == nil {
			rec.Seq, rec.Revision = begun.Seq, begun.Revision // those that the new journal has given
			err = to.Finish(context.Background(), rec)
		}
		if err != nil {
			t.Error(err)
		}
	}
	return to
}

// All returns the records of a journal.
func All(t *testing.T, j persist.Journal) (all []persist.Record) {
	t.Helper()
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}

// Count returns the number of records of a journal.
func Count(t *testing.T, j persist.Journal) int {
	t.Helper()
	return len(All(t, j))
}

// Contents returns the records of a journal without leases: a pass (one look for due operations) may take and release these.
func Contents(t *testing.T, j persist.Journal) []persist.Record {
	t.Helper()
	all := All(t, j)
	for i := range all {
		rec := &all[i]
		// A pass may claim a record and give it back: then it counts a drive, and sets the time of the next attempt.
		rec.Revision, rec.Drives, rec.LeaseOwner, rec.LeaseUntil, rec.NextAttempt = 0, 0, "", time.Time{}, time.Time{}
	}
	return all
}
