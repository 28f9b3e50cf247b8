package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"
)

// journalWriters is the number of concurrent callers.
const journalWriters = 64

// groupChart is the group of figures for charts only.
const groupChart = "for the chart"

// journalRun is the measurement of one kind of journal: with live records in it
// before, and one kind of keys.
type journalRun struct {
	kind keyKind
	live int64
	book *book // nil if live is 0: then every round has a new one

	disk, slow       figures // by the kind of sync
	rawDisk, rawSlow figures // of the raw log, each measured just before
}

// figures holds the samples of one journal with one kind of sync, one for each round.
type figures struct {
	rate                 samples // begins per second
	syncs, bytes, growth samples // for each begin; growth of the file, in bytes
}

// runJournal measures Begin (the durable write of a new operation) of bolt journals, empty and large ones, beside a raw log without an index: with keys of both
// kinds, and with the disk's own sync and a slower one. The rounds of all runs alternate.
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
		for _, live := range fullOrTiny(b, []int64{0, 100_000, 1_000_000}, []int64{0, 1_000, 3_000}) {
			r, err := newJournalRun(b, dir, kind, live, &next)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
	}
	for range b.rounds {
		for _, mode := range []syncMode{syncDisk, syncSlow} {
			for _, r := range runs {
				if err := r.round(b, dir, mode, &next); err != nil {
					return err
				}
			}
		}
	}
	reportJournal(b, runs, "the disk's own sync", syncDisk)
	reportJournal(b, runs, "every sync 5 ms longer", syncSlow)
	b.note("the raw log appends %d bytes a record with a checksum, joins callers as the journal does, keeps no index and frees nothing", len(recordFiller))
	return nil
}

// newJournalRun returns a run with a journal (its book) of live records with keys of this kind. With live 0 it has no book: each round then makes an empty one,
// since begins fill it. The caller closes the book. next numbers the payments.
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

// rawRound measures a raw log, the fastest file with the same promise: it appends ops entries to a new one at path, syncs it by mode, adds the samples to f,
// and removes the file.
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

// figuresOf returns the figures of the journal (own) and of the raw log for comparison (raw) with one kind of sync: the disk's own, or a slower one.
func (r *journalRun) figuresOf(mode syncMode) (own, raw *figures) {
	if mode == syncSlow {
		return &r.slow, &r.rawSlow
	}
	return &r.disk, &r.rawDisk
}

// round measures appends to a raw log, and then as many begins in the journal, and adds the samples to both
// figures. mode is the kind of sync. A slower sync gets fewer operations. A run without a filled journal (book is nil) gets an empty one for this round.
func (r *journalRun) round(b *bench, dir string, mode syncMode, next *atomic.Int64) error {
	ops := fullOrTiny(b, int64(30_000), 300)
	if mode == syncSlow {
		ops = fullOrTiny(b, int64(6_400), 300)
	}
	own, raw := r.figuresOf(mode)
	if err := rawRound(b, filepath.Join(dir, "raw.log"), mode, ops, raw); err != nil {
		return err
	}
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
	return own.measure(book, func() error { return book.begin(b, ops, journalWriters, nil) }, ops)
}

// measure calls run, which begins ops records in book (a journal with a count of its syncs), and adds one sample of each kind to f: records per second,
// and for each record the syncs, the bytes written and the growth of the file (its blocks on the disk).
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

// report records the figures as a row of a table; the column rival (its title) is the ratio of the rate to that of base.
func (f *figures) report(b *bench, group, name, rival string, base *figures) {
	b.add(group, name, "begins/s", f.rate)
	b.add(group, name, rival, f.rate.over(base.rate))
	b.add(group, name, "fsyncs/op", f.syncs)
	b.add(group, name, "B written/op", f.bytes)
	b.add(group, name, "B grown/op", f.growth)
}

// reportJournal records the figures and targets of all runs with one kind of sync; sync names it for people. A run measures begins, the durable writes of
// new operations, in a journal with a number of records from before (live).
func reportJournal(b *bench, runs []*journalRun, sync string, mode syncMode) {
	group := fmt.Sprintf("begin, %d writers, %s", journalWriters, sync)
	const rawName, rival = "raw group-committed log", "of the raw log"
	limit := 0.40 // the least ratio to the raw log's rate; a slow sync hides most of the difference
	if mode == syncSlow {
		limit = 0.90
	}
	var all figures
	for _, r := range runs {
		_, raw := r.figuresOf(mode)
		all.rate, all.syncs = append(all.rate, raw.rate...), append(all.syncs, raw.syncs...)
		all.bytes, all.growth = append(all.bytes, raw.bytes...), append(all.growth, raw.growth...)
	}
	all.report(b, group, rawName, rival, &all)
	var none samples // the rate of the run without live records; it stands before the others of its kind
	for _, r := range runs {
		f, raw := r.figuresOf(mode)
		name := fmt.Sprintf("bolt, %s, %d live", r.kind, r.live)
		f.report(b, group, name, rival, raw)
		b.atLeast(sync+": "+name+", of the raw log", "", limit, f.rate.over(raw.rate))
		if r.live == 0 {
			none = f.rate
		}
		if r.live == fullOrTiny(b, int64(1_000_000), 3_000) {
			b.atLeast(sync+": "+name+", of none live", "", 0.8, f.rate.over(none))
		}
		if mode != syncDisk {
			continue
		}
		column, x := fmt.Sprintf("%d live", r.live), float64(r.live)/1000
		b.point(chartLive, groupChart, "bolt, "+string(r.kind), column, x, f.rate)
		if r.kind == businessKeys {
			b.point(chartLive, groupChart, rawName, column, x, raw.rate)
		}
	}
}
