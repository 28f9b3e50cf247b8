package sqltest

import (
	"database/sql"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Numbers lets a Begin wait for a lock after it was given its number (Seq, the order of listings), while others get higher numbers and commit. So the first
// record becomes visible after higher numbers. A listing that goes up to those numbers must not miss the first record when it comes.
func Numbers(t *testing.T, e Engine) {
	j := e.Open(t, e.Address, 30*time.Second)
	account := Name()
	for range 10 { // on a busy machine the wait may be over before the key is free
		if numbers(t, e, j, account) {
			return
		}
		account = Name()
	}
	t.Error("no Begin lived through its wait")
}

// numbers makes one try of Numbers. It returns false if the waiting Begin failed, since on a slow machine its wait was over before the key was free. A reader
// who goes on after the last number that it met must meet both records.
func numbers(t *testing.T, e Engine, j persist.Journal, account string) bool {
	t.Helper()
	holder := e.begin(t, sql.LevelReadCommitted)
	if _, _, err := e.Begin(t.Context(), holder, Record(account, "held")); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, _, err := j.Begin(t.Context(), Record(account, "held"))
		waited <- err
	}()
	time.Sleep(100 * time.Millisecond) // until the waiting Begin has its number, lower than the next
	begun(j, Record(account, "later"))
	followed := make(chan []persist.Record, 1)
	go func() { followed <- follow(t, j, account, 0) }()
	time.Sleep(100 * time.Millisecond)
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	err := <-waited
	met := <-followed
	if err != nil {
		return false
	}
	last := uint64(0)
	if len(met) > 0 {
		last = met[len(met)-1].Seq
	}
	seen := map[string]int{}
	for _, rec := range append(met, follow(t, j, account, last)...) {
		seen[rec.Key]++
	}
	if seen["held"] != 1 || seen["later"] != 1 {
		t.Errorf("who follows by number has met %v, want each of two once", seen)
	}
	return true
}

// follow returns the records of an account with numbers above after.
func follow(t *testing.T, j persist.Journal, account string, after uint64) (all []persist.Record) {
	for rec, err := range j.List(t.Context(), persist.Query{Account: account, After: after}) {
		if err != nil {
			t.Errorf("List: %v", err)
			return all
		}
		all = append(all, rec)
	}
	return all
}
