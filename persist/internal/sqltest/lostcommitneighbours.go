package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// repeats is a program with a documented transaction. This was committed, with a lost answer, and is repeated.
type repeats struct {
	*testing.T
	e      Engine
	j      persist.Journal
	client *oncehttp.Client
	orders string // the table
	key    string
	url    string
	sends  atomic.Int32
	status atomic.Int32
}

// newRepeats returns a program that repeats its transaction, with an API of its own, which answers with r.status and counts its requests. key is that of its
// order, and orders is the table.
func newRepeats(t *testing.T, e Engine, j persist.Journal, orders, key string) *repeats {
	t.Helper()
	r := &repeats{T: t, e: e, j: j, orders: orders, key: key}
	r.status.Store(http.StatusCreated)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		r.sends.Add(1)
		w.WriteHeader(int(r.status.Load()))
		_, _ = io.WriteString(w, "said")
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Retry: oncehttp.Policy{MaxAttempts: 1}, Origins: []string{"http://127.0.0.1:*"}, Authorize: func(*http.Request) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	r.client = client
	return r
}

// as is the customer of the order, and the differences in it.
type as struct {
	account, token, body string
}

// request returns the request for the payment of the order, with the account, the addition to its body and the token (its credentials) that a says.
func (r *repeats) request(a as) *http.Request {
	r.Helper()
	ctx := context.Background()
	if a.account != "" {
		ctx = oncehttp.ContextWithAccount(ctx, a.account)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(`{"order":"`+r.key+a.body+`"}`))
	if err != nil {
		r.Fatal(err)
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	return req
}

// place begins the operation and writes the order in one transaction, as the documentation shows it. It may be called again. level is the isolation of the
// transaction.
func (r *repeats) place(a as, level sql.IsolationLevel) error {
	r.Helper()
	tx := r.e.begin(r.T, level)
	defer func() { _ = tx.Rollback() }()
	return r.placeIn(r.Context(), tx, a)
}

// placeIn does the part of place inside the transaction tx: it begins the operation, writes the order and commits. An existing operation is compared with the
// payment: nil if it is the same, so the order is there.
func (r *repeats) placeIn(ctx context.Context, tx *sql.Tx, a as) error {
	r.Helper()
	payment, err := r.client.Prepare(r.request(a), oncehttp.Key(r.key))
	if err != nil {
		return err
	}
	existing, created, err := r.e.Begin(ctx, tx, payment)
	switch {
	case err != nil:
		if !errors.Is(err, persist.ErrOutcomeUnknown) || errors.Is(err, persist.ErrTaken) {
			r.Errorf("Begin: %v, want ErrOutcomeUnknown", err)
		}
		return err
	case !created:
		return existing.CheckRepeat(&payment)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+r.orders+" VALUES ('"+r.key+"')"); err != nil {
		return err
	}
	return tx.Commit()
}

// committed places the order; its answer is lost.
func (r *repeats) committed(a as) {
	r.Helper()
	if err := r.place(a, sql.LevelDefault); err != nil {
		r.Fatal(err)
	}
}

// sent sends the operation of the account, and waits until its end is recorded.
func (r *repeats) sent(a as) {
	r.Helper()
	resp, err := r.client.DoKey(r.request(a), oncehttp.Key(r.key))
	if err == nil {
		_ = resp.Body.Close()
	}
	if err := r.client.Flush(r.Context()); err != nil {
		r.Error(err)
	}
}

// settled settles the operation with this effect, as an operator does.
func (r *repeats) settled(effect persist.Effect) {
	r.Helper()
	rec, err := r.client.Lookup(r.Context(), oncehttp.Key(r.key))
	if err == nil {
		err = r.client.Settle(r.Context(), oncehttp.Key(r.key), oncehttp.Resolution{Effect: effect}, oncehttp.AsSeen(rec))
	}
	if err != nil {
		r.Fatal(err)
	}
}

// told checks err, the result of the repeated transaction. verdict is the error that it must match, one of ErrNoEffect, ErrFinal and ErrOutcomeUnknown, with
// ErrTaken (the key has another operation, or one that will not be sent) and without the other two; nil: the transaction must succeed.
func (r *repeats) told(err, verdict error) {
	r.Helper()
	if verdict == nil && err != nil || verdict != nil && (!errors.Is(err, verdict) || !errors.Is(err, persist.ErrTaken)) {
		r.Errorf("repeated: %v, want %v", err, verdict)
	}
	for _, other := range []error{persist.ErrNoEffect, persist.ErrFinal, persist.ErrOutcomeUnknown} {
		if verdict != nil && other != verdict && errors.Is(err, other) {
			r.Errorf("repeated: %v matches %v, too", err, other)
		}
	}
}

// repeatRow is the fate of an order after its commit, and the counts at the end.
type repeatRow struct {
	before as // the first customer
	act    func(r *repeats)
	repeat as
	told   error // by the repetitions
	orders int
	sends  int // once everything is sent
}

// repeatRows returns the cases of LostCommitNeighbours in which a commit took effect, but its answer was lost. Each row has the first operation, an event
// before the program repeats it, the repeated operation, and the expected error (nil: it stands, with its order), number of orders and number of sends at the
// end, when the first operation is sent if it was not yet. The type as has the account, the token and an addition to the body of a request; status is what the
// API answers from then on.
func repeatRows() map[string]repeatRow {
	nothing := func(*repeats) {}
	return map[string]repeatRow{
		"as it was":           {as{}, nothing, as{}, nil, 1, 1},
		"sent":                {as{}, func(r *repeats) { r.sent(as{}) }, as{}, nil, 1, 1},
		"accepted":            {as{}, func(r *repeats) { r.status.Store(202); r.sent(as{}) }, as{}, nil, 1, 1},
		"refused":             {as{}, func(r *repeats) { r.status.Store(402); r.sent(as{}) }, as{}, persist.ErrFinal, 1, 1},
		"in doubt":            {as{}, func(r *repeats) { r.status.Store(500); r.sent(as{}); r.status.Store(201) }, as{}, nil, 1, 2},
		"settled as happened": {as{}, func(r *repeats) { r.settled(persist.EffectHappened) }, as{}, nil, 1, 0},
		"settled as absent":   {as{}, func(r *repeats) { r.settled(persist.EffectAbsent) }, as{}, persist.ErrOutcomeUnknown, 1, 0}, // a person may begin it anew
		"absent, as a call was told": {as{}, func(r *repeats) {
			r.settled(persist.EffectAbsent)
			r.sent(as{})
		}, as{}, persist.ErrNoEffect, 1, 0},
		"abandoned": {as{}, func(r *repeats) {
			if err := r.client.Abandon(r.Context(), oncehttp.Key(r.key)); err != nil {
				r.Error(err)
			}
		}, as{}, persist.ErrOutcomeUnknown, 1, 0},
		"other bytes":             {as{}, nothing, as{body: "-2"}, persist.ErrOutcomeUnknown, 1, 1},
		"other bytes, sent":       {as{}, func(r *repeats) { r.sent(as{}) }, as{body: "-2"}, persist.ErrFinal, 1, 1},
		"the same credentials":    {as{token: "alice"}, nothing, as{token: "alice"}, nil, 1, 1},
		"other credentials, sent": {as{token: "alice"}, func(r *repeats) { r.sent(as{token: "alice"}) }, as{token: "bob"}, persist.ErrOutcomeUnknown, 1, 1},
		"a Do has it": {as{}, func(r *repeats) {
			r.key += "-do"
			r.status.Store(500)
			r.sent(as{})
			r.status.Store(201)
		}, as{}, persist.ErrOutcomeUnknown, 0, 2},
	}
}

// LostCommitNeighbours tests the documented transaction after a commit with a lost answer: it is repeated, with the same and with other requests, and
// after each possible end of its operation. No second order, operation or effect may follow.
func LostCommitNeighbours(t *testing.T, e Engine) {
	orders := e.orders(t)
	j := e.Open(t, e.Address, time.Minute)
	rows := repeatRows()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			r := newRepeats(t, e, j, orders, strings.ReplaceAll(name, " ", "-"))
			r.committed(row.before)
			row.act(r)
			for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelRepeatableRead, sql.LevelSerializable} {
				r.told(r.place(row.repeat, level), row.told)
			}
			r.sent(row.before)
			r.ended(row.orders, row.sends)
		})
	}
	t.Run("another account", func(t *testing.T) {
		r := newRepeats(t, e, j, orders, "another-account")
		r.committed(as{})
		if err := r.place(as{account: "bob"}, sql.LevelDefault); err == nil || errors.Is(err, persist.ErrTaken) {
			t.Errorf("a second INSERT of the order: %v", err)
		}
		if _, err := j.Get(t.Context(), persist.ID{Account: "bob", Key: r.key}); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("%v, want nothing of a transaction that failed", err)
		}
		r.sent(as{})
		r.ended(1, 1)
	})
	for name, commit := range map[string]bool{"committed late": true, "rolled back late": false} {
		t.Run(name, func(t *testing.T) { lateEnd(newRepeats(t, e, j, orders, strings.ReplaceAll(name, " ", "-")), commit) })
	}
	t.Run("an older snapshot", func(t *testing.T) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			olderSnapshot(newRepeats(t, e, j, orders, strings.ReplaceAll("snapshot "+level.String(), " ", "-")), level)
		}
	})
}

