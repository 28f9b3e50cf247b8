package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// capacityKeep is Config.KeepAnswer of the section capacity: short, so that sweeps have work from its first minutes on.
const capacityKeep = 5 * time.Minute

// capacityCallers is the number of calls that may wait at a time. A tick that finds none free is late, and counted.
const capacityCallers = 512

// capacity is one run at a steady rate: calls of Do on a sealed journal on PostgreSQL, beside keys that have ended.
type capacity struct {
	*bench
	db     *pgxpool.Pool
	client *oncehttp.Client
	sent   atomic.Int64 // requests that reached the server

	mu     sync.Mutex
	took   samples // of the slice under way, in milliseconds
	failed []error
}

// runCapacity measures whether a steady rate of operations can be kept up for a time, with a journal that already has many keys of ended operations.
// Without -capacity (the length of the measurement) it measures nothing.
func runCapacity(b *bench) error {
	length, ended := b.capacity, int64(b.ended)
	if b.tiny {
		length, ended = time.Second, 2000
	}
	if length == 0 {
		b.note("by command: go run . -only capacity -capacity 1h -ended 20000000")
		return nil
	}
	return onFleet(b, func(dsn, _ string) error {
		c := &capacity{bench: b}
		return c.run(dsn, length, ended)
	})
}

// run makes a sealed (encrypted) journal in the database at dsn, fills it with ended keys, and makes calls for the time length. It measures them. Sealing is
// part of the measured work.
func (c *capacity) run(dsn string, length time.Duration, ended int64) error {
	api := httptest.NewServer(http.HandlerFunc(c.pay))
	defer api.Close()
	opts := postgres.Options{Schema: fleetSchema}
	if err := postgres.Migrate(c, dsn, opts); err != nil {
		return err
	}
	table, err := postgres.Open(c, dsn, opts)
	if err != nil {
		return err
	}
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "k1", Secret: bytes.Repeat([]byte("k"), seal.SecretSize)}}})
	if err != nil {
		return errors.Join(err, table.Close())
	}
	journal, err := s.Journal(c, table)
	if err != nil {
		return errors.Join(err, table.Close())
	}
	defer func() { _ = journal.Close() }()
	if c.db, err = openPool(c, dsn); err != nil {
		return err
	}
	defer c.db.Close()
	pool := newPool()
	defer pool.CloseIdleConnections()
	c.client, err = oncehttp.New(oncehttp.Config{Journal: journal, Origins: loopback(), Transport: pool, KeepAnswer: capacityKeep})
	if err != nil {
		return err
	}
	defer func() { _ = c.client.Close() }()
	if err := c.fill(api.URL, ended); err != nil {
		return fmt.Errorf("filling: %w", err)
	}
	return c.measure(api.URL, length, ended)
}

// pay is the server: it takes 20 ms, and counts.
func (c *capacity) pay(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	c.sent.Add(1)
	time.Sleep(delayUsual)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answerBody)
}

// fill leaves n keys of ended operations in the table, without their answers, as a sweep leaves them: one real row, copied under other ids, numbers and tokens
// (the mark of a write).
func (c *capacity) fill(url string, n int64) error {
	if err := c.call(url, 0); err != nil {
		return err
	}
	if err := c.client.Flush(c); err != nil {
		return err
	}
	if _, err := c.client.Prune(c, oncehttp.Keeping{KeepAnswer: -1}); err != nil { // -1: answers of any age go
		return err
	}
	var columns []string
	if err := c.db.QueryRow(c, "SELECT array_agg(column_name::text ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = $1 AND table_name = 'record'",
		fleetSchema).Scan(&columns); err != nil {
		return err
	}
	values := slices.Clone(columns) // SQL for each column of a copy; a column's own name copies its value
	for i, name := range values {
		switch name {
		case "id":
			values[i] = "s.ended"
		case "seq":
			values[i] = "nextval('" + fleetSchema + ".record_seq')"
		case "token":
			values[i] = "substr(sha256(convert_to('token ' || n, 'UTF8')), 1, 16)"
		}
	}
	indexes, err := c.indexes()
	if err != nil {
		return err
	}
	for name := range indexes {
		if _, err := c.db.Exec(c, "DROP INDEX "+fleetSchema+"."+name); err != nil {
			return err
		}
	}
	// The rows come in the order of their ids, and their indexes are built behind them: 20 million take minutes so, and an hour one by one.
	err = pgx.BeginFunc(c, c.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(c, "SET LOCAL work_mem = '1GB'; SET LOCAL maintenance_work_mem = '1GB'"); err != nil {
			return err
		}
		_, err := tx.Exec(c, fmt.Sprintf("INSERT INTO %[1]s.record (%[2]s) SELECT %[3]s FROM (SELECT n, %[4]s AS ended FROM generate_series(1, $1::bigint) n ORDER BY ended) s, (SELECT * FROM %[1]s.record WHERE swept = 1 ORDER BY seq LIMIT 1) r",
			fleetSchema, strings.Join(columns, ", "), strings.Join(values, ", "), endedID), n)
		if err != nil {
			return err
		}
		for _, definition := range indexes {
			if _, err := tx.Exec(c, definition); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = c.db.Exec(c, "VACUUM ANALYZE "+fleetSchema+".record")
	return err
}

// endedID is the id of copy n of a row.
const endedID = "substr(sha256(convert_to('ended ' || n, 'UTF8')), 1, 23)"

// indexes returns the definition of each index of the records, by its name, but for the primary key's, so that fill can drop and make them again.
func (c *capacity) indexes() (map[string]string, error) {
	rows, err := c.db.Query(c, "SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = $1::regclass AND NOT i.indisprimary",
		fleetSchema+".record")
	if err != nil {
		return nil, err
	}
	definitions, name, definition := map[string]string{}, "", ""
	_, err = pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
		definitions[name] = definition
		return nil
	})
	return definitions, err
}

