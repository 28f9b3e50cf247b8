// Package results holds the results of operations: lines of output, totals, and the summary of many.
package results

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
)

// FinallyRefused reports whether the operation certainly had no effect. Only such an operation may be tried under a new key. An event of
// the API against its end leaves that open (invariant 54). Only an end counts: by an answer (confirmed), or by a person (settled as absent).
func (list Declines) FinallyRefused(rec *persist.Record) bool {
	if rec.Evidence != nil {
		return false
	}
	switch list.ResultOfRecord(rec) {
	case Declined, Invalid:
		return rec.State == persist.StateConfirmed
	case Rejected:
		return rec.State == persist.StateSettled
	}
	return false
}

// IsContradicted reports whether an event of the API and the recorded end of an operation contradict each other: it happened, and it did not. The outcome is
// unknown then, and only the API knows it. (Invariant 56.) The outcome of an abandoned operation is unknown anyway.
func IsContradicted(rec *persist.Record) bool {
	return rec.Evidence != nil && rec.State.Final() && rec.State != persist.StateAbandoned && oncehttp.OutcomeOf(rec) == oncehttp.OutcomeUnknown
}

// contradiction returns the message about an operation of which IsContradicted is true.
func contradiction(rec *persist.Record) string {
	return "an event of the API (" + words.Clip(rec.Evidence.Type+" "+rec.Evidence.Event) + ") says that it happened, and its recorded end (" + standingText(rec) + ") that it did not; ask the API what came of it"
}

// Contradicted makes the line say that the operation's end is contradicted, if rec, its record, says so. Then the result is Unknown; any other result is of another
// record, such as that of a later generation, and stays.
func (l *Line) Contradicted(rec *persist.Record) {
	if l.Result == Unknown && IsContradicted(rec) {
		l.Error = &LineError{Code: CodeContradicted, Message: contradiction(rec)}
	}
}

// Recorded returns the line that is printed for an operation by its record in the journal, in place of a send. If it is not simply done, the line's error
// says why nothing new may be tried. The parameter what is the operation's name in that error, such as "generation 1" (its first try; each has a key of its
// own). The error's code is "generation", or the state of an abandoned operation.
func (list Declines) Recorded(rec *persist.Record, what string) Line {
	l := list.Confirmed(rec)
	l.GoesOn = rec.State == persist.StatePending
	switch {
	case IsContradicted(rec): // Confirmed has set the error
	case l.Result == Done && rec.State != persist.StateHeld: // by its answer, or settled as happened
		l.State = rec.State.String()
	case rec.State != persist.StateConfirmed:
		l.State = rec.State.String()
		if rec.State == persist.StateHeld { // also if its result is duplicate
			l.Exit = terminal.ExitUnknown
		}
		code := "generation"
		if rec.State == persist.StateAbandoned {
			code = rec.State.String()
		}
		l.Error = &LineError{Code: code, Message: what + " is " + standingText(rec) + ", so that nothing new may be tried"}
	case list.FinallyRefused(rec):
		l.Error = &LineError{Code: "generation", Message: what + " has a final refusal; the generation after it comes before this one"}
	}
	return l
}

// Confirmed returns the line that is printed for an operation by its record, with the kept answer if it is confirmed. The list has the answers that count as
// refusals. If the answer was pruned, and may have been one, the result is unknown, and the line says why.
func (list Declines) Confirmed(rec *persist.Record) Line {
	l := Line{
		Key: rec.Key, Result: list.ResultOfRecord(rec), Outcome: oncehttp.OutcomeOf(rec).String(), Source: SourceName(oncehttp.SourceJournal),
		Attempts: rec.Attempts, Sends: rec.Sends,
	}
	l.Exit = l.Result.Exit()
	if IsContradicted(rec) {
		l.Status, l.State = rec.Status, rec.State.String()
		l.Error = &LineError{Code: CodeContradicted, Message: contradiction(rec)}
		return l
	}
	if rec.Answer == nil && l.Result == Unknown && rec.State == persist.StateConfirmed && rec.Evidence == nil {
		l.Status, l.State = rec.Status, rec.State.String()
		l.Error = &LineError{Code: CodeUnread, Message: "the answer was pruned, so that --declined was not looked for in it; ask the API what came of it"}
	}
	if a := rec.Answer; a != nil && rec.State == persist.StateConfirmed {
		text := TextOf(a.Header, a.Body)
		l.Dropped = a.Dropped
		l.Judge(list, a.Status, text, a.BodyDropped, a.AlreadyDone)
		l.LookForDoubt(a.Header, text, a.Replayed)
	}
	return l
}

