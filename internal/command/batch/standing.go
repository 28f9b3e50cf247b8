package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/forgotten"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the records of rows in the journal, of this run or an earlier one, and their words in a row's line.

// lookup finds the record of a key in the account of the rows, including the scoping headers.
func (b *batch) lookup(ctx context.Context, key oncehttp.Key) (persist.Record, error) {
	return b.session.Journal.Get(ctx, persist.ID{Account: b.survey.account, Key: string(key)})
}

// judgeEarlier notes in a line of the journal what the --done of this run, by which it was not judged, says of it.
func (b *batch) judgeEarlier(ctx context.Context, l *results.Line) {
	if !b.flags.AsksDone() && l.Result != results.Declined || l.Source != results.SourceName(oncehttp.SourceJournal) || l.Was != "" {
		return
	}
	if rec, err := b.lookup(ctx, oncehttp.Key(l.Key)); err == nil {
		b.flags.JudgeEarlier(&rec, l)
		b.judgeDeclined(&rec, l)
	}
}

// judgeDeclined notes in a line of the journal that its operation was told as done before a --declined made a decline of it: nobody may take it for refused
// without a look at its answer.
func (b *batch) judgeDeclined(rec *persist.Record, l *results.Line) {
	if l.Result == results.Declined && b.flags.WasDone(rec) {
		l.Was = fmt.Sprintf("they were done (%d) before this --declined: look at their answers; --generation %d sends them once more, and only with --yes", l.Status, b.plan.generation+1)
	}
}

// keptBack returns the line of a row whose earlier generation was told as done before a --declined made a decline of it.
func (b *batch) keptBack(rec *persist.Record, generation int) results.Line {
	l := b.flags.Declines.Confirmed(rec)
	l.Error = &results.LineError{Code: "generation", Message: fmt.Sprintf("generation %d was done (%d) before a --declined made a decline of it: look at its answer; --yes sends the row once more", generation, l.Status)}
	l.Was = fmt.Sprintf("generation %d of them was done (%d) before a --declined made a decline of it: look at their answers; --yes sends them once more", generation, l.Status)
	return l
}

// nameNext adds the result of the latest later generation to the line of a row that was refused or meant another request, if the next one was begun. If that one
// succeeded, with the row's request, the line becomes its line. nameNext reports whether the line has changed.
func (b *batch) nameNext(ctx context.Context, r *input.Row, l *results.Line) bool {
	switch l.Result {
	case results.Declined, results.Invalid, results.Mismatch:
	case results.Rejected:
		if _, err := b.lookup(ctx, b.plan.keyOf(r, b.plan.generation)); err != nil { // no record of it stands
			return false
		}
	default:
		return false
	}
	if l.Result != results.Mismatch {
		b.nameReplaced(ctx, r, b.plan.generation+1, l)
	}
	last, at := b.latest(ctx, r)
	if at > 0 {
		if b.isDone(ctx, r, at, &last) {
			*l = b.flags.Declines.Confirmed(&last)
			return true
		}
		l.Next, l.NextAt = b.flags.Declines.ResultOfRecord(&last), at
		if last.State == persist.StatePending {
			l.Next = results.Result(results.ClassPending)
		}
	}
	if l.Next != "" && l.Error != nil { // without an Error its answer was pruned
		l.Error.Message += fmt.Sprintf("; generation %d of it is %s", l.NextAt, l.Next)
	}
	return l.Next != "" || l.Stands == results.StandsReplaced
}

// latest returns the record and the number of the latest generation of a row after that of the run; 0: none was begun.
func (b *batch) latest(ctx context.Context, r *input.Row) (last persist.Record, at int) {
	for g := b.plan.generation + 1; ; g++ {
		rec, err := b.lookup(ctx, b.plan.keyOf(r, g))
		if err != nil {
			return last, at // there is none; other errors of the journal are met elsewhere
		}
		last, at = rec, g
	}
}

// isDone reports whether a generation of a row succeeded with the row's request.
func (b *batch) isDone(ctx context.Context, r *input.Row, generation int, rec *persist.Record) bool {
	if !isSuccess(b.flags.Declines.ResultOfRecord(rec)) || rec.Erased {
		return false
	}
	which, err := b.differs(ctx, r, generation, rec)
	return err == nil && which == ""
}

// recallStanding takes the attempts of a row that the journal answered, or kept from being sent, from its record. Of a held one it adds the reason of the last
// attempt, and the next step.
func (b *batch) recallStanding(ctx context.Context, key oncehttp.Key, l *results.Line) {
	if !l.IsOfRecord() {
		return
	}
	rec, err := b.lookup(ctx, key)
	if err != nil {
		return // the line stays as it is
	}
	kept := l.IsKeptBack()
	if l.TakeRecord(&rec); kept && rec.State.String() == l.State {
		l.Standing(&rec, "oncehttp journal settle "+words.ShellQuote(session.SeenKey(&rec)), " --journal "+words.ShellQuote(b.session.Place.Arg))
	}
}

