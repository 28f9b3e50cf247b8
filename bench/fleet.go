package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// drainer is one way to work off a backlog of operations on PostgreSQL. Its user must call close.
type drainer struct {
	name string
	// fill removes the last backlog, and makes one of n operations to this URL.
	fill func(ctx context.Context, url string, n int64) error
	// drain works the backlog off, at most inFlight requests at a time, until n operations have ended durably, and returns
	// how long that took.
	drain func(ctx context.Context, inFlight int, n int64) (time.Duration, error)
	close func() error
}

// fleetSize is the size of one measurement.
type fleetSize struct {
	inFlight int   // requests at a time
	n        int64 // operations in one round
}

// onFleet calls run with a server and a new database, and removes both afterwards. If PostgreSQL does not answer, it records a
// note and does not call run.
func onFleet(b *bench, run func(dsn, url string) error) error {
	server, err := startServer(b)
	if err != nil {
		return err
	}
	defer server.stop()
	database := fmt.Sprintf("oncehttp_bench_fleet_%d", os.Getpid())
	dsn, err := createDatabase(b, b.dsn, database)
	if err != nil {
		b.note("PostgreSQL does not answer: %s", strings.Join(strings.Fields(err.Error()), " "))
		return nil
	}
	defer func() { _ = dropDatabase(b.dsn, database) }()
	return run(dsn, server.payURL(delayUsual))
}

// runFleet measures one worker of a fleet on PostgreSQL: Run beside the job queue River, and Do.
func runFleet(b *bench) error {
	return onFleet(b, func(dsn, url string) error {
		once, err := onceDrainer(b, dsn)
		if err != nil {
			return err
		}
		defer func() { _ = once.close() }()
		queue, err := riverDrainer(b, dsn)
		if err != nil {
			return err
		}
		defer func() { _ = queue.close() }()
		for _, s := range []fleetSize{{64, fullOrTiny(b, int64(6000), 200)}, {256, fullOrTiny(b, int64(15000), 300)}} { // requests at a time, and operations
			if err := runDrain(b, s, url, []*drainer{once, queue}); err != nil {
				return err
			}
		}
		b.note("a drain is timed until the last operation is durable; River keeps no answers, Run keeps each")
		b.note("both have 16 connections; River: FetchCooldown 1 ms, FetchPollInterval 20 ms, MaxWorkers as many as are in flight")
		return runDoOnPostgres(b, dsn, url)
	})
}

// runDrain measures how fast a backlog of operations is sent: by each of the drainers in turn, and beside them by plain net/http.
// The first drainer is oncehttp's Run, the second the job queue River. url is that of a server that answers after 20 ms. s has the number of requests at a time
// (inFlight) and of operations (n).
func runDrain(b *bench, s fleetSize, url string, drainers []*drainer) error {
	group := fmt.Sprintf("draining a backlog, 20 ms server, %d in flight", s.inFlight)
	plain := plainContender()
	defer func() { _ = plain.close() }()
	var next atomic.Int64
	var base samples
	rates, cpu := make([]samples, len(drainers)), make([]samples, len(drainers))
	for r := range b.rounds {
		did, err := plain.drive(b, s.inFlight, fullOrTiny(b, 1500*time.Millisecond, 60*time.Millisecond), url, &next)
		if err != nil {
			return err
		}
		base = append(base, did.rate)
		for k := range drainers {
			i := (r + k) % len(drainers)
			if err := drainers[i].fill(b, url, s.n); err != nil {
				return fmt.Errorf("%s: making the backlog: %w", drainers[i].name, err)
			}
			rate, cpuTime, err := drainers[i].once(b, s.inFlight, s.n)
			if err != nil {
				return err
			}
			rates[i], cpu[i] = append(rates[i], rate), append(cpu[i], cpuTime)
		}
	}
	b.add(group, "plain net/http", "ops/s", base)
	for i, d := range drainers {
		b.add(group, d.name, "ops/s", rates[i])
		b.add(group, d.name, "of plain", rates[i].over(base))
		b.add(group, d.name, "client CPU µs/op", cpu[i])
	}
	b.atLeast(group+": Run of River", "", 1.1, rates[0].over(rates[1]))
	return nil
}

// once drains n operations of the backlog. It returns operations per second, and this process's processor time for each
// in microseconds. It gives up after a minute and 10 ms for each operation.
func (d *drainer) once(ctx context.Context, inFlight int, n int64) (rate, cpu float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(n)*10*time.Millisecond+time.Minute)
	defer cancel()
	busy := processorTime()
	took, err := d.drain(ctx, inFlight, n)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", d.name, err)
	}
	return float64(n) / took.Seconds(), micros(processorTime()-busy) / float64(n), nil
}

