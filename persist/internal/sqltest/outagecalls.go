package sqltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the calls of a journal broken by an outage.

// call is a method of a journal, as the outages strike it. before prepares the record, on a
// way without faults; run makes the call; after reports whether the standing record is right.
type call struct {
	before func(j persist.Journal, rec persist.Record) persist.Record
	run    func(j persist.Journal, rec persist.Record) error
	after  func(now persist.Record, err error) bool
}

// begun stores rec as a new record, and returns it as stored. It is called before the database goes down, and panics on an error.
func begun(j persist.Journal, rec persist.Record) persist.Record {
	rec, _, err := j.Begin(context.Background(), rec)
	if err != nil {
		panic(err)
	}
	return rec
}

// finishedIn stores a finished record under a generated key, marked as unreported. The returned Revision is the one before
// Finish. It is called while the database is up, and panics on an error.
func finishedIn(j persist.Journal, rec persist.Record) persist.Record {
	rec.Generated = true
	rec = Finished(begun(j, rec))
	rec.Unreported = true
	if err := j.Finish(context.Background(), rec); err != nil {
		panic(err)
	}
	return rec
}

// leased begins a record with an ended lease.
func leased(j persist.Journal, rec persist.Record) persist.Record {
	rec.LeaseOwner, rec.LeaseUntil = "w", rec.Created
	return begun(j, rec)
}

// asIs returns rec without a Begin, for a call that begins the record itself.
func asIs(_ persist.Journal, rec persist.Record) persist.Record { return rec }

// calls returns the journal's methods that send a statement to the database, by name, for tests that break the connection during each. Each has three steps:
// before prepares a record, run makes the call, and after checks the record.
func calls() map[string]call {
	all := changes()
	maps.Copy(all, passes())
	maps.Copy(all, reads())
	return all
}

// at returns the check of a call's result: it reports whether the record was read without an error, and has this revision and state.
func at(revision uint64, state persist.State) func(persist.Record, error) bool {
	return func(now persist.Record, err error) bool {
		return err == nil && now.Revision == revision && now.State == state
	}
}

// changes returns the calls that change one record, for tests that break the connection during each. Each has three steps: before prepares the record, run
// makes the call, and after checks the record.
func changes() map[string]call {
	ctx := context.Background()
	return map[string]call{
		"Begin": {asIs, func(j persist.Journal, rec persist.Record) error {
			got, created, err := j.Begin(ctx, rec)
			if err == nil && (!created || got.Revision != 1) {
				err = fmt.Errorf("created %t at revision %d", created, got.Revision)
			}
			return err
		}, at(1, persist.StatePending)},
		"Update": {begun, func(j persist.Journal, rec persist.Record) error {
			rec.Attempts = 5
			got, err := j.Update(ctx, rec)
			if err == nil && got.Revision != 2 {
				err = fmt.Errorf("revision %d", got.Revision)
			}
			return err
		}, at(2, persist.StatePending)},
		"Finish": {begun, func(j persist.Journal, rec persist.Record) error { return j.Finish(ctx, Finished(rec)) }, at(2, persist.StateConfirmed)},
		"Forget": {begun, func(j persist.Journal, rec persist.Record) error { return j.Forget(ctx, rec) },
			func(_ persist.Record, err error) bool { return errors.Is(err, persist.ErrNotFound) }},
		"MarkReported": {finishedIn, func(j persist.Journal, rec persist.Record) error { return j.MarkReported(ctx, rec.ID) },
			func(now persist.Record, err error) bool { return err == nil && !now.Unreported && now.Revision == 3 }},
	}
}

// passes returns the calls that change all records that they find, for tests that break the connection during each. Each has three steps: before prepares a
// record (by begun, leased or finishedIn), run makes the call, and after checks the record. A Renew keeps the revision; a Begin, a Finish and a Sweep
// each add one.
func passes() map[string]call {
	ctx := context.Background()
	return map[string]call{
		"Claim": {begun, func(j persist.Journal, rec persist.Record) error {
			return patiently(func() (done bool, err error) {
				// Records of a claim with a lost answer wait for the end of its lease.
				q := persist.Query{Account: rec.Account}
				got, _, err := j.(persist.Claimer).Claim(ctx, q, "w", 500*time.Millisecond, 5)
				return len(got) == 1, err
			})
		}, func(now persist.Record, err error) bool { return err == nil && now.LeaseOwner == "w" }},
		"Renew": {leased, func(j persist.Journal, rec persist.Record) error {
			return patiently(func() (done bool, err error) {
				held, _, err := j.(persist.Claimer).Renew(ctx, "w", time.Hour, []persist.ID{rec.ID})
				// A dead connection that the server has not yet noticed locks the record. Renew says so, and its caller renews again.
				if err != nil && strings.Contains(err.Error(), "other transactions have locked the records") {
					return false, nil
				}
				if err == nil && (len(held) != 1 || held[0] != rec.ID) {
					err = fmt.Errorf("it holds %v", held)
				}
				return true, err
			})
		}, func(now persist.Record, err error) bool {
			return err == nil && now.LeaseOwner == "w" && now.Revision == 1 && time.Until(now.LeaseUntil) > 30*time.Minute
		}},
		"Sweep": {finishedIn, func(j persist.Journal, rec persist.Record) error {
			return patiently(func() (done bool, err error) {
				if _, err := j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, Now: rec.Finished}); err != nil {
					return false, err
				}
				now, err := j.Get(ctx, rec.ID)
				return now.Swept, err
			})
		}, func(now persist.Record, err error) bool { return err == nil && now.Swept && now.Revision == 3 }},
	}
}

// reads returns the calls that change nothing, for tests that break the connection during each. Each has three steps: before prepares a record, run makes
// the call, and after checks the record.
func reads() map[string]call {
	ctx := context.Background()
	return map[string]call{
		"Get": {begun, func(j persist.Journal, rec persist.Record) error {
			got, err := j.Get(ctx, rec.ID)
			if err == nil && !bytes.Equal(got.Body, rec.Body) {
				err = fmt.Errorf("its body is %q", got.Body)
			}
			return err
		}, at(1, persist.StatePending)},
		"Now": {begun, func(j persist.Journal, rec persist.Record) error {
			now, err := j.(persist.Claimer).Now(ctx)
			if err == nil && now.Sub(rec.Created).Abs() > time.Hour {
				err = fmt.Errorf("it is %v", now)
			}
			return err
		}, at(1, persist.StatePending)},
		"List": {begun, func(j persist.Journal, rec persist.Record) error {
			n := 0
			for _, err := range j.List(ctx, persist.Query{Account: rec.Account}) {
				if err != nil {
					return err
				}
				n++
			}
			if n != 1 {
				return fmt.Errorf("it gave %d records", n)
			}
			return nil
		}, at(1, persist.StatePending)},
	}
}