// call makes operation n, and notes its duration in milliseconds, or its error.
func (c *capacity) call(url string, n int64) error {
	req, err := newPayment(url, n)
	if err != nil {
		return err
	}
	began := time.Now()
	err = consume(c.client.DoKey(req, oncehttp.NewScope("order").Key(businessParts(n))))
	took := float64(time.Since(began).Microseconds()) / 1000
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed = append(c.failed, err)
		return err
	}
	c.took = append(c.took, took)
	return nil
}

// size is the state of the database at a moment.
type size struct {
	bytes, wal, rows, dead int64
}

// size returns the bytes of the table and of the write-ahead log, and the numbers of live and dead rows.
func (c *capacity) size() (s size, err error) {
	err = c.db.QueryRow(c, "SELECT pg_total_relation_size($1::regclass), pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relid = $1::regclass",
		fleetSchema+".record").Scan(&s.bytes, &s.wal, &s.rows, &s.dead)
	return s, err
}

// measure begins calls at the given rate until the time is over, while sweeps run. A call begins when it is due, whether the calls before have ended or not,
// with capacityCallers under way at most. It records the figures of each tenth of the time, and the totals. It is an error if the requests at the server are
// not as many as the operations, or if a call failed.
func (c *capacity) measure(url string, length time.Duration, ended int64) error {
	group := fmt.Sprintf("%d operations a second for %v beside %d ended keys, sealed, 20 ms server", c.rate, length, ended)
	before, err := c.size()
	if err != nil {
		return err
	}
	c.took, c.failed = nil, nil // without the call of fill
	sweeping, stop := context.WithCancel(c)
	swept := make(chan int64, 1)
	go func() { swept <- c.sweep(sweeping, length/60) }()
	sentBefore, busy, began := c.sent.Load(), processorTime(), time.Now()
	var calls sync.WaitGroup
	slots := make(chan struct{}, capacityCallers) // one entry for each call under way
	late := int64(0)
	interval := time.Second / time.Duration(c.rate)
	n, slice := int64(0), 1
	for due := began; time.Since(began) < length && c.Err() == nil; due = due.Add(interval) {
		time.Sleep(time.Until(due))
		select {
		case slots <- struct{}{}:
		default: // all callers wait, so this call begins late
			late++
			slots <- struct{}{}
		}
		n++
		number := n
		calls.Go(func() { _ = c.call(url, number); <-slots })
		if slice < 10 && time.Since(began) > length*time.Duration(slice)/10 {
			c.slice(group, slice)
			slice++
		}
	}
	calls.Wait()
	took := time.Since(began)
	cpu := processorTime() - busy
	stop()
	c.slice(group, slice)
	if err := c.client.Flush(c); err != nil {
		return err
	}
	after, err := c.size()
	if err != nil {
		return err
	}
	c.add(group, "in all", "ops/s", samples{float64(n) / took.Seconds()})
	c.add(group, "in all", "WAL bytes an operation", samples{float64(after.wal-before.wal) / float64(n)})
	c.add(group, "in all", "table and index bytes an operation", samples{float64(after.bytes-before.bytes) / float64(n)})
	c.add(group, "in all", "dead rows at the end", samples{float64(after.dead)})
	c.add(group, "in all", "client CPU µs an operation, server included", samples{micros(cpu) / float64(n)})
	c.note("%d operations, %d requests at the server, %d calls failed, %d begun late since %d waited; %d answers swept meanwhile",
		n, c.sent.Load()-sentBefore, len(c.failed), late, capacityCallers, <-swept)
	c.atLeast(group+": of the rate", "", 0.99, samples{float64(n) / took.Seconds() / float64(c.rate)})
	if sent := c.sent.Load() - sentBefore; sent != n || len(c.failed) > 0 {
		return fmt.Errorf("%d requests for %d operations, %d calls failed: %w", sent, n, len(c.failed), errors.Join(c.failed[:min(3, len(c.failed))]...))
	}
	return nil
}

// sweep sweeps the journal after each interval, until ctx ends: it removes answers that are not needed any more. It returns the number of changed
// records, and adds failures to c.failed.
func (c *capacity) sweep(ctx context.Context, every time.Duration) (all int64) {
	for {
		select {
		case <-ctx.Done():
			return all
		case <-time.After(every):
		}
		for {
			n, err := c.client.Sweep(ctx)
			all += int64(n)
			if err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.failed = append(c.failed, fmt.Errorf("sweep: %w", err))
				c.mu.Unlock()
			}
			if err != nil || n < 10_000 { // after a larger sweep more may be due already
				break
			}
		}
	}
}

// slice records the latencies of the calls since the last slice, those of tenth n of the measurement: so the report shows whether they grow.
func (c *capacity) slice(group string, n int) {
	c.mu.Lock()
	took := c.took
	c.took = nil
	c.mu.Unlock()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	at := func(share float64) samples { return samples{took[min(len(took)-1, int(share*float64(len(took))))]} }
	name := fmt.Sprintf("tenth %d", n)
	c.add(group, name, "p50 ms", at(0.5))
	c.add(group, name, "p99 ms", at(0.99))
	c.add(group, name, "longest ms", at(1))
}
