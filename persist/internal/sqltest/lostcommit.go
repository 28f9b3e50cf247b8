package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// LostCommit breaks a program's transaction at each of its statements, the commit included, and repeats it as the documents say: there
// is one order, one operation and one effect. In half of the cases (sent) the operations are sent before the repeat. skip exchanges with the server pass before
// the fault, until a whole transaction passes without it. connect makes a pool as Engine.DB through an address, whose statements end soon.
func LostCommit(t *testing.T, e Engine, connect func(t testing.TB, address string) *sql.DB) {
	orders, api := e.orders(t), &effects{n: map[string]int{}}
	server := httptest.NewServer(api)
	defer server.Close()
	j := e.Open(t, e.Address, time.Minute)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	resume := func() {
		for rec, err := range client.Resume(context.Background()) {
			if err != nil {
				t.Errorf("%s: %v", rec.Key, err)
			}
		}
	}
	var mu sync.Mutex
	var placed []order
	t.Run("faults", func(t *testing.T) {
		for name, fault := range Faults() {
			for _, sent := range []bool{false, true} { // before the transaction is repeated
				t.Run(fmt.Sprintf("%s, sent %t", name, sent), func(t *testing.T) {
					t.Parallel()
					proxy := NewProxy(t, e.Address)
					db := connect(t, proxy.Address())
					for skip, struck := 0, true; struck; skip++ {
						key := strings.ReplaceAll(fmt.Sprintf("%s-%d-%t", name, skip, sent), " ", "-")
						o := order{db: db, orders: orders, begin: e.Begin, target: server.URL, key: key}
						struck = o.placeBroken(t, proxy, fault, skip)
						if sent {
							resume()
						}
						if err := o.placeAtLast(t.Context()); err != nil {
							t.Errorf("%s: %v", o.key, err)
						}
						mu.Lock()
						placed = append(placed, o)
						mu.Unlock()
					}
				})
			}
		}
	})
	resume()
	for _, o := range placed {
		o.check(t, e, j, api)
	}
}

// placeBroken places the order once, with a fault of the connection after skip exchanges. It reports whether the fault came about, or may have on a
// busy machine.
func (o order) placeBroken(t *testing.T, proxy *Proxy, fault Fault, skip int) (struck bool) {
	t.Helper()
	if err := o.db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Arm(fault, skip)
	err := o.place(t.Context(), 500*time.Millisecond)
	return proxy.Struck() || err != nil
}

// order is a program that takes one order, and has the payment sent.
type order struct {
	db                  *sql.DB
	orders, target, key string
	begin               BeginFunc
}

// place writes the order and its operation in one transaction, as the documentation shows it. It may be called again after any error but persist.ErrTaken
// (another request has the key).
func (o order) place(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client, err := oncehttp.New(oncehttp.Config{Journal: memory.New()}) // Prepare writes nothing
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.target, strings.NewReader(`{"order":"`+o.key+`"}`))
	if err != nil {
		return err
	}
	payment, err := client.Prepare(req, oncehttp.Key(o.key))
	if err != nil {
		return err
	}
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	existing, created, err := o.begin(ctx, tx, payment)
	switch {
	case err != nil:
		return err
	case !created:
		return existing.CheckRepeat(&payment) // nil: an earlier commit stands, with the order
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+o.orders+" VALUES ('"+o.key+"')"); err != nil {
		return err
	}
	return tx.Commit()
}

// placeAtLast repeats the transaction until it succeeds. After 20 seconds it returns the last error, and at once one that says that the key is taken.
func (o order) placeAtLast(ctx context.Context) error {
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := o.place(ctx, time.Second)
		if err == nil || errors.Is(err, persist.ErrTaken) || time.Since(start) > 20*time.Second {
			return err
		}
	}
}

// check counts the rows, operations and effects of the order: there must be one of each.
func (o order) check(t *testing.T, e Engine, j persist.Journal, api *effects) {
	t.Helper()
	var rows, operations int
	if err := e.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+o.orders+" WHERE id = '"+o.key+"'").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	for rec, err := range j.List(t.Context(), persist.Query{Key: o.key}) {
		if operations++; err != nil || rec.State != persist.StateConfirmed {
			t.Errorf("%s: it is %v, error %v; want it confirmed", o.key, rec.State, err)
		}
	}
	if effects := api.of(o.key); rows != 1 || operations != 1 || effects != 1 {
		t.Errorf("%s: %d orders, %d operations and %d effects; want one of each", o.key, rows, operations, effects)
	}
}
