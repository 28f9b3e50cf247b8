package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// lookup returns the record of a key in the journal, for the account of the batch's rows. The error is persist.ErrNotFound if there is none.
func (b *batch) lookup(ctx context.Context, key oncehttp.Key) (persist.Record, error) {
	return b.session.Journal.Get(ctx, persist.ID{Account: b.survey.account, Key: string(key)})
}

// judgeEarlier adds a note to the result line of a row that an earlier run has begun: by the --done or --declined of this run, its answer would count otherwise. The
// line's result stays.
func (b *batch) judgeEarlier(ctx context.Context, l *results.Line) {
	recorded := l.Source == results.SourceName(oncehttp.SourceJournal)
	// AsksDone: --done is given. A declined row may have been told as done by an earlier run (recorded), or have taken effect by an earlier send (Sends > 1).
	judged := b.flags.AsksDone() && isSuccess(l.Result) || l.Result == results.Declined && (recorded || l.Sends > 1)
	if !judged || l.Was != "" { // Was: keptBack has written such a note already
		return
	}
	rec, err := b.lookup(ctx, oncehttp.Key(l.Key))
	if err != nil {
		return
	}
	b.flags.JudgeEarlier(&rec, l)
	b.judgeDeclined(&rec, l)
}

// nameNext looks for later generations of a refused row, its tries after that of this run, and adds the result of the latest one to the row's line l. If that one
// succeeded with the row's request, its line replaces l. nameNext reports whether the line has changed.
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
	if l.Result != results.Mismatch { // to a mismatch, send has added it (nameDifferences)
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
		if l.Result != results.Mismatch || b.isSame(ctx, r, at, &last) {
			inDoubt(l, &last)
		}
	}
	if l.Next != "" && l.Error != nil { // without an Error its answer was pruned
		l.Error.Message += fmt.Sprintf("; generation %d of it is %s", l.NextAt, l.Next)
	}
	return l.Next != "" || l.Stands == results.StandsReplaced
}

// inDoubt makes the line of a refused row that of a row in doubt, if last, its latest generation, may have taken effect: it is pending, held or abandoned.
func inDoubt(l *results.Line, last *persist.Record) {
	switch last.State {
	case persist.StateHeld:
		l.Result = results.Held
	case persist.StatePending, persist.StateAbandoned:
		l.Result = results.Unknown
	default:
		return
	}
	l.Outcome, l.Status, l.State, l.Exit = oncehttp.OutcomeUnknown.String(), 0, last.State.String(), terminal.ExitUnknown
	if l.Error != nil {
		l.Error.Code = "generation"
	}
}

// latest returns the record and the number of the latest generation (try) of a row after that of this run. at is 0 if none was begun.
func (b *batch) latest(ctx context.Context, r *input.Row) (last persist.Record, at int) {
	for g := b.plan.generation + 1; ; g++ {
		rec, err := b.lookup(ctx, b.plan.keyOf(r, g))
		if err != nil {
			return last, at // there is none; other errors of the journal are met elsewhere
		}
		last, at = rec, g
	}
}

// isDone reports whether rec, the record of a generation (try) of the row, is a success for the very request of the row. It returns false for an erased record,
// whose request is gone.
func (b *batch) isDone(ctx context.Context, r *input.Row, generation int, rec *persist.Record) bool {
	if !isSuccess(b.flags.Declines.ResultOfRecord(rec)) || rec.Erased {
		return false
	}
	return b.isSame(ctx, r, generation, rec)
}

// recallStanding copies the attempts from the record under key into l, the line of a row that did not end well. Where the journal answered the row, or kept it from being
// sent, and holds its operation, it adds the reason of the last attempt, and the next step of a person. It returns the name of the profile that the operation was begun
// under, "" if there is no record.
func (b *batch) recallStanding(ctx context.Context, key oncehttp.Key, l *results.Line) (begun string) {
	rec, err := b.lookup(ctx, key)
	if err != nil {
		return "" // the line stays as it is
	}
	l.Contradicted(&rec) // the line says so, if an event of the API contradicts the recorded end
	// CountWhole: the attempts of earlier runs count, too. Idle: this run lacks something for the pending operation.
	if l.CountWhole(&rec); l.Idle && l.Result == results.Unknown && rec.State == persist.StatePending {
		l.TakeRecord(&rec)
		return rec.Profile
	}
	if !l.IsOfRecord() { // this run has sent the row itself
		return rec.Profile
	}
	kept := l.IsKeptBack()                                         // nothing was sent, because of the state of the operation; TakeRecord takes its attempts and sends into the line
	if l.TakeRecord(&rec); kept && rec.State.String() == l.State { // it stands still as the call has found it
		l.Standing(&rec, "oncehttp journal settle "+words.ShellQuote(session.SeenKey(&rec)), " --journal "+b.session.Place.Shell())
	}
	return rec.Profile
}

