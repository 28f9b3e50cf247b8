package redis_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

func TestMain(m *testing.M) {
	sqltest.Main(m, map[string]func(context.Context, []string) error{"begin": begin, "pay": pay, "fleet": fleetWorker, "caller": caller, "worker": fleetWorker, "listener": listener, "deliverer": deliverer})
}

// The work of each process that begins records.
const (
	sharedKeys = 40 // which all of them begin
	ownKeys    = 40
)

// begin is the role of a process: it begins keys of its own, and others that all of them want;
// who creates one of those finishes it.
func begin(ctx context.Context, args []string) error {
	j, err := redis.Open(ctx, args[0], redis.Options{Prefix: args[1], KeepKey: redis.KeepForever})
	if err != nil {
		return err
	}
	for i := range sharedKeys {
		rec, created, err := j.Begin(ctx, sqltest.Record("shared", fmt.Sprint(i)))
		if err == nil && created {
			err = j.Finish(ctx, sqltest.Finished(rec))
		}
		if err != nil {
			return fmt.Errorf("shared key %d, created %t: %w", i, created, err)
		}
	}
	for i := range ownKeys {
		if _, created, err := j.Begin(ctx, sqltest.Record("own", fmt.Sprintf("%d of %d", i, os.Getpid()))); err != nil || !created {
			return fmt.Errorf("own key %d: created %t, %w", i, created, err)
		}
	}
	return j.Close()
}

// follow lists what is after a number, counts it in seen, and returns the last number.
func follow(t *testing.T, j persist.Journal, after uint64, seen map[persist.ID]int) uint64 {
	t.Helper()
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true, After: after}) {
		if err != nil || rec.Seq <= after {
			t.Fatalf("List after %d: Seq %d, error %v", after, rec.Seq, err)
		}
		seen[rec.ID]++
		after = rec.Seq
	}
	return after
}

// TestProcesses: of three processes that begin one key, one creates; and who follows them by
// number meets every record once.
func TestProcesses(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	j := open(t, at, opts)
	var work sync.WaitGroup
	over := make(chan struct{})
	work.Go(func() {
		defer close(over)
		if err := sqltest.Together(t.Context(), 3, "begin", at, opts.Prefix); err != nil {
			t.Error(err)
		}
	})
	seen, last := map[persist.ID]int{}, uint64(0)
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-time.After(time.Millisecond):
		}
		last = follow(t, j, last, seen)
	}
	work.Wait()
	follow(t, j, last, seen)
	for id, n := range seen {
		rec, err := j.Get(t.Context(), id)
		if n != 1 || err != nil || rec.State.Final() != (id.Account == "shared") {
			t.Errorf("%q was met %d times, and is %v, error %v", id, n, rec.State, err)
		}
	}
	if len(seen) != sharedKeys+3*ownKeys {
		t.Errorf("%d records were met, want %d", len(seen), sharedKeys+3*ownKeys)
	}
}

// TestClockGoesBack: one bucket is an hour ahead of the others, as after the server's clock was
// set back. Who has listed its records must not miss what a process begins that has not met
// them.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	follower, other := open(t, at, opts), open(t, at, opts)
	ahead := follower.BucketOf(persist.ID{Account: "a", Key: "ahead"})
	later := time.Now().Add(time.Hour).UnixMicro()
	if err := connect(t, at).Set(t.Context(), redis.BucketKeys(opts.Prefix, ahead)[redis.Clock], later, 0).Err(); err != nil {
		t.Fatal(err)
	}
	seen := map[persist.ID]int{}
	if _, created, err := follower.Begin(t.Context(), sqltest.Record("a", "ahead")); err != nil || !created {
		t.Fatal(created, err)
	}
	last := follow(t, follower, 0, seen)
	for i := range 50 {
		rec, _, err := other.Begin(t.Context(), sqltest.Record("a", fmt.Sprint(i)))
		if err != nil || rec.Seq <= last {
			t.Errorf("after %d was listed, a record was begun with %d, error %v", last, rec.Seq, err)
		}
	}
	if follow(t, follower, last, seen); len(seen) != 51 {
		t.Errorf("who follows by number has met %d of 51 records", len(seen))
	}
}
