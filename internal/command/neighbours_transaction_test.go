package command_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// journalAt opens the journal at a URL of commandtest.OnServers.
func journalAt(t *testing.T, at string) persist.Journal {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	var j persist.Journal
	if u.Scheme == "mysql" {
		j, err = mysql.Open(t.Context(), at, mysql.Options{})
	} else {
		schema := u.Query().Get("schema")
		u.RawQuery = ""
		j, err = postgres.Open(t.Context(), u.String(), postgres.Options{Schema: schema})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// A call that cannot begin says nothing of "no effect" while somebody has its key in an open transaction, and says it once that
// was rolled back.
func TestNeighbourOpenTransaction(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, at string) {
		const target = "http://127.0.0.1:1/payments"
		client, err := oncehttp.New(oncehttp.Config{Journal: journalAt(t, at), Origins: []string{"http://127.0.0.1:*"}, Operation: oncehttp.Writes})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		post := func(ctx context.Context, body string) *http.Request {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "k")
			return req
		}
		calls := map[string]func() error{
			"Do, an ended context":        func() error { _, err := client.Do(post(ended, "{}")); return err },
			"Do, a deadline":              func() error { _, err := client.Do(post(late, "{}")); return err },
			"Transport, an ended context": func() error { _, err := client.Transport().RoundTrip(post(ended, "{}")); return err },
			"Enqueue, an ended context":   func() error { return client.Enqueue(post(ended, "{}"), "") },
			"Do, too large":               func() error { _, err := client.Do(post(t.Context(), strings.Repeat(" ", 11<<20))); return err },
			"Do, headers too large": func() error {
				req := post(t.Context(), "{}")
				req.Header.Set("X-Large", strings.Repeat("x", 70<<10))
				_, err := client.Do(req)
				return err
			},
			"Do, two keys": func() error {
				_, err := client.DoKey(post(t.Context(), "{}"), "other")
				return err
			},
		}
		tx := commandtest.BeginOpen(t, at, target, "k")
		done := make(chan struct{}, len(calls))
		for name, call := range calls {
			go func() {
				defer func() { done <- struct{}{} }()
				if err := call(); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) {
					t.Errorf("%s, beside an open transaction: %v", name, err)
				}
			}()
		}
		for range calls {
			<-done
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("%s, after it was rolled back: %v", name, err)
			}
		}
	})
}