// ended checks the numbers of orders and of sends.
func (r *repeats) ended(orders, sends int) {
	r.Helper()
	var n int
	if err := r.e.DB.QueryRow("SELECT COUNT(*) FROM " + r.orders + " WHERE id = '" + r.key + "'").Scan(&n); err != nil || n != orders {
		r.Errorf("%d orders, %v; want %d", n, err, orders)
	}
	if got := int(r.sends.Load()); got != sends {
		r.Errorf("%d sends, want %d", got, sends)
	}
}

// lateEnd is a program that repeats a transaction, as after a lost answer, while its first run is still open. Then it commits the first
// run, or rolls it back. Both must give one operation.
func lateEnd(r *repeats, commit bool) {
	first := r.e.begin(r.T, sql.LevelReadCommitted)
	payment, err := r.client.Prepare(r.request(as{}), oncehttp.Key(r.key))
	if err != nil {
		r.Fatal(err)
	}
	if _, created, err := r.e.Begin(r.Context(), first, payment); err != nil || !created {
		r.Fatal(created, err)
	}
	if _, err := first.Exec("INSERT INTO " + r.orders + " VALUES ('" + r.key + "')"); err != nil {
		r.Fatal(err)
	}
	second := r.e.begin(r.T, sql.LevelReadCommitted)
	repeated := make(chan error, 1)
	go func() { repeated <- r.placeIn(r.Context(), second, as{}) }()
	if commit {
		err = first.Commit()
	} else {
		err = first.Rollback()
	}
	if err != nil {
		r.Error(err)
	}
	r.told(<-repeated, nil)
	_ = second.Rollback()
	r.sent(as{})
	r.ended(1, 1)
}

// olderSnapshot repeats a transaction in one that has read before the first one's commit, so that at most levels it cannot see the order. The Begin must
// report the existing operation, or fail and report it the next time. Nothing may be inserted. The first read of a transaction, of any table, fixes what it
// sees.
func olderSnapshot(r *repeats, level sql.IsolationLevel) {
	second := r.e.begin(r.T, level)
	var n int
	if err := second.QueryRow("SELECT COUNT(*) FROM " + strings.TrimSuffix(r.e.Records, "record") + "version").Scan(&n); err != nil {
		r.Fatal(err)
	}
	r.committed(as{})
	if err := r.placeIn(r.Context(), second, as{}); errors.Is(err, persist.ErrTaken) {
		r.Errorf("%v: %v", level, err)
	}
	_ = second.Rollback()
	r.told(r.place(as{}, level), nil)
	r.sent(as{})
	r.ended(1, 1)
}
