package batch

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/forgotten"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// batch is one run over a checked input.
type batch struct {
	flags   *batchFlags
	plan    *plan
	survey  *survey
	in      *input.File
	session *session.Session
	streams terminal.Streams
	bar     *progress
	noted   func()          // keeps the note of this run's flags in the journal, once
	sender  *session.Sender // this run's client, to tell which operations it may send
	breaker *breaker
	made    results.Made
	wire    *wire // nil: there are few workers

	stop  context.CancelCauseFunc
	lines chan results.Placed

	// unfinished: the journal held operations of an earlier run. They may have to wait before they are sent again.
	unfinished bool
	without    string // the flag without which a run would be refused, as of a copy; "": none
	left       left
	unprinted  int                                       // rows without a line, since the journal failed
	rejected   func() map[persist.ID]forgotten.Operation // of [batch.readRejected], read once

	// started lets other batches on files of the folder go on: they find the first row in the journal. Any goroutine may call it, and more than once.
	started func()

	mu     sync.Mutex
	later  []job // rows being sent by another process
	behind ordered
	tally  results.Tally
	totals results.Totals
	// repeated counts rows that repeat another one which is not done.
	repeated int
}

// note prints a line on stderr, unless --quiet.
func (b *batch) note(format string, args ...any) {
	if !b.flags.quiet {
		terminal.Say(b.streams.Err, format, args...)
	}
}

// observe shows the breaker and the wire every attempt. The observer of cfg, if any, still sees it, too.
func (b *batch) observe(cfg *oncehttp.Config) {
	b.breaker = newBreaker(b.flags.maxErrors, b.survey.origin, func(cause error) { b.stop(cause) })
	next := b.made.Counting(cfg.Observe) // counts attempts, and calls the observer of cfg
	cfg.Observe = func(ctx context.Context, e oncehttp.Event) {
		b.breaker.observe(e)
		switch e.Kind {
		case oncehttp.EventBegun:
			b.noted()
		case oncehttp.EventAttempt:
			b.started() // other batches of the folder find the row in the journal now
			b.bar.pause(string(e.Key), time.Time{})
		case oncehttp.EventWaiting:
			b.bar.pause(string(e.Key), time.Now().Add(e.Wait))
		case oncehttp.EventFinished:
			b.bar.pause(string(e.Key), time.Time{})
		}
		next(ctx, e)
	}
	b.wire = newWire(b.flags.workers)
	b.wire.join(cfg)
}

// run sends every row and prints its line. It ends early when ctx ends, when the output or the journal fails, or
// when the input has changed since the check.
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
			terminal.Say(b.streams.Err, "interrupted: waiting for the attempts on the wire; once more kills")
		}
		b.session.Stop()
	})
	b.lines = make(chan results.Placed, b.flags.workers)
	jobs := b.queues()
	var workers sync.WaitGroup
	for i := range b.flags.workers + leadOf(b.flags.workers) {
		workers.Go(func() { b.work(stopped, jobs[i%len(jobs)], b.doInTurn) })
	}
	printed := make(chan error, 1)
	printer := results.NewPrinter(out, b.session.Flush)
	go func() { printed <- printer.Run(context.WithoutCancel(ctx), b.lines, stop) }() // after a signal, too, what was sent is printed
	b.dispatch(stopped, jobs)
	for _, queue := range jobs {
		close(queue)
	}
	workers.Wait()
	b.workLater(stopped) // the rows that another process was sending
	close(b.lines)
	err := <-printed
	b.countUnrecorded(printer.Lost(), func() error { return b.session.Flush(ctx) })
	if !unhook() { // the function above has begun
		<-drained
	}
	b.unprinted = printer.Unprinted()
	return b.conclude(ctx, stopped, err)
}

// work does the rows from jobs until they end: it calls do, which sends a row and returns its result line, then counts the line and hands it to the printer. A row
// that another process is sending is put off, and a row that the end of the batch stopped before its send counts as not tried.
func (b *batch) work(ctx context.Context, jobs <-chan job, do func(context.Context, *job) results.Line) {
	for j := range jobs {
		if ctx.Err() != nil || !b.breaker.begin(ctx) {
			continue // counted as not tried
		}
		b.bar.start()
		l := do(ctx, &j)
		b.judgeEarlier(ctx, &l)     // a note, if --done or --declined of this run judge an earlier answer otherwise
		b.nameNext(ctx, &j.row, &l) // of a refused row, the result of its later tries
		j.sign(&l)
		b.breaker.end(&l)
		if ctx.Err() != nil && wasInHand(&l) {
			b.bar.putOff()
			b.takeBack(&j.row, &l)
			continue // counted as not tried, or stopped
		}
		if !j.late && b.putOff(&j, &l) {
			continue
		}
		b.made.Take(&l) // gives it the number of requests that this run has made
		line := results.Placed{Seq: j.seq, Text: l.Marshal()}
		if l.Sends > 0 && l.Source != results.SourceName(oncehttp.SourceJournal) && l.Result != results.Duplicate { // sent by this run: see countUnrecorded
			line.Key, line.Result = l.Key, l.Result
		}
		b.report(&j.row, &l, line)
	}
}

