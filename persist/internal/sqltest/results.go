package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// MarkFunc marks a result as delivered in a transaction.
type MarkFunc func(ctx context.Context, tx *sql.Tx, id persist.ID, revision uint64) (bool, error)

// owed begins a record and ends it, or holds it, with a result that is owed to OnResult. held chooses the hold. It returns the record as the journal has it.
func owed(t testing.TB, j persist.Journal, key string, held bool) persist.Record {
	t.Helper()
	rec := Record("a", key)
	rec.Results = true
	rec = begun(j, rec)
	var err error
	if held {
		rec.State, rec.HoldReason, rec.OwedFrom = persist.StateHeld, persist.HoldExpired, rec.Created
		_, err = j.Update(t.Context(), rec)
	} else {
		rec = Finished(rec)
		rec.OwedFrom = rec.Finished
		err = j.Finish(t.Context(), rec)
	}
	if err == nil {
		rec, err = j.Get(t.Context(), rec.ID)
	}
	if err != nil || !rec.Owed() {
		t.Fatalf("owed %t, error %v", rec.Owed(), err)
	}
	return rec
}

// MarksInTransactions checks MarkDelivered in a transaction of the caller's own: twice, beside another transaction, after a rollback, with another revision,
// and after a commit. Once marked, a record that has ended can be swept, and a held one not. waited reports whether an error says that a wait for another
// transaction was too long.
func MarksInTransactions(t *testing.T, e Engine, waited func(error) bool) {
	ctx, orders := t.Context(), e.orders(t)
	j := e.Open(t, e.Address, 15*time.Second)
	results, _ := persist.As[persist.Results](j)
	mark := func(tx *sql.Tx, rec persist.Record, want bool, when string) {
		t.Helper()
		if got, err := e.MarkDelivered(ctx, tx, rec.ID, rec.Revision); got != want || err != nil {
			t.Errorf("%s: MarkDelivered gives %t, %v; want %t", when, got, err, want)
		}
		if _, err := tx.Exec("INSERT INTO " + orders + " VALUES ('" + rec.Key + ", " + when + "')"); err != nil {
			t.Errorf("%s: the transaction does not go on: %v", when, err)
		}
	}
	for _, held := range []bool{false, true} {
		rec := owed(t, j, fmt.Sprint("held ", held), held)
		tx := e.begin(t, sql.LevelDefault)
		mark(tx, rec, true, "first")
		mark(tx, rec, false, "again in the same transaction")
		other := e.begin(t, sql.LevelReadCommitted)
		if got, err := e.MarkDelivered(ctx, other, rec.ID, rec.Revision); got || !waited(err) {
			t.Errorf("beside an open transaction: MarkDelivered gives %t, %v; want the server's error that the wait is over", got, err)
		}
		if err := errors.Join(other.Rollback(), tx.Rollback()); err != nil {
			t.Fatal(err)
		}
		if now, err := j.Get(ctx, rec.ID); err != nil || !now.Owed() || now.Revision != rec.Revision {
			t.Errorf("after a rollback: owed %t at revision %d, error %v; want true at %d", now.Owed(), now.Revision, err, rec.Revision)
		}
		tx = e.begin(t, sql.LevelRepeatableRead)
		stale := rec
		stale.Revision++
		mark(tx, stale, false, "of another revision")
		mark(tx, rec, true, "after a rollback")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		now, err := j.Get(ctx, rec.ID)
		if want := rec.Revision + 1; err != nil || now.Owed() || now.Revision != want {
			t.Errorf("after a commit: owed %t at revision %d, error %v; want false at %d", now.Owed(), now.Revision, err, want)
		}
		if ok, err := results.MarkDelivered(ctx, rec.ID, rec.Revision); ok || err != nil {
			t.Errorf("the mark of the journal after that of a transaction: %t, %v; want false", ok, err)
		}
		if at, ever := now.SweepAt(); ever != !held || ever && !at.After(now.Finished) {
			t.Errorf("after a commit, the record is due for a sweep at %v, %t", at, ever)
		}
		if !held {
			sweepsBy(t, j, persist.Limits{Now: now.Finished.Add(1000 * time.Hour)}, 1)
		}
	}
}

