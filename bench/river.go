package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// payArgs is payment N as a River job.
type payArgs struct {
	N   int64  `json:"n"`
	URL string `json:"url"`
}

// Kind names the job in the database.
func (payArgs) Kind() string { return "pay" }

// payWorker sends the payment, and the result to the caller in waiting.
type payWorker struct {
	river.WorkerDefaults[payArgs]

	client  *http.Client
	waiting sync.Map // of N to chan error
}

// Work implements river.Worker. It sends the payment of the job, and gives the result to the goroutine that waits for it, if there is one: w.waiting
// has the channel of that goroutine by the number of the payment.
func (w *payWorker) Work(ctx context.Context, job *river.Job[payArgs]) error {
	req, err := newPayment(job.Args.URL, job.Args.N)
	if err == nil {
		err = consume(w.client.Do(req))
	}
	if c, found := w.waiting.LoadAndDelete(job.Args.N); found {
		c.(chan error) <- err
	}
	return err
}

// riverContender returns River, a job queue on PostgreSQL, with one job for each operation in a new database: the caller inserts the job and waits
// until the worker has sent the request. It is tuned: FetchCooldown is 1 ms, since the default of 100 ms would hide everything else, and the pool has
// as many connections as it can use here. It is an error if no PostgreSQL answers at dsn, or if it has no right to create a database.
func riverContender(ctx context.Context, dsn string) (*contender, error) {
	database := fmt.Sprintf("oncehttp_bench_%d", os.Getpid())
	own, err := createDatabase(ctx, dsn, database)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not answer: %w", err)
	}
	pool, err := openPool(ctx, own)
	if err != nil {
		return nil, errors.Join(err, dropDatabase(dsn, database))
	}
	transport := newPool()
	worker := &payWorker{client: &http.Client{Transport: transport}}
	client, err := startRiver(ctx, pool, worker)
	if err != nil {
		pool.Close()
		return nil, errors.Join(err, dropDatabase(dsn, database))
	}
	return &contender{
		name: "River, tuned",
		do: func(url string, n int64) error {
			done := make(chan error, 1)
			worker.waiting.Store(n, done)
			if _, err := client.Insert(ctx, payArgs{N: n, URL: url}, nil); err != nil {
				return err
			}
			select {
			case err := <-done:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
		close: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			err := client.StopAndCancel(ctx)
			transport.CloseIdleConnections()
			pool.Close()
			return errors.Join(err, dropDatabase(dsn, database))
		},
	}, nil
}

// startRiver makes River's tables in the database of pool and starts a client with the worker. The caller must stop the client.
func startRiver(ctx context.Context, pool *pgxpool.Pool, worker *payWorker) (*river.Client[pgx.Tx], error) {
	driver := riverpgxv5.New(pool)
	silent := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: silent})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	client, err := river.NewClient(driver, &river.Config{
		Logger:            silent,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: idleMax}},
		Workers:           workers,
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: 100 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	return client, client.Start(context.WithoutCancel(ctx))
}

// createDatabase creates a database beside that of dsn, a URL, and returns its URL. The caller must call dropDatabase.
func createDatabase(ctx context.Context, dsn, name string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// openPool opens a pool with as many connections as oncehttp's journal has. The caller must close it.
func openPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 16
	return pgxpool.NewWithConfig(ctx, config)
}

// dropDatabase removes the database with its connections, if it exists. It takes no context, since it also runs after an
// interrupt; it gives up after 10 s.
func dropDatabase(dsn, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
	return err
}
