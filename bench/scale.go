package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

const mebi = 1 << 20

// runScale measures one journal through its life: filled with a million finished and a million pending records, opened, listed, swept, drained, and
// filled again. Each step starts with the journal as the step before has left it.
func runScale(b *bench) error {
	dir := filepath.Join(b.dir, "scale")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	million := fullOrTiny(b, int64(1_000_000), 3_000)
	path := filepath.Join(dir, "scale.db")
	var next atomic.Int64
	if err := buildScale(b, path, million, &next); err != nil {
		return err
	}
	if err := scaleOpen(b, path); err != nil {
		return err
	}
	book, err := openBook(path, businessKeys, &next)
	if err != nil {
		return err
	}
	defer book.Close()
	if err := scaleList(b, book, million); err != nil {
		return err
	}
	if err := scaleSweep(b, book, million); err != nil {
		return err
	}
	if err := scaleDrain(b, book); err != nil {
		return err
	}
	return scaleReuse(b, book, million)
}

// buildScale creates the journal at path: million finished records, then as many pending ones. It is closed afterwards, so that its opening can be measured. In
// a tiny run million is less than its name says. next numbers the payments.
func buildScale(b *bench, path string, million int64, next *atomic.Int64) error {
	book, err := openBook(path, businessKeys, next)
	if err != nil {
		return err
	}
	defer book.Close()
	began := time.Now()
	err = book.fill(b, million, func(rec persist.Record) error { return book.finish(b, rec) })
	if err != nil {
		return err
	}
	if err := book.fill(b, million, nil); err != nil {
		return err
	}
	size, err := blocks(path)
	b.note("%d finished and %d pending records take %d MB; writing them, unsynced, took %.0f s", million, million, size/1e6, time.Since(began).Seconds())
	if err != nil {
		return err
	}
	return book.Close()
}

// opened is the result of role-open.
type opened struct {
	Seconds float64
	Anon    int64 // anonymous memory after it, in bytes
	Peak    int64 // the same at its peak
}

// openRole is the program of a child process: it opens the journal of its argument and prints the time and the memory for it.
func openRole(args []string) error {
	stop := watchMemory()
	began := time.Now()
	j, err := bolt.Open(args[0], bolt.Options{})
	took := time.Since(began)
	if err != nil {
		return err
	}
	peak, err := stop()
	if err != nil {
		return err
	}
	anon, err := residentMemory("RssAnon")
	if err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	return printJSON(opened{took.Seconds(), anon, peak})
}

// scaleOpen measures the opening of the journal in a new process, without the file in the page cache (cold) and with it (warm). Nothing else may have it open.
// On a system where the file cannot be taken out of the cache it only records a note.
func scaleOpen(b *bench, path string) error {
	var warm, cold, anon, peak, left samples
	for range b.rounds {
		var o opened
		stayed, err := chill(path) // the share of the file that is still cached
		if err != nil {
			b.note("a cold open is not measured: %v", err)
			return nil
		}
		if err := runSelf(b, &o, "role-open", path); err != nil {
			return err
		}
		cold, left, peak = append(cold, o.Seconds), append(left, 100*stayed), append(peak, float64(o.Peak)/1e6)
		if err := readThrough(path); err != nil {
			return err
		}
		if err := runSelf(b, &o, "role-open", path); err != nil {
			return err
		}
		warm, anon, peak = append(warm, o.Seconds), append(anon, float64(o.Anon)/1e6), append(peak, float64(o.Peak)/1e6)
	}
	const group = "open"
	b.add(group, "warm", "s", warm)
	b.add(group, "cold", "s", cold)
	b.add(group, "cold", "% of the file still cached", left)
	b.add(group, "anonymous memory after it", "MB", anon)
	b.add(group, "anonymous memory at its peak", "MB", peak)
	b.atMost("open warm", " s", 3, warm)
	b.atMost("open cold", " s", 5, cold)
	b.atMost("anonymous memory at the peak of open", " MB", 300, peak)
	return nil
}

// readThrough reads a file, so that it is in the page cache.
func readThrough(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// liveHeap returns the size of the live heap in MiB, after a collection.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / mebi
}

// scaleList measures an iteration over all pending records, and the growth of the heap meanwhile: a listing must not hold them all. million is their number
// (less in a tiny run); to find another number is an error.
func scaleList(b *bench, book *book, million int64) error {
	before := liveHeap()
	var most float64
	var n int64
	began := time.Now()
	for _, err := range book.List(b, persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending, persist.StateHeld}}) {
		if err != nil {
			return err
		}
		if n++; n%(million/10) == 0 {
			most = max(most, liveHeap()-before)
		}
	}
	if n != million {
		return fmt.Errorf("listed %d pending records, want %d", n, million)
	}
	const group = "iterating over all pending records"
	b.add(group, "took", "s", samples{time.Since(began).Seconds()})
	b.add(group, "live heap, most above the beginning", "MiB", samples{most})
	b.atMost("heap that grows while a million pending are listed", " MiB", 4, samples{most})
	return nil
}

// sweepAll returns limits by which Sweep removes finished records of any age completely (-1 keeps nothing), and at most as many as most.
func sweepAll(most int64) persist.Limits {
	l := persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1}
	l.Max = int(most)
	return l
}