// nameDifferences adds to the line of a row why its key is taken: the names of what differs, if the journal has the key with another request or, if it is the same
// request, the key that a person has begun in its place. If that one succeeded, its line replaces l.
func (b *batch) nameDifferences(ctx context.Context, r *input.Row, key oncehttp.Key, generation int, l *results.Line) {
	rec, err := b.lookup(ctx, key)
	if err != nil {
		b.nameReplaced(ctx, r, generation, l) // without a record of the key, the generation before it is the reason
		return
	}
	which, err := b.differs(ctx, r, generation, &rec)
	switch {
	case err != nil:
	case which != "":
		l.Error.Message += "; what differs: " + which
		l.Differs = b.ofFlag(&rec, which)
		standsOpen(l, &rec)
		// A refused one lets the row be sent anew, unless whyKeptBack speaks against it, or a later generation (try) was begun already.
		if _, later := b.latest(ctx, r); b.flags.Declines.FinallyRefused(&rec) && !b.isKeptBack(&rec) && later <= generation {
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

// nameReplaced adds to the error in a row's line that a person has replaced the row's generation (try) before the given one by an operation under another key: no
// later generation is begun beside that.
func (b *batch) nameReplaced(ctx context.Context, r *input.Row, generation int, l *results.Line) {
	if by := b.rekeyed(ctx, r, generation-1); by != "" && l.Error != nil {
		l.Stands = results.StandsReplaced
		l.Error.Message += fmt.Sprintf("; a person began %q to replace generation %d; no generation is begun beside it", by, generation-1)
	}
}

// replacedEarlier returns the printed line of a row if a person has replaced this generation (try) of it by an operation under another key (rec.ReplacedBy). Nothing
// is sent for the row: it might take effect twice.
func (b *batch) replacedEarlier(r *input.Row, generation int, rec *persist.Record) results.Line {
	return results.Line{
		Key: string(b.plan.keyOf(r, b.plan.generation)), Result: results.Mismatch, Outcome: oncehttp.OutcomeNotSent.String(), Exit: terminal.ExitRefused, Stands: results.StandsReplaced,
		Error: &results.LineError{Code: "key_reused", Message: fmt.Sprintf("a person began %q to replace generation %d; no generation is begun beside it", rec.ReplacedBy, generation)},
	}
}

// elsewhere reports whether a person has replaced a generation (try) of a row, whose record is rec, by an operation under a key that is not the row's next
// generation. Then this batch must begin no later generation: the row might take effect twice.
func (p *plan) elsewhere(r *input.Row, generation int, rec *persist.Record) bool {
	return rec.ReplacedBy != "" && rec.ReplacedBy != string(p.keyOf(r, generation+1))
}

// rekeyed returns the key of the operation by which a person has replaced a generation (try) of a row, if it is not the row's next generation. It returns "" if
// there is no such operation, or no record: then the batch may begin a later generation.
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

// standing returns the line that is printed for a row which a run with --generation must not send, and true: an earlier generation (try) of the row is not refused
// for certain, or there is none. The line comes from the journal. It returns false if the row may be sent. It looks from the newest generation to the first.
// l.First is the generation that has to be run before the one of this run.
func (b *batch) standing(ctx context.Context, r *input.Row) (results.Line, bool) {
	last := b.plan.generation
	for g := last; g >= 1; g-- { // of last-1, a certain refusal lets the row be sent; an operation of last itself goes on by the usual call
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
		case g == last-1 && b.isKeptBack(&rec):
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
			l := collided(&rec, fmt.Sprintf("generation %d", g), which)
			l.Differs = b.ofFlag(&rec, which)
			return l, true
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

// neverBegun returns the line that is printed for a row which a run with --generation does not send, since the journal has no record of an earlier generation (try):
// the row was never sent, or each send was rejected and the journal forgot it. First says that generation 1 has to be run before.
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

// readRejected returns the operations that were rejected and that the journal has forgotten, the latest of each key. They are kept in a file beside it. Where they
// cannot be read, the map is nil: only the text of a line is less exact then (neverBegun).
func (b *batch) readRejected() map[persist.ID]forgotten.Operation {
	all, _, err := forgotten.Read(b.session.Place, time.Now()) // oldest first
	if err != nil {
		return nil
	}
	last := map[persist.ID]forgotten.Operation{}
	for _, o := range all {
		last[persist.ID{Account: o.Account, Key: o.Key}] = o
	}
	return last
}

// prepared returns the record with which a run would begin a generation (try) of a row. It is compared with recorded ones; nothing is written.
func (b *batch) prepared(ctx context.Context, r *input.Row, generation int) (persist.Record, error) {
	req, err := b.plan.request(ctx, r)
	if err != nil {
		return persist.Record{}, err
	}
	return b.survey.client.Prepare(req, b.plan.keyOf(r, generation))
}

// differs names the differences between the row and the record of one of its generations (tries): the method, the server, the URL, members of the body, or a header.
// It returns "" if they are the same request.
func (b *batch) differs(ctx context.Context, r *input.Row, generation int, rec *persist.Record) (string, error) {
	prepared, err := b.prepared(ctx, r, generation)
	if err != nil || request.Same(&prepared, rec) {
		return "", err
	}
	return view.Differences(&prepared, rec), nil
}

// isSame reports whether a generation (try) of the row, whose record is rec, has the row's request.
func (b *batch) isSame(ctx context.Context, r *input.Row, generation int, rec *persist.Record) bool {
	which, err := b.differs(ctx, r, generation, rec)
	return err == nil && which == ""
}

// erased returns the printed line of a row whose recorded generation (try) was erased on purpose. Only its end is known: whether its content was the row's cannot be
// compared. The record has a digest in place of the key.
func (b *batch) erased(r *input.Row, generation int, rec *persist.Record) results.Line {
	l := b.flags.Declines.Recorded(rec, fmt.Sprintf("generation %d", generation))
	l.Key = string(b.plan.keyOf(r, generation))
	return l
}

// isCollided reports whether a result line was made by collided: the row's key is in the journal with other content, and nothing was sent. Lines about a row that a person
// has replaced have the same code, and no State.
func isCollided(l *results.Line) bool {
	return l.Result == results.Mismatch && l.Sends == 0 && l.State != "" && l.Error != nil && l.Error.Code == "key_reused"
}

// collided returns the printed line of a row whose key is in the journal with other content: nothing was sent, and the recorded answer is not this row's. what names
// the recorded operation in the message; which names the differences.
func collided(rec *persist.Record, what, which string) results.Line {
	l := results.Line{
		Key: rec.Key, Result: results.Mismatch, Outcome: oncehttp.OutcomeNotSent.String(), State: rec.State.String(), Exit: terminal.ExitRefused,
		Error: &results.LineError{Code: "key_reused", Message: what + " is " + rec.State.String() + " with other content than this row (" + which + "), so that nothing was sent"},
	}
	standsOpen(&l, rec) // marks it, if the recorded operation is pending or held
	return l
}

// ofFlag returns which, the names of what differs between a row and the record of its key, if that is one part that a flag gives for all rows, so that the flag may be the
// mistake; "" otherwise, as where the recorded request is no longer kept, or the URL has columns of the row.
func (b *batch) ofFlag(rec *persist.Record, which string) string {
	if rec.RequestGone() || strings.Contains(b.flags.url, "{") {
		return ""
	}
	if slices.Contains([]string{view.DifferentMethod, view.DifferentServer, view.DifferentTarget, view.DifferentHeader}, which) {
		return which
	}
	return ""
}

// standsOpen marks the line of a mismatched row whose key stands for another request that is pending or held: something is still to be done then, although not for the row.
func standsOpen(l *results.Line, rec *persist.Record) {
	switch rec.State {
	case persist.StatePending:
		l.Stands = results.StandsPending
	case persist.StateHeld:
		l.Stands = results.StandsHeld
	default:
		return
	}
	l.Exit = terminal.ExitUnknown
	// collided has written the state into the message already.
	if l.Error != nil && !strings.Contains(l.Error.Message, " is "+rec.State.String()+" with other content") {
		l.Error.Message += "; that one is " + rec.State.String()
	}
}

// distrusts returns the reason against sending a pending operation of a row again: its record says that the API knows its key, and the profile of this run says that no
// key protects the request. It returns "" if there is no reason, as for a record of another request.
func (b *batch) distrusts(ctx context.Context, r *input.Row, rec *persist.Record) string {
	if !b.survey.exposed { // by the profile of this run, a key protects each row
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

// distrusted returns the printed line of a row that is not sent again, and true: its record says that the API knows its key, and the profile of this run says that
// it does not. It returns false if the row may be sent.
func (b *batch) distrusted(ctx context.Context, r *input.Row) (results.Line, bool) {
	rec, err := b.lookup(ctx, b.plan.keyOf(r, b.plan.generation))
	if err != nil {
		return results.Line{}, false
	}
	why := b.distrusts(ctx, r, &rec)
	return session.Distrusted(&rec, why, b.session.Place.Shell()), why != ""
}