// runBacklog compares the drain of a part of a large backlog with that of a whole small one, as many operations each time, without and with an open snapshot
// that keeps PostgreSQL from removing dead rows.
func runBacklog(b *bench) error {
	small, large := fullOrTiny(b, int64(20_000), 200), fullOrTiny(b, int64(1_000_000), 1000)
	const inFlight, group = 64, "draining 20,000, 20 ms server, 64 in flight"
	cells := []struct {
		name    string
		backlog int64
		idle    bool
		limit   float64 // the ratio to the small backlog's rate that must be reached
	}{{"of twenty thousand", small, false, 0}, {"of a million", large, false, 0.9}, {"of a million, with an idle snapshot", large, true, 0.5}}
	rates := make([]samples, len(cells))
	err := onFleet(b, func(dsn, url string) error {
		once, err := onceDrainer(b, dsn)
		if err != nil {
			return err
		}
		defer func() { _ = once.close() }()
		for range min(b.rounds, 3) {
			for i, c := range cells {
				if err := once.fill(b, url, c.backlog); err != nil {
					return err
				}
				rate, err := drainBeside(b, dsn, c.idle, func() (float64, error) {
					rate, _, err := once.once(b, inFlight, small)
					return rate, err
				})
				if err != nil {
					return err
				}
				rates[i] = append(rates[i], rate)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range cells {
		b.add(group, c.name, "ops/s", rates[i])
		if i > 0 {
			b.atLeast(group+" "+c.name+": rate of a backlog of twenty thousand", "", c.limit, rates[i].over(rates[0]))
		}
	}
	return nil
}

// drainBeside calls run and returns its results; with idle, while another transaction keeps a snapshot, so that PostgreSQL can remove no dead rows.
func drainBeside(ctx context.Context, dsn string, idle bool, run func() (float64, error)) (float64, error) {
	if !idle {
		return run()
	}
	release, err := holdSnapshot(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer release()
	return run()
}

// runDoOnPostgres measures calls of Do with a journal on PostgreSQL beside the same requests by plain net/http, in turns. It records both rates, and the target
// of 85 % of the plain rate. Before each round it empties the table.
func runDoOnPostgres(b *bench, dsn, url string) error {
	const group = "Do on PostgreSQL, 20 ms server, 64 workers"
	journal, err := postgres.Open(b, dsn, postgres.Options{Schema: fleetSchema})
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	pool := newPool()
	defer pool.CloseIdleConnections()
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Origins: loopback(), Transport: pool})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	do := &contender{name: "oncehttp + postgres", flush: func() error { return client.Flush(b) }, do: func(url string, n int64) error {
		req, err := newPayment(url, n)
		if err != nil {
			return err
		}
		return consume(client.DoKey(req, oncehttp.NewScope("do").Key(businessParts(n))))
	}}
	plain := plainContender()
	defer func() { _ = plain.close() }()
	var next atomic.Int64
	contenders := []*contender{plain, do}
	rates, cpu := make([]samples, 2), make([]samples, 2)
	for range b.rounds {
		if err := emptyTable(b, dsn, fleetSchema+".record"); err != nil { // otherwise the server still vacuums the drained rows
			return err
		}
		for i, c := range contenders {
			did, err := c.drive(b, 64, fullOrTiny(b, 1500*time.Millisecond, 60*time.Millisecond), url, &next)
			if err != nil {
				return err
			}
			rates[i], cpu[i] = append(rates[i], did.rate), append(cpu[i], micros(did.cpu))
		}
	}
	if err := profileContender(b, do, 64, url, &next); err != nil {
		return err
	}
	for i, c := range contenders {
		b.add(group, c.name, "ops/s", rates[i])
		b.add(group, c.name, "of plain", rates[i].over(rates[0]))
		b.add(group, c.name, "client CPU µs/op", cpu[i])
	}
	b.atLeast(group+": of plain net/http", "", 0.85, rates[1].over(rates[0]))
	return nil
}

// emptyTable removes all rows of a table. table is trusted SQL.
func emptyTable(ctx context.Context, dsn, table string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "TRUNCATE "+table)
	return errors.Join(err, conn.Close(ctx))
}

// loopback returns the Origins of the clients: any server on this machine.
func loopback() []string { return []string{"http://127.0.0.1:*"} }

// fleetSchema is the schema of oncehttp's journal in the section's database.
const fleetSchema = "fleet"

// onceDrainer returns Run on a new journal on PostgreSQL, to be compared with other workers that send a backlog.
func onceDrainer(ctx context.Context, dsn string) (*drainer, error) {
	opts := postgres.Options{Schema: fleetSchema}
	if err := postgres.Migrate(ctx, dsn, opts); err != nil {
		return nil, err
	}
	journal, err := postgres.Open(ctx, dsn, opts)
	if err != nil {
		return nil, err
	}
	db, err := openPool(ctx, dsn)
	if err != nil {
		return nil, err
	}
	pool := newPool()
	return &drainer{
		name: "oncehttp Run + postgres",
		fill: func(ctx context.Context, url string, n int64) error {
			client, err := oncehttp.New(oncehttp.Config{Journal: journal, Origins: []string{}}) // it only enqueues, and sends to nobody
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			return fillRecords(ctx, db, client, url, n)
		},
		drain: func(ctx context.Context, inFlight int, n int64) (time.Duration, error) {
			took, err := drainByRun(ctx, journal, pool, inFlight, n)
			if err != nil {
				return 0, err
			}
			return took, checkCount(ctx, db, "SELECT count(*) FROM "+fleetSchema+".record WHERE state = 2 AND answer IS NOT NULL", n) // 2: confirmed
		},
		close: func() error {
			pool.CloseIdleConnections()
			db.Close()
			return journal.Close()
		},
	}, nil
}

// drainByRun runs a client until n operations are confirmed and flushed, and returns the time until then. The journal and the pool stay open.
func drainByRun(ctx context.Context, journal *postgres.Journal, pool http.RoundTripper, inFlight int, n int64) (took time.Duration, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var done atomic.Int64
	client, err := oncehttp.New(oncehttp.Config{
		Journal: journal, Origins: loopback(), Transport: pool,
		ResumeWorkers: inFlight, OriginWorkers: inFlight, // there is only one API, so no worker is kept free for others
		Observe: func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventFinished && e.Outcome == oncehttp.OutcomeConfirmed && done.Add(1) == n {
				stop()
			}
		},
	})
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	began, last := time.Now(), make(chan time.Time, 1)
	go func() {
		<-running.Done()
		_ = journal.Flush(ctx)
		last <- time.Now()
	}()
	if err := client.Run(running); err != nil {
		return 0, err
	}
	if did := done.Load(); did < n {
		return 0, fmt.Errorf("%d of %d operations were confirmed: %w", did, n, ctx.Err())
	}
	return (<-last).Sub(began), nil
}

// fillRecords empties the journal, enqueues one operation, and copies its row n times under other keys in the database: to
// enqueue a million one by one takes longer than all measurements. The rows are like those of Enqueue, since Run sends no
// others.
func fillRecords(ctx context.Context, db *pgxpool.Pool, client *oncehttp.Client, url string, n int64) error {
	if _, err := db.Exec(ctx, "TRUNCATE "+fleetSchema+".record"); err != nil {
		return err
	}
	req, err := newPayment(url, 1)
	if err != nil {
		return err
	}
	if err := client.Enqueue(req, "idemp:order:template"); err != nil {
		return err
	}
	columns := strings.Split("id, seq, revision, token, account, op_key, fingerprint, generated, created, sweep_at, origin, needs, "+
		"state, unreported, swept, next_attempt, finished, lease_owner, lease_until, send_until, owed_from, intent, progress, body, answer, hold_reason", ", ")
	values := slices.Clone(columns)
	for i, c := range values {
		switch c {
		case "id":
			values[i] = "substr(sha256(k), 1, 14) || substr(id, 15)" // an id is a hash of the key and then one of the account; only the key is new
		case "seq":
			values[i] = "nextval('" + fleetSchema + ".record_seq')"
		case "op_key":
			values[i] = "k"
		}
	}
	copied := fmt.Sprintf(`WITH template AS (DELETE FROM %[1]s.record RETURNING *)
		INSERT INTO %[1]s.record (%[2]s) SELECT %[3]s FROM template,
		(SELECT convert_to('idemp:order:u' || n %% 1021 || ':o' || n, 'UTF8') AS k FROM generate_series(1, $1) n) keys`,
		fleetSchema, strings.Join(columns, ", "), strings.Join(values, ", "))
	if _, err := db.Exec(ctx, copied, n); err != nil {
		return err
	}
	_, err = db.Exec(ctx, "VACUUM ANALYZE "+fleetSchema+".record")
	return err
}

// holdSnapshot begins a transaction with a snapshot, and leaves it idle (the SELECT takes the snapshot), so that PostgreSQL can remove no rows that have died
// since. The caller must call release.
func holdSnapshot(ctx context.Context, dsn string) (release func(), err error) {
	db, err := openPool(ctx, dsn)
	if err != nil {
		return nil, err
	}
	tx, err := db.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1")
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return func() {
		_ = tx.Rollback(context.WithoutCancel(ctx))
		db.Close()
	}, nil
}

// checkCount returns an error if query, a count, finds fewer than n rows: not all counted operations are in the database.
func checkCount(ctx context.Context, db *pgxpool.Pool, query string, n int64) error {
	var found int64
	if err := db.QueryRow(ctx, query).Scan(&found); err != nil {
		return err
	}
	if found < n {
		return fmt.Errorf("%d operations were counted, and %d are in the database", n, found)
	}
	return nil
}
