package postgres_test

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// answers gives every request a small answer, without a network.
type answers struct{}

func (answers) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	return &http.Response{
		StatusCode: http.StatusCreated, Status: "201 Created", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"id":"py_1","status":"succeeded"}`)),
	}, nil
}

// BenchmarkLog measures the bytes that a Do adds to the log (WAL) of a server of its own, with one caller and with 64.
func BenchmarkLog(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			at := "postgres://postgres@" + ownServer(b).Address + "/postgres"
			db, err := sql.Open("pgx", at)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = db.Close() })
			opts := schema(b, db)
			if err := postgres.Migrate(b.Context(), at, opts); err != nil {
				b.Fatal(err)
			}
			client, err := oncehttp.New(oncehttp.Config{Journal: open(b, at, opts), Origins: sqltest.Loopback(), Transport: answers{}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = client.Close() })
			position := func() (bytes int64) {
				if err := db.QueryRow("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&bytes); err != nil {
					b.Fatal(err)
				}
				return bytes
			}
			do := func(from, n int) {
				var wg sync.WaitGroup
				for c := range callers {
					wg.Go(func() {
						for i := from + c; i < from+n; i += callers {
							req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://127.0.0.1:1/payments", strings.NewReader(`{"amount":4200,"currency":"EUR"}`))
							if err != nil {
								b.Error(err)
								return
							}
							resp, err := client.DoKey(req, oncehttp.NewScope("order").Key("u1", fmt.Sprintf("order%d", i)))
							if err != nil {
								b.Error(err)
								return
							}
							_ = resp.Body.Close()
						}
					})
				}
				wg.Wait()
				if err := client.Flush(b.Context()); err != nil {
					b.Error(err)
				}
			}
			do(0, 1000) // the pages that a checkpoint made whole again are in the log
			b.ResetTimer()
			before := position()
			do(1000, b.N)
			b.ReportMetric(float64(position()-before)/float64(b.N), "WAL-B/op")
		})
	}
}
