package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// benched is a journal with many callers, each with a key of its own.
func benched(b *testing.B, do func(worker int, rec persist.Record) error) {
	var keys, workers atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		worker := int(workers.Add(1)) - 1
		for pb.Next() {
			if err := do(worker, sqltest.Record("a", fmt.Sprint("k", keys.Add(1)))); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkNotify begins operations: with nothing else, with a notification after each, and with somebody who hears them.
func BenchmarkNotify(b *testing.B) {
	for _, how := range []string{"none", "notify", "notify-and-listen"} {
		b.Run(how, func(b *testing.B) {
			opts := migrated(b, admin(b))
			opts.MaxConns = 16
			j := open(b, server(b), opts)
			if how == "notify-and-listen" {
				ctx, stop := context.WithCancel(context.Background())
				over := make(chan error)
				go func() { over <- j.Listen(ctx, func(error) {}) }()
				defer func() {
					stop()
					<-over
				}()
			}
			benched(b, func(_ int, rec persist.Record) error {
				_, _, err := j.Begin(context.Background(), rec)
				if how != "none" {
					j.Notify()
				}
				return err
			})
		})
	}
}

// BenchmarkNotifyInTransaction begins operations in transactions of the caller's own, each on a connection of its own:
// with nothing else, with a notification after the commit, and with one in the transaction.
func BenchmarkNotifyInTransaction(b *testing.B) {
	for _, how := range []string{"none", "after", "inside"} {
		b.Run(how, func(b *testing.B) {
			opts, ctx := migrated(b, admin(b)), context.Background()
			var conns []*pgx.Conn
			for range 64 {
				conn, err := pgx.Connect(ctx, server(b))
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = conn.Close(ctx) }()
				conns = append(conns, conn)
			}
			benched(b, func(worker int, rec persist.Record) error { return committed(ctx, conns[worker], opts, rec, how) })
		})
	}
}

// committed begins a record in a transaction.
func committed(ctx context.Context, conn *pgx.Conn, opts postgres.Options, rec persist.Record, how string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, _, err := opts.Begin(ctx, tx, rec)
		if err == nil && how == "inside" {
			err = opts.Notify(ctx, tx)
		}
		return err
	})
	if err == nil && how == "after" {
		err = opts.Notify(ctx, conn)
	}
	return err
}
