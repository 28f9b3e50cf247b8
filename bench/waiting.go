package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// runWaiting measures Run with operations that become due one by one, in a bolt journal with many others due in an hour.
func runWaiting(b *bench) error {
	for _, waiting := range fullOrTiny(b, []int64{0, 100_000, 1_000_000}, []int64{0, 1_000}) {
		if err := waitBeside(b, waiting); err != nil {
			return err
		}
	}
	return nil
}

// waitBeside measures how late operations are sent that fall due, and the processor time of a pass (one look of Run for due operations), beside waiting other
// operations, which are due in an hour.
func waitBeside(b *bench, waiting int64) error {
	dir := filepath.Join(b.dir, "waiting")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var next atomic.Int64
	book, err := openBook(filepath.Join(dir, "waiting.db"), businessKeys, &next)
	if err != nil {
		return err
	}
	defer book.Close()
	book.mode.Store(int64(syncNone)) // the disk is not measured
	if err := book.postpone(b, waiting, time.Now().Add(time.Hour)); err != nil {
		return err
	}
	var cpu, half, most samples
	for range b.rounds {
		w := &dueWire{at: map[string]time.Time{}, done: make(chan struct{})}
		busy, passes, err := w.run(b, book, fullOrTiny(b, 50, 5))
		if err != nil {
			return err
		}
		cpu = append(cpu, millis(busy)/float64(passes))
		half, most = append(half, millis(percentile(w.late, 0.5))), append(most, millis(percentile(w.late, 1)))
	}
	group := fmt.Sprintf("one operation falls due every %v, %d others are due in an hour", dueEvery, waiting)
	b.add(group, "processor time a pass of Run", "ms", cpu)
	b.add(group, "from due to sent, p50", "ms", half)
	b.add(group, "from due to sent, at most", "ms", most)
	if waiting == 0 {
		b.note("nothing waits for the disk here; Run pauses for 100 ms at least, half of which is the usual delay")
	}
	return nil
}

// dueEvery is the time from one due operation to the next.
const dueEvery = 100 * time.Millisecond

// postpone begins n records whose next attempt is due at that time, in the benchmark's journal.
func (b *book) postpone(ctx context.Context, n int64, due time.Time) error {
	now := time.Now()
	return spread(ctx, n, 1024, func(int64) error {
		rec := b.kind.record(b.next.Add(1), now)
		rec.NextAttempt = due
		_, _, err := b.Begin(ctx, rec)
		return err
	})
}

// passCounter counts the passes of Run over a journal: each begins with one List of due operations.
type passCounter struct {
	*book
	passes atomic.Int64
}

// List lists the records that q selects. It first counts a pass of Run (a look for due operations) if q asks for operations that are due by now: each pass
// makes one such query.
func (c *passCounter) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if !q.DueBy.IsZero() && q.DueBy.Before(time.Now()) {
		c.passes.Add(1)
	}
	return c.book.List(ctx, q)
}

// dueWire is a transport that answers in memory and notes the lateness of each operation. It is used for one run.
type dueWire struct {
	mu   sync.Mutex           // guards at and late
	at   map[string]time.Time // the due times of operations not sent yet, by target
	late []time.Duration      // the time from due to sent of each operation
	done chan struct{}        // closed after the last operation
}

// RoundTrip implements http.RoundTripper. It notes how late the operation is sent: w.at has the due time of each that was not sent yet, by its path.
// A second send of an operation is an error. After the last operation it closes w.done.
func (w *dueWire) RoundTrip(req *http.Request) (*http.Response, error) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	at, known := w.at[req.URL.RequestURI()]
	if !known {
		return nil, errors.New("sent twice, or never meant to be sent")
	}
	delete(w.at, req.URL.RequestURI())
	if w.late = append(w.late, now.Sub(at)); len(w.at) == 0 {
		close(w.done)
	}
	return &http.Response{
		StatusCode: http.StatusCreated, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{}, Body: http.NoBody,
	}, nil
}

// prepare begins n operations in book that become due one after another, the first in a second. It notes their due times in w.at, by path. RoundTrip reads
// them.
func (w *dueWire) prepare(ctx context.Context, client *oncehttp.Client, book *book, n int) error {
	start := time.Now().Add(time.Second)
	for i := range n {
		number := book.next.Add(1)
		target, due := fmt.Sprintf("/due/%d", number), start.Add(time.Duration(i)*dueEvery)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.payments.example"+target, strings.NewReader("{}"))
		if err != nil {
			return err
		}
		rec, err := client.Prepare(req, oncehttp.NewScope("due").Key(fmt.Sprint(number)))
		if err != nil {
			return err
		}
		rec.NextAttempt, w.at[target] = due, due
		if _, _, err := book.Begin(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// run makes a client send n operations that fall due, by Run. It returns the processor time, and the number of passes: how often Run has looked for due
// operations. w.done is closed after the last send.
func (w *dueWire) run(ctx context.Context, book *book, n int) (busy time.Duration, passes int64, err error) {
	counter := &passCounter{book: book}
	client, err := oncehttp.New(oncehttp.Config{Journal: counter, Transport: w})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := w.prepare(ctx, client, book, n); err != nil {
		return 0, 0, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := processorTime()
	go func() { ended <- client.Run(running) }()
	<-w.done
	stop()
	err = <-ended
	return processorTime() - began, counter.passes.Load(), err
}