// nameDifferences adds the names of the differing fields to the line of a row, if the row's key is in the journal
// with another request; or, of the same request, the key that a person has begun in its place.
func (b *batch) nameDifferences(ctx context.Context, r *input.Row, key oncehttp.Key, generation int, l *results.Line) {
	rec, err := b.lookup(ctx, key)
	if err != nil {
		b.nameReplaced(ctx, r, generation, l)
		return
	}
	which, err := b.differs(ctx, r, generation, &rec)
	switch {
	case err != nil:
	case which != "":
		l.Error.Message += "; what differs: " + which
		if rec.State == persist.StatePending {
			l.Stands = results.StandsPending
			l.Error.Message += "; that one is pending"
		}
		if b.flags.Declines.FinallyRefused(&rec) {
			l.Stands = results.StandsRefused
			l.Error.Message += fmt.Sprintf("; that one was refused for certain: --generation %d sends this one under a new key", generation+1)
		}
	default:
		if done, is := b.doneInPlace(ctx, &rec); is {
			*l = done
			return
		}
		if by, is := b.replacement(ctx, &rec); is {
			l.Stands = results.StandsReplaced
			openInPlace(l, &by)
			who := "a person began %q to replace it"
			if persist.IsSkipped(rec.Acts) {
				who = "the later generation %q was sent in its place"
			}
			l.Error.Message += fmt.Sprintf("; "+who+"; nothing is to be sent for this row", by.Key)
		}
	}
}

// nameReplaced says in the line of a row what a person has begun in the place of the generation before, under another key: beside that no generation begins.
func (b *batch) nameReplaced(ctx context.Context, r *input.Row, generation int, l *results.Line) {
	if by := b.rekeyed(ctx, r, generation-1); by != "" && l.Error != nil {
		l.Stands = results.StandsReplaced
		l.Error.Message += fmt.Sprintf("; a person began %q to replace generation %d; no generation is begun beside it", by, generation-1)
	}
}

// replacedEarlier returns the line of a row in the place of whose generation a person has begun another operation: beside that no later generation begins.
func (b *batch) replacedEarlier(r *input.Row, generation int, rec *persist.Record) results.Line {
	return results.Line{
		Key: string(b.plan.keyOf(r, b.plan.generation)), Result: results.Mismatch, Outcome: oncehttp.OutcomeNotSent.String(), Exit: terminal.ExitRefused, Stands: results.StandsReplaced,
		Error: &results.LineError{Code: "key_reused", Message: fmt.Sprintf("a person began %q to replace generation %d; no generation is begun beside it", rec.ReplacedBy, generation)},
	}
}

// elsewhere reports whether a person has begun a generation of a row anew, other than as the next generation.
func (p *plan) elsewhere(r *input.Row, generation int, rec *persist.Record) bool {
	return rec.ReplacedBy != "" && rec.ReplacedBy != string(p.keyOf(r, generation+1))
}

// rekeyed returns the key under which a person has begun a generation of a row anew, other than the next generation; "" if there is none.
func (b *batch) rekeyed(ctx context.Context, r *input.Row, generation int) string {
	if generation < 1 {
		return ""
	}
	rec, err := b.lookup(ctx, b.plan.keyOf(r, generation))
	if err != nil || !b.plan.elsewhere(r, generation, &rec) {
		return ""
	}
	return rec.ReplacedBy
}

// standing returns the line of a row if a new generation must not try it, because an earlier one is not finally
// refused. The row's answer comes from the journal; nothing is sent for it.
func (b *batch) standing(ctx context.Context, r *input.Row) (results.Line, bool) {
	last := b.plan.generation
	for g := last; g >= 1; g-- {
		key := b.plan.keyOf(r, g)
		rec, err := b.lookup(ctx, key)
		switch {
		case errors.Is(err, persist.ErrNotFound):
			continue
		case err != nil:
			return results.Failed(key, err), true
		case g < last && b.plan.elsewhere(r, g, &rec):
			if l, done := b.doneInPlace(ctx, &rec); done {
				return l, true
			}
			l := b.replacedEarlier(r, g, &rec)
			if by, is := b.replacement(ctx, &rec); is {
				openInPlace(&l, &by)
			}
			return l, true
		case g == last-1 && !b.flags.yes && b.flags.WasDone(&rec):
			return b.keptBack(&rec, g), true
		case g == last, g == last-1 && b.flags.Declines.FinallyRefused(&rec):
			return results.Line{}, false
		}
		if rec.Erased {
			return b.erased(r, g, &rec), true
		}
		if which, err := b.differs(ctx, r, g, &rec); err != nil {
			return results.Failed(key, err), true
		} else if which != "" {
			return collided(&rec, fmt.Sprintf("generation %d", g), which), true
		}
		l := b.flags.Declines.Recorded(&rec, fmt.Sprintf("generation %d", g))
		switch {
		case rec.State == persist.StatePending:
			l.First = g
		case b.flags.Declines.FinallyRefused(&rec):
			l.First = g + 1
		}
		return l, true
	}
	return b.neverBegun(r), true
}

