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

// putOff keeps a row for the end of the run if another process is sending it (l.Elsewhere), and returns true. Else it returns false, and l is the row's result. With
// --ordered-by, rows are never put off: doInTurn has waited, since the rows behind must not pass it. j.late keeps the row from being put off twice.
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

// workLater tries the rows that putOff kept, at the end of the run. For each it waits until the other process has ended it, or a time limit.
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

// await sends a row, and tries it again while another process is sending it, until the time limit of a run for one operation. It returns the row's result line, which
// may still say that another process has the row.
func (b *batch) await(ctx context.Context, j *job) results.Line {
	waits, stop := context.WithTimeout(ctx, cmp.Or(b.flags.Retry.MaxElapsed, 2*time.Minute)) // the client's default, too
	defer stop()
	l := b.do(ctx, j)
	if l.Elsewhere() {
		b.bar.elsewhere(1)
		defer b.bar.elsewhere(-1)
	}
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
