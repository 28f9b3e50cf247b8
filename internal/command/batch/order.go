package batch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
)

// With --ordered-by, rows with the same value are sent one after the other. Once one of them has not ended, the later ones are not sent: another run goes on with
// that one, and would send it after them.

// ordered are the rows that have not ended in this run, by their values of --ordered-by: the number of the first one of each. The zero value is empty.
type ordered map[string]int

// queues returns the channels from the reader of the input to the workers: one for all workers or, with --ordered-by, one for each worker. (leadOf is the number of workers
// beyond --workers, which prepare a row while the others send.)
func (b *batch) queues() []chan job {
	n := 1
	if b.plan.orderedBy >= 0 {
		n = b.flags.workers + leadOf(b.flags.workers)
	}
	queues := make([]chan job, n)
	for i := range queues {
		queues[i] = make(chan job)
	}
	return queues
}

// queueOf returns the channel for a row. Rows with the same value of --ordered-by get the same one, and so the same worker, which sends them one after the other.
func (b *batch) queueOf(r *input.Row, queues []chan job) chan<- job {
	if len(queues) == 1 {
		return queues[0]
	}
	sum := short([]byte(r.Fields[b.plan.orderedBy])) // a hash, so that the values spread over the queues
	return queues[binary.BigEndian.Uint32(sum[:])%uint32(len(queues))]
}

// doInTurn sends a row, and returns its result line. With --ordered-by, it waits for another process that is sending the row. It does not send a row behind one
// with the same value of --ordered-by that is in doubt, or was rejected and may be sent again: a later run would send that one after it. (CodeSettled: a person has
// settled it as absent, and it is not sent again.) b.behind has the first such row of each value.
func (b *batch) doInTurn(ctx context.Context, j *job) results.Line {
	if b.plan.orderedBy < 0 {
		return b.do(ctx, j)
	}
	value := j.row.Fields[b.plan.orderedBy]
	b.mu.Lock()
	first := b.behind[value]
	b.mu.Unlock()
	if first > 0 {
		return b.heldBack(ctx, j, first)
	}
	l := b.await(ctx, j)
	if l.Exit == terminal.ExitUnknown || l.Result == results.Rejected && l.Error != nil && l.Error.Code != results.CodeSettled {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.behind == nil {
			b.behind = ordered{}
		}
		b.behind[value] = j.row.Number
	}
	return l
}

// heldBack returns the line of JSON that is printed for a row behind the row number first, which has not ended. Nothing is sent for it. A row with an end in the
// journal has that end.
func (b *batch) heldBack(ctx context.Context, j *job, first int) results.Line {
	if b.plan.generation > 1 { // an earlier generation (try) may forbid this one in any case
		if standing, found := b.standing(ctx, &j.row); found {
			return standing
		}
	}
	key := b.plan.keyOf(&j.row, b.plan.generation)
	l := results.Line{
		Key: string(key), Result: results.Rejected, Outcome: oncehttp.OutcomeNotSent.String(), Exit: terminal.ExitUnknown,
		Error: &results.LineError{Code: results.CodeEarlierRow, Message: fmt.Sprintf("not sent: row %d, with the same value of --ordered-by, has not ended", first)},
	}
	switch rec, err := b.lookup(ctx, key); {
	case errors.Is(err, persist.ErrNotFound):
	case err != nil:
		return results.Failed(key, err)
	case rec.State.Final():
		return b.do(ctx, j)
	default: // an earlier run, or another process, may have sent it
		l.Result, l.Outcome, l.State, l.GoesOn = results.Unknown, oncehttp.OutcomeUnknown.String(), rec.State.String(), rec.State == persist.StatePending
	}
	return l
}
