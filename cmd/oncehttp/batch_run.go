package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// batch is one run over an input that has been checked.
type batch struct {
	flags   *batchFlags
	plan    *plan
	survey  *survey
	in      *input
	session *session
	streams streams
	bar     *progress
	breaker *breaker

	stop  context.CancelCauseFunc
	lines chan placed

	// unfinished: the journal held operations of an earlier run that may have to wait before they are sent again.
	unfinished bool

	mu     sync.Mutex
	later  []job // that another process was sending
	tally  tally
	totals totals
}

// note prints a line on stderr, unless --quiet.
func (b *batch) note(format string, args ...any) {
	if !b.flags.quiet {
		say(b.streams.err, format, args...)
	}
}

// observe shows the breaker every attempt, beside whoever looks already.
func (b *batch) observe(cfg *oncehttp.Config) {
	b.breaker = newBreaker(b.flags.maxErrors, func(cause error) { b.stop(cause) })
	next := cfg.Observe
	cfg.Observe = func(ctx context.Context, e oncehttp.Event) {
		b.breaker.observe(e)
		if next != nil {
			next(ctx, e)
		}
	}
}

// run sends every row and prints its line. It ends early when ctx ends, when the
// output or the journal fails, or when the input is no longer what was checked.
func (b *batch) run(ctx context.Context, out io.Writer) error {
	stopped, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b.stop = stop
	// The client's Close lets the attempts on the wire end and starts no other.
	drained := make(chan struct{})
	unhook := context.AfterFunc(stopped, func() {
		defer close(drained)
		if ctx.Err() != nil {
			b.bar.note("interrupted, waiting for the attempts on the wire;")
			say(b.streams.err, "interrupted: waiting for the attempts on the wire; once more kills")
		}
		_ = b.session.client.Close() // its error, if any, comes again at the session's close
	})
	b.lines = make(chan placed, b.flags.workers)
	jobs := b.queues()
	var workers sync.WaitGroup
	for i := range b.flags.workers {
		workers.Go(func() { b.work(stopped, jobs[i%len(jobs)], b.doInTurn) })
	}
	printed := make(chan error, 1)
	go func() {
		printed <- newPrinter(out, b.session.flush).run(context.WithoutCancel(ctx), b.lines, stop)
	}()
	b.dispatch(stopped, jobs)
	for _, queue := range jobs {
		close(queue)
	}
	workers.Wait()
	b.workLater(stopped)
	close(b.lines)
	err := <-printed
	if !unhook() {
		<-drained
	}
	return b.conclude(ctx, stopped, err)
}

// lookup finds the record of a key in the very account that the rows have, the
// scoping headers included.
func (b *batch) lookup(ctx context.Context, key oncehttp.Key) (persist.Record, error) {
	return b.session.journal.Get(ctx, persist.ID{Account: b.survey.account, Key: string(key)})
}

// doInTurn is do, which waits for another process as well where rows are ordered.
func (b *batch) doInTurn(ctx context.Context, j *job) line {
	if b.plan.orderedBy >= 0 {
		return b.await(ctx, j)
	}
	return b.do(ctx, j)
}

// work does what comes from jobs.
func (b *batch) work(ctx context.Context, jobs <-chan job, do func(context.Context, *job) line) {
	for j := range jobs {
		if ctx.Err() != nil || !b.breaker.begin(ctx) {
			continue // counted as not tried
		}
		b.bar.start()
		l := do(ctx, &j)
		j.sign(&l)
		b.breaker.end(&l)
		if !j.late && b.putOff(&j, &l) {
			continue
		}
		b.report(&j.row, &l, placed{seq: j.seq, text: l.marshal()})
	}
}

// sign writes into a line whose it is.
func (j *job) sign(l *line) {
	l.Row = j.row.number
	if j.of != j.row.number {
		l.Result, l.OfRow = resultDuplicate, j.of
	}
}

// report counts what became of a row, and hands its line to the printer.
func (b *batch) report(r *row, l *line, text placed) {
	b.mu.Lock()
	b.tally.add(l)
	b.plan.count(&b.totals, l.class(), r)
	b.mu.Unlock()
	b.bar.add(l)
	b.lines <- text
}

