package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

// The names of the charts; see figure.Chart.
const (
	chartWorkers = "throughput-by-workers"
	chartDelay   = "latency-by-delay"
	chartLive    = "throughput-by-live-records"
)

// cell is one load of the end-to-end measurements.
type cell struct {
	delay   time.Duration // of the server
	workers int
	target  float64 // the ratio to plain net/http's throughput that oncehttp must reach; 0: no targets
	raw     float64 // the same for the ratio to the raw log's
}

// group returns the name of the table with the figures of this load.
func (c cell) group() string {
	return fmt.Sprintf("%d ms server, %d workers", c.delay.Milliseconds(), c.workers)
}

// delayUsual is the delay of a server like that of a payments API.
const delayUsual = 20 * time.Millisecond

// field is a server with all contenders.
type field struct {
	*bench

	server     *server
	contenders []*contender // by the indexes from plainAt on
	next       atomic.Int64 // the number of the latest payment
}

// onField calls run with a server and all contenders (the compared programs), and closes them afterwards, also after an error.
func onField(b *bench, run func(f *field) error) error {
	server, err := startServer(b)
	if err != nil {
		return err
	}
	defer server.stop()
	dir := filepath.Join(b.dir, "end-to-end")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	f := &field{bench: b, server: server}
	f.contenders, err = openContenders(b, dir)
	defer func() { closeContenders(f.contenders, dir) }()
	if err != nil {
		return err
	}
	return run(f)
}

// runEndToEnd measures throughput under the loads with targets, and profiles oncehttp under the last one if wanted.
func runEndToEnd(b *bench) error {
	return onField(b, func(f *field) error {
		d := fullOrTiny(b, 1500*time.Millisecond, 60*time.Millisecond)
		// The server's delay, the workers, and the least ratios to the rates of plain net/http and of the raw log.
		for _, c := range []cell{{delayUsual, 64, 0.95, 0.97}, {delayUsual, 256, 0.90, 0.97}, {0, 64, 0.60, 0.80}} {
			if err := f.runCell(c, b.rounds, d); err != nil {
				return err
			}
		}
		b.note("DBOS's Go module is not served here (403); measured beforehand on a machine of this kind, its ratios were 0.41 / 0.12 / 0.04 " +
			"on PostgreSQL and 0.18 / 0.05 / 0.01 on SQLite, and 1,630 and 1,180 µs were added")
		return profileContender(b, f.contenders[onceAt], 64, f.server.payURL(0), &f.next)
	})
}

// runWorkers measures the throughput of the compared programs by the number of workers, for a chart, in less time for each than the loads with
// targets.
func runWorkers(b *bench) error {
	return onField(b, func(f *field) error {
		for _, workers := range fullOrTiny(b, []int{4, 16, 64, 128, 256, 512}, []int{4}) {
			c := cell{delay: delayUsual, workers: workers}
			if err := f.runCell(c, min(b.rounds, 3), fullOrTiny(b, 400*time.Millisecond, 50*time.Millisecond)); err != nil {
				return err
			}
		}
		return nil
	})
}

// The indexes of the contenders for comparisons in field.contenders.
const (
	plainAt = iota
	onceAt
	generatedAt
	sameAt
	rawAt
	peersAt // from here on
)

// openContenders opens all contenders, the programs to be compared, in the order of their indexes (plainAt and so on). With an error it returns those
// that were opened; the caller closes them in any case. Without PostgreSQL the job queue River is marked as missing.
func openContenders(b *bench, dir string) ([]*contender, error) {
	contenders := []*contender{plainContender()}
	for _, o := range []struct{ ownKeys, same bool }{{true, false}, {false, false}, {false, true}} {
		once, err := onceContender(dir, o.ownKeys, o.same)
		if err != nil {
			return contenders, err
		}
		contenders = append(contenders, once)
	}
	raw, err := rawContender(dir)
	if err != nil {
		return contenders, err
	}
	contenders = append(contenders, raw)
	naive, err := naiveContender(dir)
	if err != nil {
		return contenders, err
	}
	contenders = append(contenders, naive)
	queue, err := riverContender(b, b.dsn)
	if err != nil {
		b.note("River is missing: %s", strings.Join(strings.Fields(err.Error()), " "))
		return append(contenders, &contender{name: "River, tuned: PostgreSQL does not answer", missing: true}), nil
	}
	return append(contenders, queue), nil
}

// rounds calls run with each contender that is not missing in each of n rounds; each round begins with another one.
func (f *field) rounds(n int, run func(i int, l *contender) error) error {
	for r := range n {
		for k := range f.contenders {
			i := (r + k) % len(f.contenders)
			if f.contenders[i].missing {
				continue
			}
			if err := run(i, f.contenders[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// runCell measures the throughput of all contenders under one load, in n rounds of the time d each, and records figures and
// targets. A load without a target (0) is measured for the chart only. c.raw is the target beside the raw log.
func (f *field) runCell(c cell, n int, d time.Duration) error {
	url := f.server.payURL(c.delay)
	rates, syncs, cpu := make([]samples, len(f.contenders)), make([]samples, len(f.contenders)), make([]samples, len(f.contenders))
	err := f.rounds(n, func(i int, l *contender) error {
		if _, err := l.drive(f, c.workers, d/8, url, &f.next); err != nil { // fills pools and caches
			return err
		}
		before := statsOf(l)
		did, err := l.drive(f, c.workers, d, url, &f.next)
		if after := statsOf(l); after.Syncs > 0 { // 0: it has no bolt journal
			syncs[i] = append(syncs[i], float64(after.Syncs-before.Syncs)/float64(len(did.times)))
		}
		rates[i], cpu[i] = append(rates[i], did.rate), append(cpu[i], micros(did.cpu))
		return err
	})
	if err != nil {
		return err
	}
	chart := chartWorkers
	if c.target > 0 {
		chart = "" // runWorkers measures its points
	}
	for i, l := range f.contenders {
		if l.missing {
			f.blank(c.group(), l.name, "ops/s")
			continue
		}
		f.point(chart, c.group(), l.name, "ops/s", float64(c.workers), rates[i])
		f.add(c.group(), l.name, "of plain", rates[i].over(rates[plainAt]))
		f.add(c.group(), l.name, "client CPU µs/op", cpu[i])
		f.add(c.group(), l.name, "fsyncs/op", syncs[i])
	}
	if c.target == 0 {
		return nil
	}
	f.atLeast(c.group()+": oncehttp + bolt of plain net/http", "", c.target, rates[onceAt].over(rates[plainAt]))
	f.atLeast(c.group()+": oncehttp + bolt of the raw log", "", c.raw, rates[onceAt].over(rates[rawAt]))
	f.atLeast(c.group()+": the same bytes of distinct ones, generated keys", "", 0.95, rates[sameAt].over(rates[generatedAt]))
	for i, l := range f.contenders[peersAt:] { // the peers are other libraries with a similar promise
		if l.missing {
			continue
		}
		f.atLeast(c.group()+": oncehttp + bolt of "+l.name, "", 1, rates[onceAt].over(rates[peersAt+i]))
	}
	return nil
}

// statsOf returns the counts of syncs, commits and bytes of the compared program's bolt journal; zero if it has none.
func statsOf(l *contender) bolt.Stats {
	if l.stats == nil {
		return bolt.Stats{}
	}
	return l.stats()
}
