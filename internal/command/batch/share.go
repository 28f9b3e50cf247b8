package batch

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/results"
)

// Batches in several processes may share a journal on a server, and even a file of rows. A row being sent by
// another process is put off until the other rows are done, and its answer is then taken from the journal.

// The pauses between two looks at a row being sent by another process.
const (
	shareFirst = 100 * time.Millisecond
	shareMost  = 2 * time.Second
)

// putOff puts a row off if another process is sending it, and returns true. It returns false if the row was tried, or if the rows have an order.
func (b *batch) putOff(j *job, l *results.Line) bool {
	if !l.Elsewhere() || b.plan.orderedBy >= 0 {
		return false
	}
	b.bar.putOff()
	b.mu.Lock()
	defer b.mu.Unlock()
	j.late = true
	b.later = append(b.later, *j)
	return true
}

// workLater works on the rows in b.later, which were put off before, and waits for their ends.
func (b *batch) workLater(ctx context.Context) {
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range min(b.flags.workers, len(b.later)) {
		workers.Go(func() { b.work(ctx, jobs, b.await) })
	}
	for _, j := range b.later {
		select {
		case jobs <- j:
		case <-ctx.Done():
		}
	}
	close(jobs)
	workers.Wait()
}

// await calls do for a row, and again while another process is sending the row, within the time limit of a run for
// one operation.
func (b *batch) await(ctx context.Context, j *job) results.Line {
	waits, stop := context.WithTimeout(ctx, cmp.Or(b.flags.Retry.MaxElapsed, 2*time.Minute))
	defer stop()
	l := b.do(ctx, j)
	for pause := shareFirst; l.Elsewhere(); pause = min(2*pause, shareMost) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-waits.Done():
			timer.Stop()
			return l
		}
		l = b.do(ctx, j)
	}
	return l
}
