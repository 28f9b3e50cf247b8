package postgres_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// TestPgBouncerModes: through PgBouncer in session mode a client enqueues, claims, sends, and hears what others enqueue. In statement mode, which
// allows no transaction of several statements, it claims and sends nothing, and says so.
func TestPgBouncerModes(t *testing.T) {
	t.Parallel()
	db := admin(t)
	for mode, works := range map[string]bool{"session": true, "statement": false} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			sends := 0
			api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sends++ }))
			t.Cleanup(api.Close)
			opts := migrated(t, db)
			opts.MaxConns, opts.CallTimeout = 2, 20*time.Second // of the five of the pooler
			if !works {
				opts.CallTimeout = 2 * time.Second // it is waited for
			}
			j := open(t, bouncerIn(t, mode), opts)
			client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: sqltest.Loopback()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			failed := client.Enqueue(req, "k")
			for _, err := range client.Resume(t.Context()) {
				if failed == nil {
					failed = err
				}
			}
			if (failed == nil) != works || (sends == 1) != works {
				t.Errorf("%d sends, error %v", sends, failed)
			}
			if works {
				heard := sqltest.Listening(t, j)
				sqltest.HeardWake(t, heard, "the beginning")
				open(t, server(t), postgres.Options{Schema: opts.Schema, MaxConns: 1, CallTimeout: time.Minute}).Notify()
				sqltest.HeardWake(t, heard, "a notification")
			}
		})
	}
}
