package redis_test

import (
	"cmp"
	"context"
	"flag"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

var fleetOrders = flag.Int("fleet", 0, "orders of the fleet test, whose server crashes once; 0: some, and no crash")

// fleetWorker is the role of a process that runs the journal: see sqltest.Work.
func fleetWorker(ctx context.Context, args []string) error { return sqltest.Work(ctx, opener(args)) }

// caller is the role of a process that calls Do: see sqltest.Call.
func caller(ctx context.Context, args []string) error {
	return sqltest.Call(ctx, args[0], args[1], opener(args[2:]))
}

// opener opens the journal of a fleet: args are its Worker.
func opener(args []string) func(context.Context) (persist.Journal, error) {
	return func(ctx context.Context) (persist.Journal, error) {
		return redis.Open(ctx, args[0], redis.Options{Prefix: args[1], MaxConns: 4, KeepKey: redis.KeepForever})
	}
}

// fleet is a fleet on a server of its own.
func fleet(t *testing.T) (sqltest.Fleet, *server) {
	s := start(t, durable()...)
	opts := own(t, s.url())
	j, err := redis.Open(t.Context(), s.url(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	orders := cmp.Or(*fleetOrders, testrun.N(100, 300))
	return sqltest.Fleet{Journal: j, Worker: []string{s.url(), opts.Prefix}, Orders: orders, Rounds: max(10, orders/50), Seed: 1}, s
}

func TestFleet(t *testing.T) {
	t.Parallel()
	f, s := fleet(t)
	if *fleetOrders > 0 {
		f.Restart = func() {
			s.kill(t)
			s.run(t)
		}
	}
	f.Test(t)
}

func TestFleetCalm(t *testing.T) {
	t.Parallel()
	f, _ := fleet(t)
	f.Calm = true
	f.Test(t)
}

func TestKilledCallers(t *testing.T) {
	t.Parallel()
	f, _ := fleet(t)
	sqltest.KilledCallers(t, f)
}
