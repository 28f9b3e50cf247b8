package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// The verdicts, and the reasons beside them. The variables of package oncehttp document them.
var (
	ErrNoEffect       = persist.ErrNoEffect                                           // the verdict of operation.NoEffect
	ErrFinal          = persist.ErrFinal                                              // the verdict of operation.Final
	ErrOutcomeUnknown = persist.ErrOutcomeUnknown                                     // the verdict of operation.Unknown, and of an Error without any
	ErrNotSent        = errors.New("not sent")                                        // no send reached the network
	ErrRefused        = errors.New("refused by the server")                           // the server says that it did not act, and may act later
	ErrInFlight       = errors.New("still in flight")                                 // another call, process or attempt has it
	ErrKeyReused      = errors.New("key belongs to another request")                  // also: the operation was replaced by another one
	ErrKeyExpired     = errors.New("key may have expired on the server")              // the window is over
	ErrStoredError    = errors.New("server keeps an error under this key; reconcile") // a repeat gets the same error
	ErrDuplicate      = errors.New("its business reference was used before")          // by whom is not known
	ErrRedirected     = errors.New("redirect not followed")                           // the operation is held
	ErrHeld           = errors.New("held until settled")                              // also for a caller of Transport
	ErrSettled        = errors.New("key was settled")                                 // by a person, Reconcile or an event
	ErrAbandoned      = errors.New("key was abandoned")                               // its effect is not known
	ErrStale          = errors.New("moved since it was seen")                         // an act did nothing, since AsSeen does not hold
	ErrAnswerGone     = errors.New("its answer is not kept")                          // the end is known without it
	ErrNoKey          = errors.New("no key for this request")                         // returned by a NewKey
	ErrKeyInvalid     = errors.New("invalid key")                                     // nothing was begun
	ErrAccount        = errors.New("may be another account's")                        // the error names a Reference in place of a key
	ErrConfig         = errors.New("invalid configuration or request")                // nothing changes until somebody mends it
	ErrBodyTooLarge   = errors.New("request body too large")                          // nothing was begun
	ErrHeaderTooLarge = errors.New("request headers too large")                       // nothing was begun
	ErrClosed         = errors.New("client is closed")                                // or is being closed
	ErrCaptured       = errors.New("captured, and not sent")                          // the caller of Capture has the request
)

// Error has the fields of oncehttp.Error, and is documented there.
type Error struct {
	// Op is the name of the failed call.
	Op string
	// Key is the key that goes on with the operation; empty: none may.
	Key string
	// Reference stands for the key of an operation that may be another caller's; else it is empty.
	Reference string
	// Outcome is the knowledge about the operation.
	Outcome Outcome
	// State is the state of the record as the call found it.
	State persist.State
	// Attempts and Sends are those of the call, for all of its callers.
	Attempts, Sends int
	// Joined: the caller has waited for a call of another.
	Joined bool
	// NextAttempt is the earliest time of another attempt; zero: none is known.
	NextAttempt time.Time
	// Cause is the reason for the end of the call, and Last the error of its last attempt. Either may be nil.
	Cause, Last error
	// Answer is the last answer as a record has it; nil if there was none.
	Answer *persist.Answer

	// Said decides the verdict. newError alone sets it, by the table of package operation.
	Said Said
}

// Said is the part of an Error told only by its methods.
type Said struct {
	verdict operation.Verdict // one of three
	effect  persist.Effect    // that the verdict implies
	why     []error           // the sentinels beside it
	goesOn  bool              // it is held for a caller of plain HTTP: a call with its key goes on
}

// Effect returns the effect that the verdict implies.
func (e *Error) Effect() persist.Effect { return e.Said.effect }

