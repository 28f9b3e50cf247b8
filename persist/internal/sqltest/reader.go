package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Reader checks a journal that is opened for reading, over records of which many have no number yet: each is listed once, also
// where another process numbers them meanwhile; and nothing is written. Records begun in a caller's own transaction (e.Begin) have no number at first; a
// listing of an ordinary journal gives them one.
func Reader(t *testing.T, e Engine) {
	const n = 600 // more than two pages
	ctx, j, reader := t.Context(), e.Open(t, e.Address, 15*time.Second), e.Reader(t)
	numbered := begun(j, Record("a", "numbered"))
	maker := e.begin(t, sql.LevelReadCommitted)
	for i := range n {
		if _, created, err := e.Begin(ctx, maker, Record("a", fmt.Sprint(i))); err != nil || !created {
			t.Fatalf("Begin: created %t, error %v", created, err)
		}
	}
	if err := maker.Commit(); err != nil {
		t.Fatal(err)
	}
	listed := func(q persist.Query, during func()) map[string]int {
		times := map[string]int{}
		for rec, err := range reader.List(ctx, q) {
			if err != nil {
				t.Fatalf("List of %+v: %v", q, err)
			}
			if times[rec.Key]++; len(times) == 1 && during != nil {
				during()
			}
		}
		return times
	}
	for name, q := range map[string]persist.Query{
		"all": {AllAccounts: true}, "an account": {Account: "a"}, "what is pending": {Account: "a", States: []persist.State{persist.StatePending}},
		"what is due": {Account: "a", DueBy: time.Now().Add(time.Hour)},
	} {
		if got := listed(q, nil); len(got) != n+1 {
			t.Errorf("List of %s: %d records, want %d", name, len(got), n+1)
		}
	}
	if got := listed(persist.Query{Account: "a", Key: "7"}, nil); len(got) != 1 {
		t.Errorf("List of a key: %v", got)
	}
	if rec, err := reader.Get(ctx, numbered.ID); err != nil || rec.Seq != numbered.Seq {
		t.Errorf("Get: %d, %v", rec.Seq, err)
	}
	refused(t, reader, numbered)
	if n := unnumberedRows(t, e); n == 0 {
		t.Error("it has numbered records")
	}
	for key, times := range listed(persist.Query{Account: "a"}, func() {
		for range j.List(ctx, persist.Query{Account: "a"}) { // which numbers them all
			break
		}
	}) {
		if times != 1 {
			t.Errorf("%s is listed %d times", key, times)
		}
	}
	if got := listed(persist.Query{Account: "a"}, nil); len(got) != n+1 {
		t.Errorf("List of what is numbered: %d records, want %d", len(got), n+1)
	}
}

// unnumberedRows returns the number of rows without a Seq.
func unnumberedRows(t *testing.T, e Engine) (n int) {
	t.Helper()
	if err := e.DB.QueryRow("SELECT COUNT(*) FROM " + e.Records + " WHERE seq IS NULL").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// refused checks that a journal opened for reading refuses every call that would write, with ErrReadOnly, and not as uncertain: nothing was sent.
func refused(t *testing.T, reader persist.Journal, rec persist.Record) {
	t.Helper()
	ctx := t.Context()
	claimer, _ := persist.As[persist.Claimer](reader)
	_, _, begin := reader.Begin(ctx, Record("a", "new"))
	_, update := reader.Update(ctx, rec)
	_, _, claim := claimer.Claim(ctx, persist.Query{AllAccounts: true}, "w", time.Minute, 1)
	_, _, renew := claimer.Renew(ctx, "w", time.Minute, []persist.ID{rec.ID})
	for name, err := range map[string]error{
		"Begin": begin, "Update": update, "Finish": reader.Finish(ctx, Finished(rec)), "Forget": reader.Forget(ctx, rec),
		"MarkReported": reader.MarkReported(ctx, rec.ID), "Claim": claim, "Renew": renew,
	} {
		if !errors.Is(err, persist.ErrReadOnly) || errors.Is(err, persist.ErrUncertain) {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
}