const sweepCallers = 16

// scaleSweep removes the finished records in as many parts as there are rounds, while callers begin records, and before each part measures the same callers
// without a sweep. million is the number of finished records, less in a tiny run.
func scaleSweep(b *bench, book *book, million int64) error {
	var alone, beside, longest, rate samples
	part := million / int64(b.rounds)
	for range b.rounds {
		times, err := beginUntil(b, book, after(fullOrTiny(b, time.Second, 30*time.Millisecond)))
		if err != nil {
			return err
		}
		alone = append(alone, millis(percentile(times, 0.99)))
		done := make(chan struct{})
		var swept int
		var failed error
		var took time.Duration
		go func() {
			defer close(done)
			began := time.Now()
			swept, failed = book.Sweep(b, sweepAll(part))
			took = time.Since(began)
		}()
		times, err = beginUntil(b, book, done)
		if err != nil || failed != nil {
			return fmt.Errorf("sweep: %v, begin: %w", failed, err)
		}
		if int64(swept) != part {
			return fmt.Errorf("swept %d records, want %d", swept, part)
		}
		beside = append(beside, millis(percentile(times, 0.99)))
		longest = append(longest, millis(percentile(times, 1)))
		rate = append(rate, float64(swept)/took.Seconds())
	}
	group := fmt.Sprintf("sweeping a million finished records, %d callers begin meanwhile", sweepCallers)
	b.add(group, "Begin at p99, no sweep", "ms", alone)
	b.add(group, "Begin at p99, during the sweep", "ms", beside)
	b.add(group, "the longest Begin during the sweep", "ms", longest)
	b.add(group, "swept", "records/s", rate)
	b.atMost("Begin at p99 during a sweep of a million", " ms", 20, beside)
	return nil
}

// millis returns d in milliseconds.
func millis(d time.Duration) float64 { return micros(d) / 1000 }

// after returns a channel that is closed after d.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// beginUntil lets sweepCallers goroutines begin records (write new operations durably) until done is closed, and returns the time of each Begin. The first
// error ends all and is returned, but only after done is closed.
func beginUntil(ctx context.Context, book *book, done <-chan struct{}) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	times := make([][]time.Duration, sweepCallers)
	var wg sync.WaitGroup
	for w := range sweepCallers {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-ctx.Done():
					return
				default:
				}
				began := time.Now()
				if err := book.begin(ctx, 1, 1, nil); err != nil {
					cancel(err)
					return
				}
				times[w] = append(times[w], time.Since(began))
			}
		})
	}
	wg.Wait()
	<-done // after an error, too: what closes done still uses the journal
	var all []time.Duration
	for _, t := range times {
		all = append(all, t...)
	}
	return all, context.Cause(ctx)
}

// scaleDrain finishes and removes all pending records, and then measures begins (durable writes of new operations)
// in this drained file and in new ones by turns: the free space in the file must not slow them.
func scaleDrain(b *bench, book *book) error {
	book.mode.Store(int64(syncNone)) // draining is not measured
	for rec, err := range book.List(b, persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending}}) {
		if err == nil {
			err = book.finish(b, rec)
		}
		if err != nil {
			return err
		}
	}
	if err := book.Flush(b); err != nil {
		return err
	}
	if _, err := book.Sweep(b, sweepAll(1<<31)); err != nil {
		return err
	}
	book.mode.Store(int64(syncDisk))
	drained, fresh := figures{}, figures{}
	ops := fullOrTiny(b, int64(16_000), 300)
	for range b.rounds {
		empty, err := openBook(filepath.Join(filepath.Dir(book.path), "empty.db"), businessKeys, book.next)
		if err != nil {
			return err
		}
		err = fresh.measure(empty, func() error { return empty.begin(b, ops, journalWriters, nil) }, ops)
		_, _ = empty.Close(), os.Remove(empty.path)
		if err != nil {
			return err
		}
		if err := drained.measure(book, func() error { return book.begin(b, ops, journalWriters, nil) }, ops); err != nil {
			return err
		}
	}
	const group = "begin, 64 writers"
	fresh.report(b, group, "in a new file", "of a new file", &fresh)
	drained.report(b, group, "after the million was drained", "of a new file", &fresh)
	b.atLeast("begins after the drain, of those in a new file (5 % is noise)", "", 0.95, drained.rate.over(fresh.rate))
	return nil
}

// scaleReuse begins million records, less than were removed before, and measures the growth of the file: it should use the free space in it. The records are
// written without syncs.
func scaleReuse(b *bench, book *book, million int64) error {
	before, err := blocks(book.path)
	if err != nil {
		return err
	}
	if err := book.fill(b, million, nil); err != nil {
		return err
	}
	now, err := blocks(book.path)
	if err != nil {
		return err
	}
	grown := samples{100 * float64(now-before) / float64(before)}
	b.add("free space", "file before a million new records", "MB", samples{float64(before) / 1e6})
	b.add("free space", "growth by them", "%", grown)
	b.atMost("growth of a drained file by a million records", " %", 1, grown)
	return nil
}