// standingText returns the state of a record, and of a settled one the effect that was stated.
func standingText(rec *persist.Record) string {
	if rec.State == persist.StateSettled {
		return rec.State.String() + " (" + string(rec.Effect) + ")"
	}
	return rec.State.String()
}

// Result is the result of an operation for the business, in one word. Lines, summaries, filters and help use these words and no others.
type Result string

const (
	Done      Result = "done"      // a 2xx, and no decline was seen in it
	Accepted  Result = "accepted"  // a 202: the server has taken it on, and it may still fail
	Declined  Result = "declined"  // the business said no: 402, or an answer named by --declined, a 2xx or a final 4xx
	Invalid   Result = "invalid"   // any other final 4xx
	Rejected  Result = "rejected"  // nothing happened, and nothing is pending
	Mismatch  Result = "mismatch"  // the key belongs to another request; this one took no effect
	Held      Result = "held"      // in doubt, and nothing is sent until somebody settles it
	Unknown   Result = "unknown"   // in doubt
	Duplicate Result = "duplicate" // done before: by another row of the file, or so the server says; held if the server names no earlier one
)

// All returns all results, in the order of a summary.
func All() []Result {
	return []Result{
		Done, Accepted, Duplicate, Declined, Invalid, Rejected, Mismatch, Held, Unknown,
	}
}

// Help returns the words of all results, with commas between them, for help texts.
func Help() string {
	words := make([]string, 0, 9)
	for _, r := range All() {
		words = append(words, string(r))
	}
	return strings.Join(words, ", ")
}

// Parse returns the results with these names. An unknown name is an error.
func Parse(names []string) ([]Result, error) {
	var results []Result
	for _, name := range names {
		if !slices.Contains(All(), Result(name)) {
			return nil, fmt.Errorf("--result %q is not one of %s", words.Clip(name), Help())
		}
		results = append(results, Result(name))
	}
	return results, nil
}

// Exit returns the exit status for an operation with this result: 0 for a success, 3 if its end is unknown, else 1. An operation that was not sent is
// still to do: its caller uses terminal.ExitUnknown for it.
func (r Result) Exit() int {
	switch r {
	case Done, Accepted, Duplicate:
		return terminal.ExitOK
	case Held, Unknown:
		return terminal.ExitUnknown
	}
	return terminal.ExitRefused
}

// Declines are the answers known to the caller as refusals of the business, besides 402.
type Declines []decline

// decline is a JSON pointer into an answer's body and the text at it.
type decline struct{ pointer, equals string }

// BindDeclines adds the flag --declined to fs: answers that count as refusals. to gets its values.
func BindDeclines(fs *pflag.FlagSet, to *[]string) {
	fs.StringArrayVar(to, "declined", nil, "an answer of 2xx or a final 4xx that is a refusal, as JSON pointer and text, such as '/resultCode=Refused'; of 401, 403, 407, 409, 425, 429 and 5xx the status counts alone; may be repeated")
}

// ParseDeclines parses the values of --declined, answers that count as refusals: POINTER=TEXT, split at the first "=". An error names the first wrong one.
func ParseDeclines(texts []string) (Declines, error) {
	var list Declines
	for _, text := range texts {
		pointer, equals, found := strings.Cut(text, "=")
		if !found || !strings.HasPrefix(pointer, "/") || equals == "" {
			return nil, fmt.Errorf("--declined %q: want a JSON pointer, = and a text, such as /resultCode=Refused", words.Clip(text))
		}
		list = append(list, decline{pointer, equals})
	}
	return list, nil
}

