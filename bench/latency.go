package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// runLatency measures the time that oncehttp adds for one worker, by the server's delay.
func runLatency(b *bench) error {
	return onField(b, func(f *field) error {
		for _, delay := range fullOrTiny(b, []time.Duration{0, 5, 20, 50}, []time.Duration{0}) {
			if err := f.runLone(delay * time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
}

// runLone measures the time added to plain net/http for one worker, and for comparison that of a pair of syncs, the least work of a durable write. The pairs
// are made between requests, like a journal's syncs, because a disk and a processor are slower just after a rest.
func (f *field) runLone(delay time.Duration) error {
	url := f.server.payURL(delay)
	group := fmt.Sprintf("%d ms server, 1 worker", delay.Milliseconds())
	n, d := f.bench.rounds, fullOrTiny(f.bench, 500*time.Millisecond, 50*time.Millisecond)
	if delay > 0 {
		n, d = min(n, 3), max(d, 12*delay) // a slow server: fewer rounds, of about twelve operations at least
	}
	pair, err := openPair(filepath.Join(f.dir, "pair"), f.contenders[plainAt])
	if err != nil {
		return err
	}
	defer pair.close()
	medians := make([]samples, len(f.contenders))
	var pairs, sizes samples
	err = f.rounds(n, func(i int, l *contender) error {
		before := statsOf(l)
		did, err := l.drive(f, 1, d, url, &f.next)
		medians[i] = append(medians[i], micros(percentile(did.times, 0.5)))
		if i != onceAt || err != nil {
			return err
		}
		after := statsOf(l)
		size := (after.Bytes - before.Bytes) / max(1, after.Commits-before.Commits)
		p50, err := pair.measure(int(size), d, url, &f.next)
		pairs, sizes = append(pairs, micros(p50)), append(sizes, float64(size))
		return err
	})
	if err != nil {
		return err
	}
	for i, l := range f.contenders {
		if l.missing {
			f.blank(group, l.name, "p50 µs")
			continue
		}
		added := medians[i].minus(medians[plainAt])
		f.add(group, l.name, "p50 µs", medians[i])
		if i != plainAt {
			f.point(chartDelay, group, l.name, "added µs", float64(delay.Milliseconds()), added)
			f.add(group, l.name, "of a pair of fdatasyncs", added.over(pairs))
		}
	}
	f.add(group, "a pair of fdatasyncs of oncehttp's sizes", "p50 µs", pairs)
	f.add(group, "a pair of fdatasyncs of oncehttp's sizes", "B per commit", sizes)
	if delay == 0 {
		f.atMost(group+": added p50, of a pair of fdatasyncs", "", 1.3, medians[onceAt].minus(medians[plainAt]).over(pairs))
	}
	return nil
}

// pair makes the writes of one bbolt commit: its pages and a sync, its meta page
// and another sync. The file has its full size beforehand, so that no sync has to
// record a new size. Its user must call close.
type pair struct {
	file  *os.File
	plain *contender // sends the requests between the pairs
	at    int64      // the offset of the next pages
	buf   []byte     // pairBytes of zeros
}

// pairBytes is the size of the file, metaBytes that of the meta page.
const (
	pairBytes = 16 << 20
	metaBytes = 4 << 10
)

// openPair creates the file for pairs of writes like those of one bolt commit, at its full size and synced, so that no later sync has to record a new size.
// plain makes the requests between them.
func openPair(path string, plain *contender) (*pair, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	p := &pair{file: f, plain: plain, at: metaBytes, buf: make([]byte, pairBytes)}
	if _, err := f.Write(p.buf); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, f.Sync()
}

// measure returns the median time of a pair over the time d, with a request after
// each. size is the number of bytes of one commit.
func (p *pair) measure(size int, d time.Duration, url string, next *atomic.Int64) (time.Duration, error) {
	pages := min(max(size-metaBytes, metaBytes), pairBytes/4) // the commit without its meta page: one page at least
	var times []time.Duration
	for began := time.Now(); time.Since(began) < d; {
		start := time.Now()
		if err := p.commit(pages); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
		if err := p.plain.do(url, next.Add(1)); err != nil {
			return 0, err
		}
	}
	return percentile(times, 0.5), nil
}

// commit writes as one commit of bolt does: pages bytes of data and a sync, then the meta page and another sync.
func (p *pair) commit(pages int) error {
	if p.at+int64(pages) > pairBytes { // at the end of the file it begins again, behind the meta page
		p.at = metaBytes
	}
	if _, err := p.file.WriteAt(p.buf[:pages], p.at); err != nil {
		return err
	}
	if err := fdatasync(p.file); err != nil {
		return err
	}
	p.at += int64(pages)
	if _, err := p.file.WriteAt(p.buf[:metaBytes], 0); err != nil {
		return err
	}
	return fdatasync(p.file)
}

// close removes the file.
func (p *pair) close() error { return errors.Join(p.file.Close(), os.Remove(p.file.Name())) }