// do sends one row, or finds that it must not be sent.
func (b *batch) do(ctx context.Context, j *job) line {
	r := &j.row
	if b.plan.generation > 1 {
		if standing, found := b.standing(ctx, r); found {
			return standing
		}
	}
	// A row that is new to the journal has nothing to wait for.
	if repeated := j.of != r.number; b.unfinished || repeated {
		if l, waits := b.notDue(ctx, r); waits {
			return l
		}
	}
	return b.send(ctx, r, b.plan.generation)
}

// anyUnfinished reports whether the journal holds a pending operation of the batch's account.
func (b *batch) anyUnfinished(ctx context.Context) (bool, error) {
	query := persist.Query{Account: b.survey.account, States: []persist.State{persist.StatePending}}
	for _, err := range b.session.journal.List(ctx, query) {
		if err != nil && !persist.OfOneRecord(err) {
			return false, err
		}
		return true, nil
	}
	return false, nil
}

// notDue honours what the server asked for in an earlier run: a wait of up to
// --max-retry-after is waited for, a longer one leaves the row for a later run.
func (b *batch) notDue(ctx context.Context, r *row) (line, bool) {
	rec, err := b.lookup(ctx, b.plan.keyOf(r, b.plan.generation))
	wait := time.Until(rec.NextAttempt)
	if err != nil || rec.State != persist.StatePending || rec.NextAttempt.IsZero() || wait <= 0 {
		return line{}, false
	}
	if wait <= cmp.Or(b.flags.retry.MaxRetryAfter, time.Minute) {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			return line{}, false
		case <-ctx.Done():
		}
	}
	return line{
		Key: rec.Key, Result: resultUnknown, Outcome: oncehttp.OutcomeUnknown.String(), State: rec.State.String(), exit: exitUnknown, goesOn: true,
		Error: &lineError{Code: "not_due", Message: "the next attempt is not due before " + rec.NextAttempt.UTC().Format(time.RFC3339)},
	}, true
}

func (b *batch) send(ctx context.Context, r *row, generation int) line {
	key := b.plan.keyOf(r, generation)
	req, err := b.plan.request(ctx, r)
	if err != nil {
		return failed(key, err) // cannot be: the survey made the same request
	}
	resp, err := b.session.client.DoKey(req, key)
	if err == nil {
		return b.flags.declines.answered(resp)
	}
	for _, fatal := range b.fatal() {
		if errors.Is(err, fatal) {
			b.stop(journalError(b.session.place.name, fatal))
		}
	}
	text := lesson(b.plan.profile, err)
	l := failed(key, err)
	if text != "" && l.Error != nil {
		l.Error.Message, l.unread = l.Error.Message+"; "+text, true
	}
	if l.Result == resultMismatch && l.Sends == 0 {
		b.nameDifferences(ctx, r, key, generation, &l)
	}
	return l
}

// nameDifferences says in the line of a row whose key stands with other content which fields differ.
func (b *batch) nameDifferences(ctx context.Context, r *row, key oncehttp.Key, generation int, l *line) {
	rec, err := b.lookup(ctx, key)
	if err != nil {
		return // the line says what is known
	}
	if which, err := b.differs(ctx, r, generation, &rec); err == nil && which != "" {
		l.Error.Message += "; what differs: " + which
	}
}

// fatal are the errors of the journal after which it takes nothing more. A server that did
// not say what became of one call takes the next: only that row is in doubt.
func (b *batch) fatal() []error {
	if b.session.place.isFile() {
		return []error{persist.ErrUncertain, persist.ErrCorrupt, persist.ErrClosed}
	}
	return []error{persist.ErrClosed}
}

// standing is the line of a row that a new generation must not try, because an
// earlier one is not finally refused. Its answer comes from the journal; nothing
// is sent for it.
func (b *batch) standing(ctx context.Context, r *row) (line, bool) {
	last := b.plan.generation
	for g := last; g >= 1; g-- {
		key := b.plan.keyOf(r, g)
		rec, err := b.lookup(ctx, key)
		switch {
		case errors.Is(err, persist.ErrNotFound):
			continue
		case err != nil:
			return failed(key, err), true
		case g == last, g == last-1 && b.flags.declines.finallyRefused(&rec):
			return line{}, false
		}
		if which, err := b.differs(ctx, r, g, &rec); err != nil {
			return failed(key, err), true
		} else if which != "" {
			return collided(&rec, fmt.Sprintf("generation %d", g), which), true
		}
		return b.flags.declines.recorded(&rec, fmt.Sprintf("generation %d", g)), true
	}
	return line{
		Key: string(b.plan.keyOf(r, last)), Result: resultRejected, Outcome: oncehttp.OutcomeNotSent.String(), exit: exitUnknown,
		Error: &lineError{Code: "generation", Message: "generation 1 was never sent"},
	}, true
}