// match reports whether a body has one of the texts of --declined, by which an answer counts as a refusal. Without --declined no body is decoded.
func (list Declines) match(body []byte) bool {
	if len(list) == 0 {
		return false
	}
	document := jsonpointer.Decode(body)
	return slices.ContainsFunc(list, func(d decline) bool {
		text, found := jsonpointer.Text(document, d.pointer)
		return found && text == d.equals
	})
}

// matchesOpen reports whether a body counts as a refusal by --declined, and by a word there that leaves its end open, such as pending.
func (list Declines) matchesOpen(body []byte) bool {
	var open Declines
	for _, d := range list {
		if saysOpen("=" + d.equals) { // it wants POINTER=WORD
			open = append(open, d)
		}
	}
	return open.match(body)
}

// MayHide reports whether an answer with this result may be a refusal that was not seen: a text of --declined may stand in a body that is not there or cannot be
// read (dropped), or in a member that was left out of it, such as those of oncehttp.Config.DropAnswer.
func (list Declines) MayHide(r Result, dropped bool, without []string) bool {
	if r != Done && r != Accepted {
		return false
	}
	return dropped && len(list) > 0 || slices.ContainsFunc(list, func(d decline) bool { return leftOut(d.pointer, without) })
}

// Reads returns a pointer of --declined to a value that one of the pointers without leaves out of the kept answer, and that pointer: such a refusal could not be
// seen later. It returns "" and "" if there is none.
func (list Declines) Reads(without []string) (pointer, leaves string) {
	for _, d := range list {
		for _, out := range without {
			if leftOut(d.pointer, []string{out}) {
				return d.pointer, out
			}
		}
	}
	return "", ""
}

// leftOut reports whether the value at a pointer, or a part of it, is missing in an answer from which the values at the pointers without were taken.
// These may have been taken out of each item of a list, too.
func leftOut(pointer string, without []string) bool {
	inAny := func(string) bool { return true } // nobody says where the answer has lists
	return slices.ContainsFunc(without, func(out string) bool {
		return jsonpointer.Overlap(out, pointer) || jsonpointer.OverlapInItem(out, pointer, inAny)
	})
}

// Unseen makes the result of a line unknown if its answer may hide a refusal: a text of --declined may stand in a part of the answer that is not there, or cannot be
// read.
func (list Declines) Unseen(l *Line) {
	if !list.MayHide(l.Result, l.BodyDropped || l.unreadable, l.Dropped) {
		return
	}
	why := "the answer was pruned, or is over 1 MiB or a stream"
	switch {
	case l.BodyDropped:
	case l.unreadable:
		why = "the answer cannot be read as JSON"
	default:
		why = "the journal keeps the answer without " + strings.Join(l.Dropped, ", ")
	}
	l.Result = Unknown
	l.Exit, l.Error = l.Result.Exit(), &LineError{Code: CodeUnread, Message: why + ", so that --declined was not looked for in it; ask the API what came of it"}
}

// ResultOfAnswer returns the result of a final answer. body may be nil if it was not kept; then only the status and refused count. alreadyDone is true if the
// answer is about something done before. refused is true if the client takes the answer for a refusal; a profile's verdicts may do so with a 2xx. An error
// status is Invalid (the request is to be corrected), but for 402: the payment was declined.
func (list Declines) ResultOfAnswer(status int, body []byte, alreadyDone, refused bool) Result {
	if list.match(body) || refused && status < 400 {
		return Declined
	}
	switch {
	case alreadyDone:
		return Duplicate
	case status == http.StatusPaymentRequired:
		return Declined
	case status >= 400:
		return Invalid
	case status == http.StatusAccepted:
		return Accepted
	}
	return Done
}

