package sqltest

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Misnumbered tests records with wrong numbers, which a user with the right to update the column seq can write: no number, the largest one, and one number for
// many. A page of a listing has 256 records. Each listing must still have each record once, and a claim must take them all.
func Misnumbered(t *testing.T, e Engine) {
	const n = 600 // more than two pages
	ctx, j, reader := t.Context(), e.Open(t, e.Address, 30*time.Second), e.Reader(t)
	claimer, ok := persist.As[persist.Claimer](j)
	if !ok {
		t.Fatal("no leases")
	}
	for i := range n {
		begun(j, Record("a", fmt.Sprint(i)))
	}
	var numbers []uint64
	for rec, err := range j.List(ctx, persist.Query{Account: "a"}) {
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, rec.Seq)
	}
	listed := func(what string) {
		t.Helper()
		for name, j := range map[string]persist.Journal{"a journal": j, "a journal opened for reading": reader} {
			seen := map[string]int{}
			for rec, err := range j.List(ctx, persist.Query{Account: "a"}) {
				if err != nil {
					t.Fatalf("%s: List of %s: %v", what, name, err)
				}
				seen[rec.Key]++
			}
			twice := 0
			for _, times := range seen {
				twice += times - 1
			}
			if len(seen) != n || twice != 0 {
				t.Errorf("%s: List of %s has %d of %d records, and %d twice", what, name, len(seen), n, twice)
			}
		}
	}
	set := func(what, number string, first, last int) {
		t.Helper()
		query := fmt.Sprintf("UPDATE %s SET seq = %s WHERE seq >= %d AND seq <= %d", e.Records, number, numbers[first], numbers[last])
		if res, err := e.DB.ExecContext(ctx, query); err != nil {
			t.Fatal(err)
		} else if changed, err := res.RowsAffected(); err != nil || changed == 0 {
			t.Fatalf("%s: %d rows, %v", what, changed, err)
		}
		listed(what)
	}
	set("the number of another one, across the end of a page", fmt.Sprint(numbers[255]), 255, 256)
	set("one number for more than a page", fmt.Sprint(numbers[100]), 100, 500)
	set("no number", "NULL", 599, 599)
	set("the largest number", fmt.Sprint(int64(math.MaxInt64)), 50, 60)
	claimed, _, err := claimer.Claim(ctx, persist.Query{Account: "a"}, "me", time.Hour, n)
	if err != nil || len(claimed) != n {
		t.Errorf("claimed %d of %d: %v", len(claimed), n, err)
	}
}

// Renumbered gives an operation another number while it is being sent. The number is part of a record's identity: what comes of the send cannot be recorded,
// and the operation is sent again under its key once the lease is over.
func Renumbered(t *testing.T, e Engine) {
	var mu sync.Mutex
	var keys []string
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if keys = append(keys, req.Header.Get("Idempotency-Key")); len(keys) == 1 {
			if _, err := e.DB.Exec("UPDATE " + e.Records + " SET seq = seq + 100"); err != nil {
				t.Error(err)
			}
		}
		rw.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(api.Close)
	c, err := oncehttp.New(oncehttp.Config{Journal: e.Open(t, e.Address, 15*time.Second), Origins: Loopback(), Lease: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Enqueue(post(t.Context(), t, api.URL), "k"); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(100 * time.Millisecond) { // a poll with a bound
		for _, err := range c.Resume(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
		mu.Lock()
		keys := slices.Clone(keys)
		mu.Unlock()
		if o, err := c.Lookup(t.Context(), "k"); err != nil || o.State == persist.StateConfirmed {
			if err != nil || len(keys) != 2 || keys[0] == "" || keys[1] != keys[0] {
				t.Errorf("it was sent with the keys %q, error %v; want one key, twice", keys, err)
			}
			return
		}
	}
	t.Error("it did not end")
}
