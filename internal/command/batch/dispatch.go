package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// job is a row with its place in the sequence.
type job struct {
	seq int
	row input.Row
	of  int // the first row with this key and content; its own number if it is the first

	late bool // it was put off before
}

// dispatch reads the input a second time, and gives each row to a worker by the channels jobs. A row with its answer in the journal is finished at once. It stops the
// batch if a row is not the same as in the first reading, since only that one was checked.
func (b *batch) dispatch(ctx context.Context, jobs []chan job) {
	rows, err := input.NewRows(b.in.Name, b.in.Reader(), b.plan.needs)
	if err != nil {
		b.changed(err)
		return
	}
	first, pace := b.survey.again(), newPace(b.flags.rate)
	readAhead(rows, func(group []readRow) { b.look(ctx, group) }, func(r *readRow) bool {
		err := r.err
		// saw must see faulty rows, too: it reads its notes row by row.
		if saw := first.saw(r); err == nil && !saw {
			err = &input.RowError{File: b.in.Name, Row: r.Number, Line: r.Line, Err: errors.New("is not what was checked")}
		}
		if err != nil {
			b.changed(err)
			return false
		}
		b.handOut(ctx, r, pace, jobs)
		return ctx.Err() == nil
	})
}

// handOut finishes a row answered by the journal, and gives any other row to a worker, no faster than --rate allows. It returns after the handing over, not after the
// send, or when ctx ends.
func (b *batch) handOut(ctx context.Context, r *readRow, pace *pace, jobs []chan job) {
	j := job{seq: r.at, row: r.Row, of: r.of}
	ended := r.recorded != nil && (b.plan.orderedBy < 0 || r.recorded.Exit != terminal.ExitUnknown) // else a worker holds back the rows behind it
	if ended && r.standing == r.mark.request {
		// The recorded request is the row's own.
		if named := b.nameNext(ctx, &r.Row, r.recorded); named || r.of != r.Number {
			j.sign(r.recorded) // it names the row and, for a repetition, the first such row
			r.text = r.recorded.Marshal()
		}
		b.bar.recorded()
		b.breaker.recorded()
		b.report(&r.Row, r.recorded, results.Placed{Seq: r.at, Text: r.text})
		return
	}
	if pace.on() && !b.stands(ctx, r.key) { // a row with an end in the journal is not sent, and does not count for --rate
		pace.wait(ctx)
	}
	select {
	case b.queueOf(&r.Row, jobs) <- j:
	case <-ctx.Done():
	}
}

// changed stops the batch: err shows a change of the input since the check.
func (b *batch) changed(err error) {
	b.tally.Mend = "look at the input, which has changed; once it is as it should be, "
	b.stop(fmt.Errorf("%w: the file changed while it was read, and the rest was not sent", err))
}

// look asks the journal for the records of a group of rows in one call, and makes the line of JSON that is printed for each row answered there. readAhead calls it
// while other rows are being sent. If it finds nothing for a row, the usual call for the row decides.
func (b *batch) look(ctx context.Context, group []readRow) {
	ids := make([]persist.ID, len(group))
	for i := range group {
		r := &group[i]
		if r.err == nil {
			r.identify(b.plan.keyOf(&r.Row, b.plan.generation))
			ids[i] = persist.ID{Account: b.survey.account, Key: string(r.key)}
		}
	}
	journal, found := persist.As[eachReader](b.session.Journal) // a journal that reads many keys in one call
	if !found {
		return
	}
	left := groupBytesMax // bytes of lines to keep at once
	// Do handles all other rows, and meets an error of the journal again.
	_ = journal.GetEach(ctx, ids, func(i int, rec persist.Record) bool {
		b.recall(&group[i], &rec)
		left -= len(group[i].text)
		return left > 0
	})
}

// eachReader is a journal with a call for reading many records at once, such as bolt's.
type eachReader interface {
	GetEach(ctx context.Context, ids []persist.ID, yield func(i int, rec persist.Record) bool) error
}

// recall makes the result line of a row from its record, if the record has the whole answer of a confirmed operation: the same line as from a call of Do, without
// its cost. Any other record is left to Do. So is one that was settled, or refused and told to nobody, since Do notes that its caller was told; and one of another
// recipe (way to hash requests), since its fingerprint cannot be compared. standing is the first half of the record's fingerprint: handOut takes the line only if
// it is that of the row's own request. Another client may have written the answer a moment ago: the printer waits until it is durable.
func (b *batch) recall(r *readRow, rec *persist.Record) {
	if rec.Recipe != b.survey.recipe || !operation.MayRecall(rec) {
		return
	}
	l := b.flags.Declines.Confirmed(rec)
	b.flags.JudgeEarlier(rec, &l) // a note, if --done of this run would judge the answer otherwise
	b.judgeDeclined(rec, &l)      // a note, if an earlier run told a declined row as done
	l.Row = r.Number
	r.recorded, r.text, r.standing = &l, l.Marshal(), half(rec.Fingerprint)
}

// stands reports whether the journal has the end of the operation under this key, so that nothing is sent and --rate does not count the row.
func (b *batch) stands(ctx context.Context, key oncehttp.Key) bool {
	rec, err := b.lookup(ctx, key)
	return err == nil && rec.State.Final()
}

// pace spaces starts evenly.
type pace struct {
	gap  time.Duration
	next time.Time
}

// newPace returns a pace with perSecond rows in a second. Zero or less is no limit.
func newPace(perSecond float64) *pace {
	if perSecond <= 0 {
		return &pace{}
	}
	return &pace{gap: time.Duration(float64(time.Second) / perSecond)}
}

// on reports whether --rate sets a limit.
func (p *pace) on() bool { return p.gap > 0 }

// wait returns when the next row may be started by --rate, or ctx ends. Unused time is not saved up: after a pause, no burst follows.
func (p *pace) wait(ctx context.Context) {
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	timer := time.NewTimer(p.next.Sub(now))
	defer timer.Stop()
	p.next = p.next.Add(p.gap)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