// neverBegun returns the line of a row if the journal has no record of the row's generation. The row was never sent, or each send was rejected and
// the journal forgot it.
func (b *batch) neverBegun(r *input.Row) results.Line {
	l := results.Line{
		Key: string(b.plan.keyOf(r, b.plan.generation)), Result: results.Rejected, Outcome: oncehttp.OutcomeNotSent.String(), Exit: terminal.ExitUnknown, First: 1,
		Error: &results.LineError{Code: "generation", Message: neverSent},
	}
	if o, found := b.rejected()[persist.ID{Account: b.survey.account, Key: string(b.plan.keyOf(r, 1))}]; found && o.Sends > 0 {
		l.Outcome, l.Source, l.Attempts, l.Sends = oncehttp.OutcomeRefused.String(), results.SourceName(oncehttp.SourceJournal), o.Attempts, o.Sends
		l.Error.Message = fmt.Sprintf("generation 1 was rejected after %s: run the command without --generation %d", words.Count(o.Sends, "send"), b.plan.generation)
	}
	return l
}

const neverSent = "generation 1 was never sent"

// readRejected reads the operations that the journal has forgotten, the latest of each key. Where they cannot be read, none is known.
func (b *batch) readRejected() map[persist.ID]forgotten.Operation {
	all, _, err := forgotten.Read(b.session.Place, time.Now())
	if err != nil {
		return nil
	}
	last := map[persist.ID]forgotten.Operation{}
	for _, o := range all {
		last[persist.ID{Account: o.Account, Key: o.Key}] = o
	}
	return last
}

// prepared returns the record of a generation of a row, as a run would begin it.
func (b *batch) prepared(ctx context.Context, r *input.Row, generation int) (persist.Record, error) {
	req, err := b.plan.request(ctx, r)
	if err != nil {
		return persist.Record{}, err
	}
	return b.survey.client.Prepare(req, b.plan.keyOf(r, generation))
}

// differs names the differences between the row and the record of one of its generations. These are members of the
// body, the URL or a header named by the key. It returns "" if they are the same request.
func (b *batch) differs(ctx context.Context, r *input.Row, generation int, rec *persist.Record) (string, error) {
	prepared, err := b.prepared(ctx, r, generation)
	if err != nil || request.Same(&prepared, rec) {
		return "", err
	}
	return view.Differences(&prepared, rec), nil
}

// erased returns the line of a row whose generation was erased, or has lost its text: its end alone is known, and its content is not compared.
func (b *batch) erased(r *input.Row, generation int, rec *persist.Record) results.Line {
	l := b.flags.Declines.Recorded(rec, fmt.Sprintf("generation %d", generation))
	l.Key = string(b.plan.keyOf(r, generation))
	return l
}

// isCollided reports whether a line is one of collided.
func isCollided(l *results.Line) bool {
	return l.Result == results.Mismatch && l.Sends == 0 && l.State != "" && l.Error != nil && l.Error.Code == "key_reused"
}

// collided returns the line of a row if its key is in the journal with other content. Nothing was sent, and the
// recorded answer is not this row's.
func collided(rec *persist.Record, what, which string) results.Line {
	return results.Line{
		Key: rec.Key, Result: results.Mismatch, Outcome: oncehttp.OutcomeNotSent.String(), State: rec.State.String(), Exit: terminal.ExitRefused,
		Error: &results.LineError{Code: "key_reused", Message: what + " is " + rec.State.String() + " with other content than this row (" + which + "), so that nothing was sent"},
	}
}

// distrusts returns a text about the row's operation rec, as [session.Distrusts] does.
func (b *batch) distrusts(ctx context.Context, r *input.Row, rec *persist.Record) string {
	if !b.survey.exposed {
		return ""
	}
	req, err := b.plan.request(ctx, r)
	if err != nil {
		return "" // cannot be: the survey made the same request
	}
	prepared, err := b.survey.client.Prepare(req, oncehttp.Key(rec.Key))
	if err != nil || !request.Same(&prepared, rec) {
		return ""
	}
	return session.Distrusts(rec, &prepared, time.Now())
}

// distrusted returns the line of a row that is not sent again, since this run's profile does not trust its key.
func (b *batch) distrusted(ctx context.Context, r *input.Row) (results.Line, bool) {
	rec, err := b.lookup(ctx, b.plan.keyOf(r, b.plan.generation))
	if err != nil {
		return results.Line{}, false
	}
	why := b.distrusts(ctx, r, &rec)
	return session.Distrusted(&rec, why, words.ShellQuote(b.session.Place.Arg)), why != ""
}
