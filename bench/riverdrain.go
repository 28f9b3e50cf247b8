package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// callArgs is one HTTP call as a River job, with the parts of a request in oncehttp's record.
type callArgs struct {
	Key    string      `json:"key"`
	Method string      `json:"method"`
	URL    string      `json:"url"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

// Kind names the job in the database.
func (callArgs) Kind() string { return "call" }

// callWorker sends the request of a job; an error lets River try again.
type callWorker struct {
	river.WorkerDefaults[callArgs]

	client *http.Client
}

// Work implements river.Worker. It sends the request of the job, under the job's key.
func (w *callWorker) Work(ctx context.Context, job *river.Job[callArgs]) error {
	req, err := http.NewRequestWithContext(ctx, job.Args.Method, job.Args.URL, strings.NewReader(job.Args.Body))
	if err != nil {
		return err
	}
	req.Header = job.Args.Header
	req.Header.Set("Idempotency-Key", job.Args.Key)
	return consume(w.client.Do(req))
}

// riverDrainer returns River, a job queue on PostgreSQL, with one HTTP call for each job, to be compared with Run. A job counts at the event of its
// completion, which River sends after the commit. fill makes the jobs, and drain runs them. The database must be empty.
func riverDrainer(ctx context.Context, dsn string) (*drainer, error) {
	db, err := openPool(ctx, dsn)
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(db)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	transport := newPool()
	workers := river.NewWorkers()
	river.AddWorker(workers, &callWorker{client: &http.Client{Transport: transport}})
	return &drainer{
		name: "River, tuned",
		fill: func(ctx context.Context, url string, n int64) error {
			if _, err := db.Exec(ctx, "TRUNCATE river_job"); err != nil {
				return err
			}
			inserter, err := river.NewClient(driver, &river.Config{Logger: slog.New(slog.DiscardHandler), Workers: workers})
			if err != nil {
				return err
			}
			if err := insertJobs(ctx, inserter.InsertManyFast, url, n); err != nil {
				return err
			}
			_, err = db.Exec(ctx, "VACUUM ANALYZE river_job")
			return err
		},
		drain: func(ctx context.Context, inFlight int, n int64) (time.Duration, error) {
			took, err := drainByRiver(ctx, driver, workers, inFlight, n)
			if err != nil {
				return 0, err
			}
			return took, checkCount(ctx, db, "SELECT count(*) FROM river_job WHERE state = 'completed'", n)
		},
		close: func() error {
			transport.CloseIdleConnections()
			db.Close()
			return nil
		},
	}, nil
}

// insertJobs inserts n jobs, many with each call of insert. Their requests are like those of the other contenders.
func insertJobs(ctx context.Context, insert func(context.Context, []river.InsertManyParams) (int, error), url string, n int64) error {
	const together = 5000
	jobs := make([]river.InsertManyParams, 0, together)
	body := func(n int64) string {
		return fmt.Sprintf(`{"amount":4200,"currency":"eur","customer":"cus_%d","order":"%d","note":"as agreed"}`, n%977, n)
	}
	for i := range n {
		jobs = append(jobs, river.InsertManyParams{Args: callArgs{
			Key: fmt.Sprintf("idemp:order:u%d:o%d", i%1021, i), Method: http.MethodPost, URL: url,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: body(i),
		}})
		if len(jobs) == together || i == n-1 {
			if _, err := insert(ctx, jobs); err != nil {
				return err
			}
			jobs = jobs[:0]
		}
	}
	return nil
}

// drainByRiver runs a client, with up to inFlight jobs at a time, until n jobs are complete, and returns the time until then.
func drainByRiver(ctx context.Context, driver *riverpgxv5.Driver, workers *river.Workers, inFlight int, n int64) (time.Duration, error) {
	client, err := river.NewClient(driver, &river.Config{
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: inFlight}},
		Workers:           workers,
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		return 0, err
	}
	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: int(n) + inFlight, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer unsubscribe()
	began := time.Now()
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return 0, err
	}
	for done := range n {
		select {
		case <-completed:
		case <-ctx.Done():
			return 0, fmt.Errorf("%d of %d jobs were completed: %w", done, n, ctx.Err())
		}
	}
	took := time.Since(began)
	return took, client.StopAndCancel(context.WithoutCancel(ctx))
}