// differs names what differs between the row and the record of a generation of it: the members of the body, the URL or a
// header that the key names; "" if they are the same request.
func (b *batch) differs(ctx context.Context, r *row, generation int, rec *persist.Record) (string, error) {
	req, err := b.plan.request(ctx, r)
	if err != nil {
		return "", err
	}
	prepared, err := b.survey.client.Prepare(req, b.plan.keyOf(r, generation))
	if err != nil || request.Same(&prepared, rec) {
		return "", err
	}
	return differences(&prepared, rec), nil
}

// collided is the line of a row whose key stands with other content. Nothing was
// sent, and the recorded answer is not this row's.
func collided(rec *persist.Record, what, which string) line {
	return line{
		Key: rec.Key, Result: resultMismatch, Outcome: oncehttp.OutcomeNotSent.String(), State: rec.State.String(), exit: exitRefused,
		Error: &lineError{Code: "key_reused", Message: what + " is " + rec.State.String() + " with other content than this row (" + which + "), so that nothing was sent"},
	}
}

// finallyRefused: only what certainly had no effect may be tried under a new key.
func (list declines) finallyRefused(rec *persist.Record) bool {
	switch list.resultOfRecord(rec) {
	case resultDeclined, resultInvalid:
		return rec.State == persist.StateConfirmed
	case resultRejected:
		return rec.State == persist.StateSettled
	}
	return false
}

// recorded is the line of an operation as it stands in the journal. what names
// it where it is not simply done.
func (list declines) recorded(rec *persist.Record, what string) line {
	l := list.confirmed(rec)
	l.goesOn = rec.State == persist.StatePending
	switch {
	case rec.State != persist.StateConfirmed:
		l.State = rec.State.String()
		if rec.State == persist.StateHeld { // also where its result is duplicate
			l.exit = exitUnknown
		}
		l.Error = &lineError{Code: "generation", Message: what + " is " + rec.State.String() + ", so that nothing new may be tried"}
	case list.finallyRefused(rec):
		l.Error = &lineError{Code: "generation", Message: what + " has a final refusal; the generation after it comes before this one"}
	}
	return l
}

// confirmed is the line of a confirmed operation, from its record.
func (list declines) confirmed(rec *persist.Record) line {
	l := line{
		Key: rec.Key, Result: list.resultOfRecord(rec), Outcome: oncehttp.OutcomeOf(rec).String(), Source: sourceName(oncehttp.SourceJournal),
		Attempts: rec.Attempts, Sends: rec.Sends,
	}
	l.exit = l.Result.exit()
	if a := rec.Answer; a != nil && rec.State == persist.StateConfirmed {
		l.judge(list, a.Status, textOf(a.Header, a.Body), a.BodyDropped, a.AlreadyDone)
	}
	return l
}

// conclude prints the summary and says how it all ended.
func (b *batch) conclude(ctx, stopped context.Context, printing error) error {
	b.tally.notTried = b.survey.rows - b.tally.rows
	b.bar.finish()
	b.note("%s", b.tally.summary(b.in.name))
	b.totals.name = b.survey.totals.name
	b.totals.rest(&b.survey.totals)
	for _, text := range b.totals.lines("row") {
		b.note("%s", text)
	}
	status := b.tally.exit
	if b.tally.notTried > 0 || stopped.Err() != nil || printing != nil {
		status = exitUnknown
	}
	for _, step := range b.tally.nextSteps(shellQuote(b.session.place.arg), b.plan.generation) {
		b.note("%s", step)
	}
	if cause := context.Cause(stopped); cause != nil && ctx.Err() == nil {
		if stuck := (*stuckError)(nil); errors.As(cause, &stuck) {
			cause = stuck.said(b.session.place.name, b.tally.notTried)
		}
		return &exitError{status: exitUnknown, err: cause}
	}
	if printing != nil {
		return &exitError{status: exitUnknown, err: printing}
	}
	return exitWith(status)
}
