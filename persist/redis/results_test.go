package redis_test

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

func TestDeliversInOrder(t *testing.T) {
	t.Parallel()
	sqltest.DeliversInOrder(t, engine(t, durableURL(t), 8))
}

func TestResultOfDo(t *testing.T) {
	t.Parallel()
	sqltest.ResultOfDo(t, engine(t, durableURL(t), 8))
}

// deliveries are the rows of results in a list beside the journal.
func deliveries(client *goredis.Client, prefix string) *sqltest.Rows {
	list := "{" + prefix + "}:deliveries"
	return &sqltest.Rows{
		Write: func(ctx context.Context, row string) error { return client.RPush(ctx, list, row).Err() },
		Count: func(ctx context.Context, row string) (n int, err error) {
			rows, err := client.LRange(ctx, list, 0, -1).Result()
			for _, r := range rows {
				if r == row {
					n++
				}
			}
			return n, err
		},
	}
}

// deliverer is the role of a process that is killed: see sqltest.KilledDeliveries. Args: server, prefix, those of Deliver.
func deliverer(ctx context.Context, args []string) error {
	opts, err := goredis.ParseURL(args[0])
	if err != nil {
		return err
	}
	j, err := redis.Open(ctx, args[0], redis.Options{Prefix: args[1], MaxConns: 4, KeepKey: redis.KeepForever})
	if err != nil {
		return err
	}
	d := &sqltest.Deliverer{Journal: j, Rows: deliveries(goredis.NewClient(opts), args[1])}
	return d.Deliver(ctx, args[2:])
}

// TestKilledDeliveries: whenever a process dies, the next one delivers the result: at least once, and twice at most between the row and its
// mark, since no transaction holds them together.
func TestKilledDeliveries(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	d := &sqltest.Deliverer{Journal: open(t, at, opts), Rows: deliveries(connect(t, at), opts.Prefix)}
	d.KillAll(t, at, opts.Prefix)
}