// Error returns one line that starts with "oncehttp: ". It holds the key, never a
// body, a credential or a query string.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("oncehttp: ")
	b.WriteString(e.Op)
	if e.Key != "" {
		fmt.Fprintf(&b, " %q", e.Key)
	}
	if e.Reference != "" {
		b.WriteString(" " + e.Reference)
	}
	said := e.Said.text()
	if found := lookupError(""); errors.As(e.Last, &found) { // of a business reference, whatever the key
		said = strings.Replace(said, ErrKeyReused.Error(), "its reference may belong to another request", 1)
	}
	b.WriteString(": " + e.sentinel().Error() + said)
	switch {
	case e.Attempts == 1:
		b.WriteString(" after 1 attempt")
	case e.Attempts > 1:
		fmt.Fprintf(&b, " after %d attempts", e.Attempts)
	}
	if e.Answer != nil {
		fmt.Fprintf(&b, ", last answer %d", e.Answer.Status)
	}
	if !e.NextAttempt.IsZero() {
		b.WriteString(", not due before " + e.NextAttempt.UTC().Format(time.RFC3339))
	}
	if e.Cause != nil {
		b.WriteString(": " + oneLine(asAnother(e.Cause)))
	}
	if e.hasLast() {
		b.WriteString("; last attempt: " + oneLine(asAnother(e.Last)))
	}
	return b.String()
}

// text returns the effect and the further reasons of an error, behind the words of its verdict; "" if there are none.
func (s *Said) text() string {
	text := ""
	if s.verdict == operation.Final && s.effect != persist.EffectUnknown {
		text = " (" + string(s.effect) + ")"
	}
	for _, why := range s.why {
		if why == ErrInFlight && s.verdict == operation.Final {
			continue // it has ended; the cause says what may still be sent
		}
		text += ", " + why.Error()
		if why == ErrHeld && s.goesOn {
			text += ", or until a call with this key goes on,"
		}
	}
	return text
}

// oneLine returns the text of err, with "; " in place of line breaks. err must not be nil.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// hasLast reports whether Last, the error of the last attempt, says something that Cause does not. If each of them matches the other, they are one error.
func (e *Error) hasLast() bool {
	return e.Last != nil && !(errors.Is(e.Last, e.Cause) && errors.Is(e.Cause, e.Last))
}

// Is reports whether target is e's verdict, or the sentinel of one of its reasons.
func (e *Error) Is(target error) bool {
	return target == e.sentinel() || slices.Contains(e.Said.why, target)
}

// sentinel returns the error that stands for the verdict: ErrNoEffect, ErrFinal or ErrOutcomeUnknown.
func (e *Error) sentinel() error {
	switch e.Said.verdict {
	case operation.NoEffect:
		return ErrNoEffect
	case operation.Final:
		return ErrFinal
	}
	return ErrOutcomeUnknown
}

// Unwrap returns Cause and Last, as far as they are set. One of them may hold a verdict on another operation, such as the cause of an
// errgroup's context. It keeps its text then, and matches nothing: the other operation's outcome is not the outcome of this one.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Cause != nil {
		errs = append(errs, asAnother(e.Cause))
	}
	if e.hasLast() {
		errs = append(errs, asAnother(e.Last))
	}
	return errs
}

// Timeout reports whether the call ended since a time was over: the deadline of its context, a time limit of the Config, or one of the network. A call that was
// canceled before is none, even if its last attempt ran into a time limit.
func (e *Error) Timeout() bool {
	if e.Cause != nil && !errors.Is(e.Cause, context.DeadlineExceeded) && errors.Is(e.Cause, context.Canceled) {
		return false
	}
	return e.says(func(err interface{ Timeout() bool }) bool { return err.Timeout() })
}

// Temporary reports whether it is safe to try again, since nothing happened, and may help: the cause was a time limit, or a network error that calls itself
// temporary.
func (e *Error) Temporary() bool {
	return e.Said.verdict == operation.NoEffect && (e.Timeout() || e.says(func(err interface{ Timeout() bool }) bool {
		t, ok := err.(interface{ Temporary() bool })
		return ok && t.Temporary()
	}))
}

// says reports whether yes returns true for one of the errors behind e with a method Timeout, such as those of package net.
func (e *Error) says(yes func(interface{ Timeout() bool }) bool) bool {
	return slices.ContainsFunc(e.Unwrap(), func(err error) bool {
		var known interface {
			error
			Timeout() bool
		}
		return errors.As(err, &known) && yes(known)
	})
}