// takeBack counts a row that the end of the batch stopped before anything was sent: as stopped, with its amount, if an attempt had begun, else as not tried.
func (b *batch) takeBack(r *input.Row, l *results.Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tally.TakeBack(l) { // true: an attempt had begun
		b.plan.count(&b.totals, results.ClassStopped, r)
	}
}

// wasInHand reports whether the end of the batch met a row before any request went out for it: before the call did anything (Untouched), or by an interrupt with nothing sent
// yet.
func wasInHand(l *results.Line) bool {
	return l.Untouched || l.Sends == 0 && l.Outcome == oncehttp.OutcomeNotSent.String() && l.Error != nil && l.Error.Code == results.CodeInterrupted
}

// countUnrecorded counts the ended operations of lines that could not be printed, unless the journal takes their ends now. Reading the journal does not tell:
// until it is closed, it has the ends that it could not write.
func (b *batch) countUnrecorded(lost []results.Placed, flush func() error) {
	if len(lost) == 0 || flush() == nil {
		return
	}
	for _, l := range lost {
		if l.Result.Exit() != terminal.ExitUnknown {
			b.tally.Unrecorded(l.Result)
		}
	}
}

// sign writes the row's number into its line. A repeated row becomes a duplicate of the first one if that was done; else it has the same
// result.
func (j *job) sign(l *results.Line) {
	l.Row = j.row.Number
	if j.of == j.row.Number {
		return
	}
	l.OfRow = j.of
	if l.Result == results.Done || l.Result == results.Accepted {
		l.Result = results.Duplicate
	}
}

// report counts the result of a row in the summary, the totals and the progress. Then it hands text, the line to print for the row, to the printer.
func (b *batch) report(r *input.Row, l *results.Line, text results.Placed) {
	b.mu.Lock()
	b.tally.Add(l)
	if l.OfRow != 0 && l.Result != results.Duplicate { // it repeats a row that is not done
		b.repeated++
	}
	b.plan.count(&b.totals, l.Class(), r)
	b.mu.Unlock()
	b.started() // also by a row that an earlier run has ended
	b.bar.add(l)
	b.lines <- text
}

// do sends one row, and returns its result line. It sends nothing if the journal or a wait forbids it: with --generation after a try that was not refused for
// certain, for a key that this run's profile does not trust, and before the time that the server named. Then the line says so.
func (b *batch) do(ctx context.Context, j *job) results.Line {
	r := &j.row
	if b.plan.generation > 1 { // an earlier generation (try) may forbid this one
		if standing, found := b.standing(ctx, r); found {
			return standing
		}
	}
	// A row that is new to the journal has nothing to wait for. It may be there if some operation was pending when the run began (unfinished), or if this run has sent
	// the row that it repeats.
	if repeated := j.of != r.Number; b.unfinished || repeated {
		if l, distrusted := b.distrusted(ctx, r); distrusted {
			return l
		}
		if l, waits := b.notDue(ctx, r); waits {
			return l
		}
	}
	return b.send(ctx, r, b.plan.generation)
}

// errRestoredUnprotected refuses a run on a restored journal at an API without keys: what the journal has lost since the backup would be done twice.
var errRestoredUnprotected = errors.New("the API has no keys, so that a row that was sent between the backup and the restore would be done twice, under the same key, too; " +
	"compare the file with the API's own list (oncehttp audit), take out what is there, and say --yes; nothing was sent")

// unprotectedRestore reports whether a run is refused: the journal was restored from a backup, and the API has no keys, so that rows lost with it would take effect
// twice. With --yes it is not. sayRestored, which finds the restore, was called before.
func (b *batch) unprotectedRestore() bool {
	return b.tally.Restored && b.plan.profile.Carrier.Place == profile.Nowhere && !b.flags.yes
}

// sayRestored says that the journal was restored from a backup. Then no summary advises another generation (a try under a new key): a row that counts as new may
// have been done. The error is one of the journal.
func (b *batch) sayRestored(ctx context.Context) error {
	text, err := session.RestoredText(ctx, b.session)
	if text != "" {
		b.note("%s", text)
		b.tally.Restored = true
	}
	return err
}

// anyUnfinished reports whether the journal holds a pending operation of the batch's account. If it has none, a row need not be looked up for a wait before its
// send. A record that cannot be read counts as pending. The error is one of the journal.
func (b *batch) anyUnfinished(ctx context.Context) (bool, error) {
	query := persist.Query{Account: b.survey.account, States: []persist.State{persist.StatePending}}
	for _, err := range b.session.Journal.List(ctx, query) {
		if err != nil && !persist.OfOneRecord(err) {
			return false, err
		}
		return true, nil
	}
	return false, nil
}

