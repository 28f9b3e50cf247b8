package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// OpenTransaction makes calls that cannot begin, such as one with an ended context, under a key that another program has begun in an open
// transaction. While this is open, the operation may still be sent, so no call may say "nothing is pending". After a rollback each call says so, and
// after a commit it reports the operation's state. The engine waits for other transactions for one second.
func OpenTransaction(t *testing.T, e Engine) {
	api := &effects{n: map[string]int{}}
	web := httptest.NewServer(api)
	defer web.Close()
	j := e.Open(t, e.Address, 30*time.Second)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	calls := callsThatCannotBegin(t, client, web.URL)
	check := func(when string, key oncehttp.Key, want error) {
		t.Helper()
		for name, call := range calls {
			start := time.Now()
			err := call(key)
			var said *oncehttp.Error
			if !errors.As(err, &said) || !errors.Is(err, want) || said.Key != key {
				t.Errorf("%s, %s: %v, want %v and the key", when, name, err, want)
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("%s, %s: it took %v", when, name, took)
			}
		}
	}
	for _, commits := range []bool{false, true} {
		key := oncehttp.Key(Name())
		rec, err := client.Prepare(post(t.Context(), t, web.URL), key)
		if err != nil {
			t.Fatal(err)
		}
		check("before", key, oncehttp.ErrNoEffect)
		tx := e.begin(t, sql.LevelReadCommitted)
		if _, created, err := e.Begin(t.Context(), tx, rec); err != nil || !created {
			t.Fatal(created, err)
		}
		check("while the transaction is open", key, oncehttp.ErrOutcomeUnknown)
		finish, want := tx.Rollback, oncehttp.ErrNoEffect
		if commits {
			finish, want = tx.Commit, oncehttp.ErrOutcomeUnknown
		}
		if err := finish(); err != nil {
			t.Fatal(err)
		}
		check("after it", key, want)
		_, err = j.Get(t.Context(), rec.ID)
		if commits != (err == nil) || !commits && !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("a look has left or lost a record: %v", err)
		}
	}
	if n := api.of(""); n != 0 {
		t.Errorf("%d sends, want none", n)
	}
}

// callsThatCannotBegin returns calls with an ended context or with a request that is too large: they fail before they begin a record. So what they say of the
// key must come from a look into the journal.
func callsThatCannotBegin(t *testing.T, client *oncehttp.Client, url string) map[string]func(oncehttp.Key) error {
	ended, end := context.WithCancel(t.Context())
	end()
	late := func() *http.Request { return post(ended, t, url) }
	large := func() *http.Request {
		req := post(t.Context(), t, url)
		req.ContentLength = 1 << 40
		return req
	}
	return map[string]func(oncehttp.Key) error{
		"Do with an ended context":      func(k oncehttp.Key) error { _, err := client.DoKey(late(), k); return err },
		"Enqueue with an ended context": func(k oncehttp.Key) error { return client.Enqueue(late(), k) },
		"Do of too large a request":     func(k oncehttp.Key) error { _, err := client.DoKey(large(), k); return err },
		"Enqueue of too large a one":    func(k oncehttp.Key) error { return client.Enqueue(large(), k) },
		"Prepare of too large a one":    func(k oncehttp.Key) error { _, err := client.Prepare(large(), k); return err },
	}
}

// post returns a small request.
func post(ctx context.Context, t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return req
}
