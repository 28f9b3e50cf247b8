package sqltest

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Locked tests the renewal of leases while another transaction locks records: one record by a Begin of its key ("again"), as after a lost commit, and one by
// another lock. Free records are renewed, locked ones are not lost, and those of another process ("lost") are not renewed. An engine may renew "again" or not:
// not every engine locks a row that a Begin finds. Renew waits about two seconds for locked rows, and then returns an error.
func Locked(t *testing.T, e Engine) {
	ctx, j := t.Context(), e.Open(t, e.Address, 15*time.Second)
	claimer := j.(persist.Claimer)
	now, err := claimer.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	old := now.Add(time.Minute)
	var ids []persist.ID
	records := map[string]persist.Record{}
	for key, owner := range map[string]string{"again": "w", "locked": "w", "free": "w", "lost": "other"} {
		rec := Record("a", key)
		rec.LeaseOwner, rec.LeaseUntil = owner, old
		records[key] = begun(j, rec)
		ids = append(ids, rec.ID)
	}
	holder := e.begin(t, sql.LevelReadCommitted)
	if _, created, err := e.Begin(ctx, holder, records["again"]); err != nil || created {
		t.Fatalf("Begin of what exists: created %t, error %v", created, err)
	}
	if _, err := holder.Exec("SELECT id FROM " + e.Records + " WHERE seq = " + fmt.Sprint(records["locked"].Seq) + " FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	held, now, err := claimer.Renew(ctx, "w", time.Hour, ids)
	if took := time.Since(start); err == nil || took > 10*time.Second {
		t.Errorf("Renew of records that are locked: error %v after %v, want one after about two seconds", err, took)
	}
	for key, rec := range records {
		is := slices.Contains(held, rec.ID)
		if key == "free" && !is || (key == "locked" || key == "lost") && is {
			t.Errorf("Renew says that %s is held: %t", key, is)
		}
		until := old
		if is {
			until = now.Add(time.Hour)
		}
		lastsUntil(t, j, rec, until)
	}
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	if held, _, err = claimer.Renew(ctx, "w", time.Hour, ids); err != nil || len(held) != 3 || slices.Contains(held, records["lost"].ID) {
		t.Errorf("Renew after the transaction: %v, error %v; want all but the one that another has", held, err)
	}
}

// lastsUntil checks the end of a record's lease.
func lastsUntil(t *testing.T, j persist.Journal, rec persist.Record, want time.Time) {
	t.Helper()
	got, err := j.Get(t.Context(), rec.ID)
	if err != nil || !got.LeaseUntil.Equal(want) {
		t.Errorf("the lease of %s lasts until %v, want %v, error %v", rec.Key, got.LeaseUntil, want, err)
	}
}

// LockedShortly lets another transaction lock a record for a moment. Its lease must be renewed with those of the others: the lock ends once the free record is
// renewed, and Renew tries the locked one again.
func LockedShortly(t *testing.T, e Engine) {
	ctx, j := t.Context(), e.Open(t, e.Address, 15*time.Second)
	var ids []persist.ID
	for _, key := range []string{"locked", "free"} {
		rec := Record("a", key)
		rec.LeaseOwner, rec.LeaseUntil = "w", rec.Created.Add(time.Minute)
		ids = append(ids, begun(j, rec).ID)
	}
	holder := e.begin(t, sql.LevelReadCommitted)
	if _, err := holder.Exec("SELECT id FROM " + e.Records + " ORDER BY seq LIMIT 1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	renewed := make(chan error, 1)
	go func() {
		held, _, err := j.(persist.Claimer).Renew(ctx, "w", time.Hour, ids)
		if err == nil && len(held) != len(ids) {
			err = fmt.Errorf("it holds %v", held)
		}
		renewed <- err
	}()
	for start, got := time.Now(), (persist.Record{}); time.Until(got.LeaseUntil) < 30*time.Minute; {
		var err error
		if got, err = j.Get(ctx, ids[1]); err != nil || time.Since(start) > 20*time.Second {
			t.Fatalf("what is free lasts until %v, error %v; want that it is renewed", got.LeaseUntil, err)
		}
	}
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Errorf("Renew beside a transaction that ends at once: %v", err)
	}
}
