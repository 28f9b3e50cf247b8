package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

// The charts, which are drawn from the figures that carry their names.
const (
	chartWorkers = "throughput-by-workers"
	chartDelay   = "latency-by-delay"
	chartLive    = "throughput-by-live-records"
)

// cell is one shape of load.
type cell struct {
	delay   time.Duration
	workers int
	target  float64 // of plain net/http's throughput, or 0
}

func (c cell) group() string {
	return fmt.Sprintf("%d ms server, %d workers", c.delay.Milliseconds(), c.workers)
}

// cells are those with a target, then those that a chart needs besides.
func cells(b *bench) []cell {
	list := []cell{{20 * time.Millisecond, 64, 0.95}, {20 * time.Millisecond, 256, 0.90}, {0, 64, 0.60}}
	return append(list, pick(b, []cell{
		{20 * time.Millisecond, 4, 0}, {20 * time.Millisecond, 16, 0}, {20 * time.Millisecond, 128, 0}, {20 * time.Millisecond, 512, 0},
	}, nil)...)
}

func runEndToEnd(b *bench) error {
	server, err := startServer(b)
	if err != nil {
		return err
	}
	defer server.stop()
	dir := filepath.Join(b.dir, "end-to-end")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	lanes, err := openLanes(b, dir)
	defer func() { closeLanes(lanes, dir) }()
	if err != nil {
		return err
	}
	var next atomic.Int64
	for _, c := range cells(b) {
		if err := runCell(b, server, lanes, c, &next); err != nil {
			return err
		}
	}
	for _, delay := range pick(b, []time.Duration{0, 5, 20, 50}, []time.Duration{0}) {
		if err := runLone(b, server, lanes, delay*time.Millisecond, &next); err != nil {
			return err
		}
	}
	b.note("DBOS's Go module is not served here (403); measured beforehand on a machine of this kind, its ratios were 0.41 / 0.12 / 0.04 " +
		"on PostgreSQL and 0.18 / 0.05 / 0.01 on SQLite, and 1,630 and 1,180 µs were added")
	if b.profile == "" {
		return nil
	}
	return profileDo(b, lanes[1], server.payURL(0), &next)
}

// openLanes opens all lanes; plain net/http is the first, oncehttp the second.
func openLanes(b *bench, dir string) ([]*lane, error) {
	once, err := onceLane(dir, true)
	if err != nil {
		return nil, err
	}
	lanes := []*lane{plainLane(), once}
	generated, err := onceLane(dir, false)
	if err != nil {
		return lanes, err
	}
	lanes = append(lanes, generated)
	raw, err := rawLane(dir)
	if err != nil {
		return lanes, err
	}
	lanes = append(lanes, raw)
	naive, err := naiveLane(dir)
	if err != nil {
		return lanes, err
	}
	lanes = append(lanes, naive)
	queue, err := riverLane(b, b.dsn)
	if err != nil {
		b.note("River is missing: %v", err)
		return lanes, nil
	}
	return append(lanes, queue), nil
}