// ResultOfRecord returns the result of an operation by its record. A pruned answer is judged by its status and its effect: a status of
// 400 or more with an effect belongs to a repeat after the effect. A pending or abandoned operation is Unknown.
func (list Declines) ResultOfRecord(rec *persist.Record) Result {
	if IsContradicted(rec) {
		return Unknown
	}
	switch rec.State {
	case persist.StateConfirmed:
		if rec.Answer == nil { // pruned: the status and the effect are left
			result := list.ResultOfAnswer(rec.Status, nil, rec.Status >= 400 && rec.FinalEffect() == persist.EffectHappened, rec.FinalEffect() == persist.EffectRefused)
			if list.MayHide(result, true, nil) {
				return Unknown
			}
			return result
		}
		text := TextOf(rec.Answer.Header, rec.Answer.Body)
		result := list.ResultOfAnswer(rec.Answer.Status, text, rec.Answer.AlreadyDone && !isOwn(rec.Attempts), rec.FinalEffect() == persist.EffectRefused)
		if list.MayHide(result, rec.Answer.BodyDropped || unreadable(text), rec.Answer.Dropped) {
			return Unknown
		}
		return result
	case persist.StateSettled:
		if rec.Effect == persist.EffectAbsent {
			return Rejected
		}
		return Done
	case persist.StateMismatched:
		return Mismatch
	case persist.StateHeld:
		if rec.HoldReason == persist.HoldDuplicate {
			return Duplicate
		}
		return Held
	}
	return Unknown
}

// resultOfError returns the result of an operation with an error at its end. ErrFinal: it was decided before this call, or finally refused by it.
func resultOfError(err error) Result {
	switch {
	case errors.Is(err, oncehttp.ErrDuplicate):
		return Duplicate
	case errors.Is(err, oncehttp.ErrKeyReused) && !errors.Is(err, oncehttp.ErrHeld): // both: the operation under the key is held
		return Mismatch
	case errors.Is(err, oncehttp.ErrNoEffect):
		return Rejected
	case wasUnlooked(err):
		return Unknown
	case errors.Is(err, oncehttp.ErrFinal):
		var e *oncehttp.Error
		errors.As(err, &e)
		return resultOfEffect(e)
	case errors.Is(err, oncehttp.ErrHeld):
		return Held
	}
	return Unknown
}

// resultOfEffect returns the result of an operation that was decided before, by the error of the call that met it: by its effect, and by its answer, if that is
// kept.
func resultOfEffect(e *oncehttp.Error) Result {
	switch effect := e.Effect(); {
	case effect == oncehttp.EffectAbsent:
		return Rejected
	case effect == oncehttp.EffectUnknown && e.State != persist.StateMismatched: // erased, or an event of the API contradicts its end
		return Unknown
	case effect == oncehttp.EffectUnknown:
		return Mismatch
	case e.Answer != nil:
		return Declines(nil).ResultOfAnswer(e.Answer.Status, nil, e.Answer.Status >= 400 && effect == oncehttp.EffectHappened, effect == oncehttp.EffectRefused)
	case effect == oncehttp.EffectRefused:
		return Invalid
	case e.Outcome == oncehttp.OutcomeAccepted:
		return Accepted
	}
	return Done
}

// isErased reports whether an operation was decided before, by an answer of the API, and nothing but that is left of it. An end by a person, and that of
// another request, do not count.
func isErased(err error) bool {
	person := errors.Is(err, oncehttp.ErrSettled) || errors.Is(err, oncehttp.ErrAbandoned)
	return errors.Is(err, oncehttp.ErrFinal) && !errors.Is(err, oncehttp.ErrKeyReused) && !person && !wasUnlooked(err)
}

// wasUnlooked reports whether a call ended before it compared its request with that of the decided operation under its key, as one of a closed client does: the error
// tells the end of that operation, which may be of another request.
func wasUnlooked(err error) bool {
	var e *oncehttp.Error
	if !errors.Is(err, oncehttp.ErrFinal) || !errors.As(err, &e) || e.Attempts > 0 {
		return false
	}
	is := func(one error) bool { return errors.Is(err, one) }
	compared := slices.ContainsFunc([]error{oncehttp.ErrKeyReused, oncehttp.ErrAnswerGone, oncehttp.ErrSettled, oncehttp.ErrAbandoned}, is)
	// Each of these ends a call before the comparison.
	return !compared && (is(oncehttp.ErrClosed) || is(context.Canceled) || is(context.DeadlineExceeded))
}

// answerIsGone reports whether an operation was decided before, and no call can have its answer any more.
func answerIsGone(err error) bool {
	return errors.Is(err, oncehttp.ErrFinal) && errors.Is(err, oncehttp.ErrAnswerGone)
}
