package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"
)

const journalWriters = 64

// groupChart is the table of what only a chart shows.
const groupChart = "for the chart"

// journalRun is one kind of journal that is measured: how many records live in
// it, and how their keys are made.
type journalRun struct {
	kind keyKind
	live int64
	book *book // nil if none live: then every round has a new one

	disk, slow figures
}

// figures are what is measured of one journal with one kind of sync.
type figures struct {
	rate, syncs, bytes, growth samples
}

func runJournal(b *bench) error {
	dir := filepath.Join(b.dir, "journal")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var next atomic.Int64
	var runs []*journalRun
	defer func() {
		for _, r := range runs {
			if r.book != nil {
				_ = r.book.Close()
			}
		}
	}()
	for _, kind := range []keyKind{businessKeys, randomKeys} {
		for _, live := range pick(b, []int64{0, 100_000, 1_000_000}, []int64{0, 1_000, 3_000}) {
			r, err := newJournalRun(b, dir, kind, live, &next)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
	}
	raw := map[syncMode]*figures{syncDisk: {}, syncSlow: {}}
	for range b.rounds {
		for _, mode := range []syncMode{syncDisk, syncSlow} {
			if err := journalRound(b, dir, runs, mode, raw[mode], &next); err != nil {
				return err
			}
		}
	}
	reportJournal(b, runs, "the disk's own sync", syncDisk, raw[syncDisk])
	reportJournal(b, runs, "every sync 5 ms longer", syncSlow, raw[syncSlow])
	b.note("the raw log appends %d bytes a record with a checksum, joins callers as the journal does, keeps no index and frees nothing", len(recordFiller))
	return nil
}

func newJournalRun(b *bench, dir string, kind keyKind, live int64, next *atomic.Int64) (*journalRun, error) {
	r := &journalRun{kind: kind, live: live}
	if live == 0 {
		return r, nil
	}
	book, err := openBook(filepath.Join(dir, fmt.Sprintf("%.6s-%d.db", kind, live)), kind, next)
	if err != nil {
		return nil, err
	}
	r.book = book
	return r, book.fill(b, live, nil)
}

// journalRound measures the raw log, and every journal after it.
func journalRound(b *bench, dir string, runs []*journalRun, mode syncMode, raw *figures, next *atomic.Int64) error {
	ops := pick(b, int64(30_000), 300)
	if mode == syncSlow {
		ops = pick(b, int64(6_400), 300)
	}
	if err := rawRound(b, filepath.Join(dir, "raw.log"), mode, ops, raw); err != nil {
		return err
	}
	for _, r := range runs {
		if err := r.round(b, dir, mode, ops, next); err != nil {
			return err
		}
	}
	return nil
}

func rawRound(b *bench, path string, mode syncMode, ops int64, f *figures) error {
	log, err := openRawLog(path, mode.sync)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer log.close()
	entry := []byte(recordFiller)
	runtime.GC()
	began := time.Now()
	if err := spread(b, ops, journalWriters, func(int64) error { return log.append(entry) }); err != nil {
		return err
	}
	f.rate = append(f.rate, float64(ops)/time.Since(began).Seconds())
	f.syncs = append(f.syncs, float64(log.syncs)/float64(ops))
	f.bytes = append(f.bytes, float64(log.bytes)/float64(ops))
	f.growth = append(f.growth, float64(log.bytes)/float64(ops))
	return nil
}

// round begins records in a journal by 64 writers.
func (r *journalRun) round(b *bench, dir string, mode syncMode, ops int64, next *atomic.Int64) error {
	book := r.book
	if book == nil {
		fresh, err := openBook(filepath.Join(dir, "fresh.db"), r.kind, next)
		if err != nil {
			return err
		}
		defer os.Remove(fresh.path)
		defer fresh.Close()
		book = fresh
	}
	book.mode.Store(int64(mode))
	f := &r.disk
	if mode == syncSlow {
		f = &r.slow
	}
	return f.measure(book, func() error { return book.begin(b, ops, journalWriters, nil) }, ops)
}

func (f *figures) measure(book *book, run func() error, ops int64) error {
	size, err := blocks(book.path)
	if err != nil {
		return err
	}
	stats, syncs := book.Stats(), book.syncs.Load()
	runtime.GC()
	began := time.Now()
	if err := run(); err != nil {
		return err
	}
	took := time.Since(began)
	grown, err := blocks(book.path)
	n := float64(ops)
	f.rate = append(f.rate, n/took.Seconds())
	f.syncs = append(f.syncs, float64(book.syncs.Load()-syncs)/n)
	f.bytes = append(f.bytes, float64(book.Stats().Bytes-stats.Bytes)/n)
	f.growth = append(f.growth, float64(grown-size)/n)
	return err
}

func (f *figures) report(b *bench, group, name string, raw *figures) {
	b.add(group, name, "begins/s", f.rate)
	b.add(group, name, "of the raw log", f.rate.over(raw.rate))
	b.add(group, name, "fsyncs/op", f.syncs)
	b.add(group, name, "B written/op", f.bytes)
	b.add(group, name, "B grown/op", f.growth)
}

func reportJournal(b *bench, runs []*journalRun, sync string, mode syncMode, raw *figures) {
	group := fmt.Sprintf("begin, %d writers, %s", journalWriters, sync)
	limit := 0.40
	if mode == syncSlow {
		limit = 0.90
	}
	raw.report(b, group, "raw group-committed log", raw)
	var none samples
	for _, r := range runs {
		f := &r.disk
		if mode == syncSlow {
			f = &r.slow
		}
		name := fmt.Sprintf("bolt, %s, %d live", r.kind, r.live)
		f.report(b, group, name, raw)
		b.atLeast(sync+": "+name+", of the raw log", "", limit, f.rate.over(raw.rate))
		if r.live == 0 {
			none = f.rate
		}
		if r.live == pick(b, int64(1_000_000), 3_000) {
			b.atLeast(sync+": "+name+", of none live", "", 0.8, f.rate.over(none))
		}
		if mode == syncDisk {
			b.point(chartLive, groupChart, "bolt, "+string(r.kind), fmt.Sprintf("%d live", r.live), float64(r.live)/1000, f.rate)
			if r.kind == businessKeys {
				b.point(chartLive, groupChart, "raw group-committed log", fmt.Sprintf("%d live", r.live), float64(r.live)/1000, raw.rate)
			}
		}
	}
}