// rounds runs every lane once a round, each round beginning with another, and
// hands what they did to keep.
func rounds(b *bench, n int, lanes []*lane, run func(i int, l *lane) error) error {
	for r := range n {
		for k := range lanes {
			i := (r + k) % len(lanes)
			if err := run(i, lanes[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// runCell measures throughput under one shape of load.
func runCell(b *bench, server *server, lanes []*lane, c cell, next *atomic.Int64) error {
	url, n := server.payURL(c.delay), b.rounds
	d := pick(b, 900*time.Millisecond, 60*time.Millisecond)
	if c.target == 0 { // a point of a chart
		n, d = min(n, 3), 500*time.Millisecond
	}
	rates, syncs := make([]samples, len(lanes)), make([]samples, len(lanes))
	err := rounds(b, n, lanes, func(i int, l *lane) error {
		if _, err := l.drive(b, c.workers, d/8, url, next); err != nil { // connections, and caches
			return err
		}
		before := statsOf(l)
		did, err := l.drive(b, c.workers, d, url, next)
		if after := statsOf(l); after.Syncs > 0 {
			syncs[i] = append(syncs[i], float64(after.Syncs-before.Syncs)/float64(len(did.times)))
		}
		rates[i] = append(rates[i], did.rate)
		return err
	})
	if err != nil {
		return err
	}
	for i, l := range lanes {
		chart := chartWorkers
		if c.delay == 0 {
			chart = ""
		}
		b.point(chart, c.group(), l.name, "ops/s", float64(c.workers), rates[i])
		b.add(c.group(), l.name, "of plain", rates[i].over(rates[0]))
		b.add(c.group(), l.name, "fsyncs/op", syncs[i])
	}
	if c.target == 0 {
		return nil
	}
	b.atLeast(c.group()+": oncehttp + bolt of plain net/http", "", c.target, rates[1].over(rates[0]))
	for i, l := range lanes[4:] {
		b.atLeast(c.group()+": oncehttp + bolt of "+l.name, "", 1, rates[1].over(rates[4+i]))
	}
	return nil
}

func statsOf(l *lane) bolt.Stats {
	if l.stats == nil {
		return bolt.Stats{}
	}
	return l.stats()
}

// runLone measures what one worker waits longer than with plain net/http.
func runLone(b *bench, server *server, lanes []*lane, delay time.Duration, next *atomic.Int64) error {
	url := server.payURL(delay)
	group := fmt.Sprintf("%d ms server, 1 worker", delay.Milliseconds())
	n, d := b.rounds, pick(b, 500*time.Millisecond, 50*time.Millisecond)
	if delay > 0 {
		n, d = min(n, 3), max(d, 12*delay)
	}
	pair, err := openPair(filepath.Join(b.dir, "pair"))
	if err != nil {
		return err
	}
	defer pair.close()
	medians := make([]samples, len(lanes))
	var pairs samples
	err = rounds(b, n, lanes, func(i int, l *lane) error {
		before := statsOf(l)
		did, err := l.drive(b, 1, d, url, next)
		medians[i] = append(medians[i], micros(percentile(did.times, 0.5)))
		if i != 1 || err != nil {
			return err
		}
		after := statsOf(l)
		size := (after.Bytes - before.Bytes) / max(1, after.Commits-before.Commits)
		p50, err := pair.measure(int(size), d/2)
		pairs = append(pairs, micros(p50))
		return err
	})
	if err != nil {
		return err
	}
	for i, l := range lanes {
		added := medians[i].minus(medians[0])
		b.add(group, l.name, "p50 µs", medians[i])
		if i > 0 {
			b.point(chartDelay, group, l.name, "added µs", float64(delay.Milliseconds()), added)
			b.add(group, l.name, "of a pair of fdatasyncs", added.over(pairs))
		}
	}
	b.add(group, "a pair of fdatasyncs of oncehttp's sizes", "p50 µs", pairs)
	if delay == 0 {
		b.atMost(group+": added p50, of a pair of fdatasyncs", "", 1.3, medians[1].minus(medians[0]).over(pairs))
	}
	return nil
}

// pair is what a commit of bbolt's costs the disk: its pages and a sync, its
// meta page and another sync. The file is written beforehand, so that no sync
// has to record a new size.
type pair struct {
	file *os.File
	at   int64
	buf  []byte
}

const (
	pairBytes = 16 << 20
	metaBytes = 4 << 10
)

func openPair(path string) (*pair, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	p := &pair{file: f, buf: make([]byte, pairBytes)}
	if _, err := f.Write(p.buf); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, f.Sync()
}

// measure is the median of as many pairs as there is time for.
func (p *pair) measure(size int, d time.Duration) (time.Duration, error) {
	pages := min(max(size-metaBytes, metaBytes), pairBytes/4)
	var times []time.Duration
	for began := time.Now(); time.Since(began) < d; {
		start := time.Now()
		if p.at+int64(pages) > pairBytes {
			p.at = metaBytes
		}
		for _, w := range []struct {
			at   int64
			size int
		}{{p.at, pages}, {0, metaBytes}} {
			if _, err := p.file.WriteAt(p.buf[:w.size], w.at); err != nil {
				return 0, err
			}
			if err := fdatasync(p.file); err != nil {
				return 0, err
			}
		}
		p.at += int64(pages)
		times = append(times, time.Since(start))
	}
	return percentile(times, 0.5), nil
}

func (p *pair) close() error { return errors.Join(p.file.Close(), os.Remove(p.file.Name())) }
