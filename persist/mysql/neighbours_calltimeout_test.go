package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// A CallTimeout alone is taken, however short, and LockWait follows it; one that does not fit beside it is refused.
func TestNeighbourLockWaitFollows(t *testing.T) {
	t.Parallel()
	opts := migrated(t, pool(t, ""))
	for _, c := range []struct {
		call, lock time.Duration
		taken      bool
	}{
		{0, 0, true}, {100 * time.Millisecond, 0, true}, {999 * time.Millisecond, 0, true}, {time.Second, 0, true}, {3*time.Second + 1, 0, true}, {6 * time.Second, 0, true},
		{7 * time.Second, 0, true}, {time.Hour, 0, true}, {6*time.Second + 1, 0, true}, {6*time.Second + 3, 0, true}, {3*time.Second + 3, time.Second, true}, {6*time.Second + 3, 2 * time.Second, true}, {0, 2 * time.Second, true}, {time.Minute, 19 * time.Second, true},
		{3 * time.Second, time.Second, false}, {2 * time.Second, time.Second, false}, {0, 3 * time.Second, false}, {time.Minute, 20 * time.Second, false}, {time.Minute, time.Millisecond, false},
		{time.Minute, -time.Second, false}, {time.Minute, 2500 * time.Millisecond, false},
	} {
		opts.CallTimeout, opts.LockWait = c.call, c.lock
		j, err := journal.Open(t.Context(), server(t), opts)
		if err == nil {
			_ = j.Close()
		}
		if errors.Is(err, journal.ErrOptions) == c.taken {
			t.Errorf("CallTimeout %v, LockWait %v: %v, want it taken: %v", c.call, c.lock, err, c.taken)
		}
	}
}

// Each change of a record that somebody's transaction has locked ends within CallTimeout, by whatever LockWait, and changes nothing.
// One that waits for less than LockWait does what it is to do once that transaction has ended.
func TestNeighbourLockedCalls(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	calls := map[string]func(ctx context.Context, j persist.Journal, rec persist.Record) error{
		"Update": func(ctx context.Context, j persist.Journal, rec persist.Record) error {
			rec.Note = "changed"
			_, err := j.Update(ctx, rec)
			return err
		},
		"Finish": func(ctx context.Context, j persist.Journal, rec persist.Record) error {
			return j.Finish(ctx, sqltest.Finished(rec))
		},
		"Forget": func(ctx context.Context, j persist.Journal, rec persist.Record) error { return j.Forget(ctx, rec) },
	}
	for _, o := range []journal.Options{{CallTimeout: 300 * time.Millisecond}, {CallTimeout: 2 * time.Second}, {CallTimeout: 4 * time.Second}, {CallTimeout: 7 * time.Second, LockWait: time.Second}} {
		for name, call := range calls {
			t.Run(fmt.Sprint(name, " ", o.CallTimeout, " ", o.LockWait), func(t *testing.T) {
				t.Parallel()
				opts := migrated(t, db)
				opts.CallTimeout, opts.LockWait = o.CallTimeout, o.LockWait
				j := open(t, server(t), opts)
				rec, _, err := j.Begin(t.Context(), sqltest.Record("a", "k"))
				for range 100 { // a short CallTimeout may be over on a busy machine
					if err == nil {
						break
					}
					rec, _, err = j.Begin(t.Context(), sqltest.Record("a", "k"))
				}
				if err != nil {
					t.Fatal(err)
				}
				tx, err := db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback() }()
				if _, err := tx.Exec("SELECT * FROM `" + opts.Database + "`.oncehttp_record FOR UPDATE"); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = call(t.Context(), j, rec)
				if took := time.Since(began); err == nil || errors.Is(err, persist.ErrStale) || took > o.CallTimeout+2*time.Second {
					t.Errorf("beside a lock: %v after %v, want an error within %v", err, took, o.CallTimeout)
				}
				if now, err := j.Get(t.Context(), rec.ID); err != nil || now.Revision != rec.Revision {
					t.Errorf("while it is locked: revision %d, %v, want %d", now.Revision, err, rec.Revision)
				}
				waits := make(chan error, 1)
				go func() { waits <- call(t.Context(), j, rec) }()
				time.Sleep(100 * time.Millisecond)
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				err = <-waits
				said := []error{err}
				if err != nil && o.CallTimeout > time.Second {
					t.Errorf("once it is free, in time: %v", err)
				}
				for range 400 { // so here; and a Forget refuses at once while a Begin in doubt may still land
					if err == nil || errors.Is(err, persist.ErrStale) || errors.Is(err, persist.ErrNotFound) {
						break
					}
					time.Sleep(50 * time.Millisecond)
					err = call(t.Context(), j, rec)
					said = append(said, err)
				}
				now, err := j.Get(t.Context(), rec.ID)
				if gone := errors.Is(err, persist.ErrNotFound); gone != (name == "Forget") || !gone && now.Revision == rec.Revision {
					t.Errorf("in the end: revision %d, %v, after %v", now.Revision, err, said)
				}
			})
		}
	}
}
