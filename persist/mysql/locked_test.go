package mysql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// TestCallTimeouts: LockWait follows a short CallTimeout, below which the server cannot count. A call whose record another
// transaction has locked ends with its CallTimeout, in doubt, and succeeds once that transaction has ended.
func TestCallTimeouts(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	for _, timeout := range []time.Duration{500 * time.Millisecond, 3 * time.Second, 4 * time.Second, 6*time.Second + time.Millisecond, 30 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			opts := migrated(t, db)
			opts.CallTimeout = timeout
			j, err := journal.Open(t.Context(), server(t), opts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = j.Close() })
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			rec, in := sqltest.Record("a", "k"), journal.Options{Database: opts.Database}
			if _, created, err := in.Begin(t.Context(), tx, rec); err != nil || !created {
				t.Fatalf("Begin in a transaction: %t, %v", created, err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			began := time.Now()
			if _, _, err := j.Begin(ctx, rec); !errors.Is(err, persist.ErrUncertain) || time.Since(began) > timeout+2*time.Second {
				t.Errorf("Begin beside an open transaction: %v after %v, want ErrUncertain", err, time.Since(began))
			}
			waits := make(chan error, 1)
			go func() {
				_, created, err := j.Begin(ctx, rec)
				if created {
					err = errors.Join(err, errors.New("it was begun twice"))
				}
				waits <- err
			}()
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-waits; err != nil {
				t.Errorf("Begin beside a transaction that ends: %v", err)
			}
		})
	}
	for name, opts := range map[string]journal.Options{
		"a negative CallTimeout": {CallTimeout: -1}, "a LockWait that the server cannot count": {LockWait: 1500 * time.Millisecond},
		"a LockWait beyond a third of CallTimeout": {CallTimeout: 6 * time.Second, LockWait: 2 * time.Second},
	} {
		if _, err := journal.Open(t.Context(), server(t), opts); !errors.Is(err, journal.ErrOptions) {
			t.Errorf("%s: %v, want ErrOptions", name, err)
		}
	}
}