// OwedByIndex checks that the index of owed results is enough for a listing of them, beside 2,500 ended records with nothing owed. multiply
// makes these of the only row. condition is that of owed records, index is the index that the plan must name, and analyze is the statement that brings the
// server's statistics up to date.
func OwedByIndex(t *testing.T, e Engine, multiply, condition, index, analyze string) {
	j := e.Open(t, e.Address, time.Minute)
	ended(t, j, Record("a", "ended"))
	for _, s := range []string{multiply, analyze} {
		if _, err := e.DB.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, most := range []int{0, 5} {
		for i := range most {
			owed(t, j, fmt.Sprint("owed ", i), false)
		}
		plan := e.plan(t, "SELECT intent FROM "+e.Records+" WHERE 1 = 1 AND (account = '' OR account >= '|' AND account < '}') AND "+condition+
			" AND (seq > 0 OR seq IS NULL) ORDER BY seq LIMIT 256")
		if !strings.Contains(plan, index) {
			t.Errorf("with %d owed results the plan is\n%s\nwant the index %s", most, plan, index)
		}
	}
	sweepable := 0
	if err := e.DB.QueryRow("SELECT COUNT(*) FROM " + e.Records + " WHERE sweep_at > 0").Scan(&sweepable); err != nil || sweepable != 2501 {
		t.Errorf("a sweep finds %d records in its index, error %v; want 2501, without the owed ones", sweepable, err)
	}
}

// plan returns the database's plan for a query (EXPLAIN) as a text.
func (e Engine) plan(t testing.TB, query string) (text string) {
	t.Helper()
	rows, err := e.DB.Query("EXPLAIN " + query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, _ := rows.Columns()
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.NullString)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if columns[i] != "possible_keys" { // MariaDB: the indexes that it might have used
				text += v.(*sql.NullString).String + " "
			}
		}
		text += "\n"
	}
	return text
}

// told is the calls of OnResult in several clients.
type told struct {
	mu      sync.Mutex
	running int
	most    int // at once
	states  []string
	first   chan struct{} // closed in the first call
	wait    time.Duration // of the first call
}

// onResult is a Config.OnResult that notes the states handed to it, and the largest number of simultaneous calls. Its first call takes the time h.wait, so that
// other changes can come in between; it closes h.first when it begins.
func (h *told) onResult(_ context.Context, rec persist.Record) error {
	h.mu.Lock()
	h.running++
	h.most = max(h.most, h.running)
	h.states = append(h.states, rec.State.String())
	first := len(h.states) == 1
	h.mu.Unlock()
	if first {
		close(h.first)
		time.Sleep(h.wait)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	return nil
}

// DeliversInOrder has two processes on one journal, and a hold that is settled while it is handed to OnResult: each state is delivered once,
// and the end after the hold.
func DeliversInOrder(t *testing.T, e Engine) {
	h := &told{first: make(chan struct{}), wait: 2 * time.Second}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var runs sync.WaitGroup
	defer runs.Wait()
	defer stop()
	var clients []*oncehttp.Client
	var journals []persist.Journal
	for range 2 {
		j := e.Open(t, e.Address, 15*time.Second)
		client, err := oncehttp.New(oncehttp.Config{Journal: j, Account: "a", Origins: Loopback(), OnResult: h.onResult})
		if err != nil {
			t.Fatal(err)
		}
		clients, journals = append(clients, client), append(journals, j)
		runs.Go(func() { _ = client.Run(ctx) })
	}
	rec := owed(t, journals[0], "k", true)
	<-h.first
	if err := clients[1].Settle(ctx, oncehttp.Key(rec.Key), oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
		t.Fatal(err)
	}
	for ; rec.Owed() || !rec.State.Final(); time.Sleep(20 * time.Millisecond) {
		var err error
		if rec, err = journals[0].Get(ctx, rec.ID); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second) // for a call too many
	h.mu.Lock()
	defer h.mu.Unlock()
	if want := []string{"held", "settled"}; !slices.Equal(h.states, want) || h.most != 1 {
		t.Errorf("OnResult got %s, %d at once; want %s, 1 at once", strings.Join(h.states, ", "), h.most, strings.Join(want, ", "))
	}
}

// ResultOfDo checks that a Do marks the result that it returns to its caller as delivered, also if the caller has the answer before the record says so. "again"
// makes its call twice: the second answer comes from the record.
func ResultOfDo(t *testing.T, e Engine) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "refused") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = w.Write([]byte(`{"error":"declined"}`))
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	client, err := oncehttp.New(oncehttp.Config{Journal: e.Open(t, e.Address, 15*time.Second), Origins: Loopback(), OnResult: func(context.Context, persist.Record) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for _, key := range []string{"confirmed", "refused", "again"} {
		for range 2 {
			req, err := http.NewRequest(http.MethodPost, server.URL+"/"+key, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.DoKey(req, oncehttp.Key(key))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if key != "again" {
				break
			}
		}
		rec, err := client.Lookup(t.Context(), oncehttp.Key(key))
		for end := time.Now().Add(10 * time.Second); err == nil && (!rec.State.Final() || rec.Owed()) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			rec, err = client.Lookup(t.Context(), oncehttp.Key(key))
		}
		if err != nil || !rec.State.Final() || rec.Owed() {
			t.Errorf("%s: after 10 s it is %v, owed %t, error %v; want final and not owed", key, rec.State, rec.Owed(), err)
		}
	}
}