// send sends a row under the key of this generation (try), and returns its result line. An answer or an error of the call is in that line. An error after which the
// journal takes nothing more stops the batch. A line of a failure also gets what the record and the flags say about it, and advice (Lesson) about an answer that the
// command does not understand. Unread marks a line with that advice.
func (b *batch) send(ctx context.Context, r *input.Row, generation int) results.Line {
	key := b.plan.keyOf(r, generation)
	ctx, end := b.wire.seated(ctx) // gives the row its place among the requests at once
	defer end()
	req, err := b.plan.request(b.flags.WithDeclines(ctx), r)
	if err != nil {
		return results.Failed(key, err) // cannot be: the survey made the same request
	}
	resp, err := b.session.Client.DoKey(req, key)
	if err == nil {
		l := b.flags.Declines.Answered(resp)
		l.Unkept = b.flags.Unkept() // the members of --drop-answer, which the journal has not kept
		return l
	}
	for _, fatal := range b.fatal() {
		if errors.Is(err, fatal) {
			b.stop(place.JournalError(b.session.Place.Name, fatal))
		}
	}
	l := results.Failed(key, err)
	if l.Untouched = errors.Is(err, oncehttp.ErrClosed) && l.Attempts == 0 && l.Sends == 0; l.Untouched { // the run ended before the call did anything
		return l
	}
	b.flags.Declines.Unseen(&l) // unknown, if a part of the answer that is not there may say --declined
	b.flags.ExplainHeld(&l)     // why a 2xx is no success by --done
	l.Idle = l.Attempts == 0
	begun := b.recallStanding(ctx, key, &l)
	if text := session.Lesson(b.plan.profile, err, begun); text != "" && l.Error != nil {
		l.Error.Message, l.Unread = l.Error.Message+"; "+text, true
	}
	if l.Result == results.Mismatch && l.Sends == 0 {
		b.nameDifferences(ctx, r, key, generation, &l)
	}
	return l
}

// fatal returns the errors of the journal after which it takes nothing more, so that the batch stops. A server may leave the outcome of one call open and still take
// the next: only the row of that call is in doubt then, and the batch goes on.
func (b *batch) fatal() []error {
	if b.session.Place.IsFile() {
		return []error{persist.ErrUncertain, persist.ErrCorrupt, persist.ErrClosed, persist.ErrGone}
	}
	return []error{persist.ErrClosed}
}

// conclude prints the summary and the next steps, and returns the exit status of the run as an error. The cause of stopped says what stopped the batch, and ctx has
// ended after a signal. printing is the error of the output; nil: none.
func (b *batch) conclude(ctx, stopped context.Context, printing error) error {
	b.tally.NotTried = b.survey.rows - b.tally.Rows
	b.bar.finish()
	b.note("%s", b.tally.Summary(b.in.Name))
	b.totals.Name = b.survey.totals.Name
	b.totals.Rest(&b.survey.totals) // counts the rows that were not looked at
	for _, text := range b.totals.Lines("row") {
		b.note("%s", text)
	}
	if b.repeated > 0 {
		b.note("%s with the result of an earlier row that is not done (\"of_row\"): what such a row asks for is counted there once more", words.Count(b.repeated, "repetition"))
	}
	if b.tally.Lost = errors.Is(context.Cause(stopped), persist.ErrGone); b.tally.Lost {
		markLost(b.session.Place)
	}
	status, cause := b.tally.Exit, context.Cause(stopped)
	if tripped := (*stoppedError)(nil); errors.As(cause, &tripped) && tripped.flag != "" && b.tally.NotTried == 0 && ctx.Err() == nil {
		cause = nil // the last rows ended alike, and none was left to be stopped
	}
	if wrong := (*stoppedError)(nil); errors.As(cause, &wrong) && wrong.wrongFile && printing == nil { // a run again would stop there again
		b.tally.Mend = "look at the file and the call; where they are right, with --max-errors 0, else once they are, "
		status = max(status, terminal.ExitRefused)
	} else if b.tally.NotTried > 0 || cause != nil || printing != nil {
		status = terminal.ExitUnknown
	}
	if b.left.gone > 0 {
		b.note("%s", b.left.text(b.session.Place.Shell(), true))
	}
	for _, step := range b.tally.NextSteps(b.session.Place.Shell(), b.plan.generation) {
		b.note("%s", step)
	}
	if b.unprinted > 0 {
		b.note("%s have no line in the output, since the journal did not say that they are kept; a later run of the same command has them", words.Count(b.unprinted, "row"))
	}
	if cause != nil && ctx.Err() == nil {
		if stuck := (*stuckError)(nil); errors.As(cause, &stuck) {
			cause = stuck.said(b.session.Place.Name, b.tally.Untried()) // Untried: without those stopped after an attempt had begun
		} else if tripped := (*stoppedError)(nil); errors.As(cause, &tripped) {
			cause = tripped.said(b.tally.Untried())
		}
		return &terminal.ExitError{Status: status, Err: cause}
	}
	if printing != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: printing}
	}
	return terminal.ExitWith(status)
}