// asAnother reduces an error to its text if it holds a verdict of this package: the verdict is not on this operation.
func asAnother(err error) error {
	var other *Error
	said := errors.As(err, &other)
	for _, verdict := range []error{
		ErrNoEffect, ErrOutcomeUnknown, ErrNotSent, ErrRefused, ErrInFlight, ErrKeyReused, ErrKeyExpired, ErrStoredError,
		ErrDuplicate, ErrRedirected, ErrHeld, ErrSettled, ErrFinal, ErrAbandoned, ErrAnswerGone, ErrStale,
	} {
		said = said || errors.Is(err, verdict)
	}
	if said {
		return aboutAnother{err}
	}
	return err
}

// aboutAnother is an error about another operation; only its text shows.
type aboutAnother struct{ err error }

// Error returns the text of the error inside.
func (a aboutAnother) Error() string { return a.err.Error() }

// subject is the operation of an error, as far as the failed call knows it.
type subject struct {
	key      string              // empty: no key may go on with it
	state    persist.State       // of its record
	standing operation.Standing  // of the operation
	known    operation.Knowledge // what the call knows of it
	sent     bool                // it may have been handed to the network before
	untold   bool                // it has ended, and its effect is not known, or is not told
	// reference stands for an operation possibly of another caller, with nothing else said of it; else "".
	reference string
}

// nothing returns the subject of an error (what the error tells of its operation) about a call under key that began nothing, where the journal had nothing before
// either: the error may say "not sent".
func nothing(key string) subject {
	return subject{key: key, standing: operation.None, known: operation.Unread}
}

// unclear returns the subject of an error (what the error tells of its operation) about an operation under key in an unknown state: the error must say that it may
// take effect.
func unclear(key string) subject { return subject{key: key, sent: true} }

// unclearTo returns the subject of an error about an operation in an unknown state. The error has the key only if the caller may see it: call says whether the key
// was made for the call, at what the call saw under the key, and intent.CallKey decides.
func unclearTo(call intent.CallKey, at intent.Glance, key string) subject {
	return unclear(namedTo(call, at, key))
}

// namedTo returns key if the caller of an error may see it (intent.CallKey), else "".
func namedTo(call intent.CallKey, at intent.Glance, key string) string {
	if call.Named(at) {
		return key
	}
	return ""
}

// unnamed is the key in the errors of a call that names none itself, about another operation of the same request.
var unnamed = intent.CallKey{Keyless: true}

// subjectOf returns the subject of an error about a record: all that the error says of the operation. known is what the call knows of the record's request, such as
// that it is its own. The state of a final record must be durable, since the error tells it.
func subjectOf(rec *persist.Record, known operation.Knowledge) subject {
	op := operation.OpOf(rec, 0)
	told := operation.ToldStanding(rec)
	return subject{key: rec.Key, state: rec.State, standing: told, known: known, sent: op.EverSent(), untold: isUntold(rec, told)}
}

// newError makes every Error, for the call op about an operation. The verdict (no effect, final or unknown) follows from the operation's standing, what became of
// it, and from what the call knows. The Outcome stays unknown for an end without a known effect (untold), and if the journal has nothing of an operation that may
// have been sent. why holds the sentinels of the reasons; nil is left out, and so is ErrNotSent if the operation may have been sent.
func newError(op string, about subject, cause error, why ...error) *Error {
	verdict := operation.Judge(about.standing, about.known)
	e := &Error{
		Op: op, Key: about.key, Reference: about.reference, State: about.state, Cause: cause,
		Outcome: OutcomeUnknown, Said: Said{verdict: verdict, effect: verdict.Effect(about.standing)},
	}
	if verdict != operation.Unknown && !(about.standing == operation.None && about.sent) && !about.untold {
		e.Outcome = outcomeOf(about.standing)
	}
	for _, is := range why {
		if is != nil && !(is == ErrNotSent && about.sent) {
			e.Said.why = append(e.Said.why, is)
		}
	}
	return e
}

// own returns a separate copy of a call's error for one of its waiting callers, under op, the name of this caller's own call. joined: another caller began that
// call. Any error but an *Error is returned as it is.
func own(err error, op string, joined bool) error {
	shared, ok := err.(*Error)
	if !ok {
		return err
	}
	e := *shared
	e.Op, e.Joined, e.Said.why = op, joined, slices.Clone(shared.Said.why)
	if shared.Answer != nil {
		answer := *shared.Answer
		answer.Header, answer.Body = answer.Header.Clone(), slices.Clone(answer.Body)
		e.Answer = &answer
	}
	return &e
}
