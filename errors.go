package oncehttp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Every error of Do matches exactly one of these two.
var (
	// ErrNoEffect: nothing happened, and nothing is pending. It is safe to go on
	// as if the request had never been made.
	ErrNoEffect = errors.New("no effect")
	// ErrOutcomeUnknown: an effect is possible, or is intended and pending. Go
	// on with the same key, or settle or abandon it; never with a new key.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// The rest say why. Which of the two above comes with each is in its comment.
var (
	// ErrNotSent: no attempt reached the server. With ErrNoEffect, unless the
	// operation was enqueued and stays pending.
	ErrNotSent = errors.New("not sent")
	// ErrRefused: the server said that it did not act. As ErrNotSent.
	ErrRefused = errors.New("refused by the server")
	// ErrInFlight: the server still works on an earlier attempt, or another
	// process holds the operation. With ErrOutcomeUnknown.
	ErrInFlight = errors.New("still in flight")
	// ErrKeyReused: the key belongs to another request. With ErrOutcomeUnknown
	// where the operation that has the key is in doubt, else with ErrNoEffect.
	// Error.State is that operation's state.
	ErrKeyReused = errors.New("key belongs to another request")
	// ErrKeyExpired: the server may have forgotten the key. With ErrOutcomeUnknown.
	ErrKeyExpired = errors.New("key may have expired on the server")
	// ErrStoredError: the server keeps an error under the key and gives it
	// again; reconcile. With ErrOutcomeUnknown.
	ErrStoredError = errors.New("server keeps an error under this key; reconcile")
	// ErrDuplicate: the server says that a business reference of the request was used
	// before, and not by whom: an earlier attempt, or another operation. With
	// ErrOutcomeUnknown.
	ErrDuplicate = errors.New("its business reference was used before")
	// ErrRedirected: the answer is a redirect that is not followed. With
	// ErrOutcomeUnknown.
	ErrRedirected = errors.New("redirect not followed")
	// ErrHeld: nothing is sent until it is settled. With ErrOutcomeUnknown.
	ErrHeld = errors.New("held until settled")
	// ErrSettled: the key was settled by Settle or Config.Reconcile. With ErrNoEffect where it was
	// settled as absent, else with ErrOutcomeUnknown.
	ErrSettled = errors.New("key was settled")
	// ErrFinal: Settle or Abandon was called for an operation that is final already, as
	// Error.State says. With ErrNoEffect where it was settled as absent or its key
	// belongs to another request, with ErrOutcomeUnknown where it was abandoned;
	// with neither where it took effect. Never of Do.
	ErrFinal = errors.New("operation is final")
	// ErrAbandoned: the key was abandoned by Abandon. With ErrOutcomeUnknown.
	ErrAbandoned = errors.New("key was abandoned")
	// ErrAnswerGone: the operation is confirmed, or settled as happened, but its
	// answer is not kept; its status may be, in Error.Answer. With
	// ErrOutcomeUnknown: an effect there was, very likely.
	ErrAnswerGone = errors.New("it has ended, but no answer is kept")
	// ErrKeyInvalid: the profile does not take this key, or the request names
	// it in two ways. With ErrNoEffect, unless an operation exists under one of the
	// keys that the call named; without a key, unless one under a generated key is
	// unresolved or unreported that may be of the same request.
	ErrKeyInvalid = errors.New("invalid key")
	// ErrConfig: the client or the request is not put together rightly. The verdict
	// beside it is as for ErrKeyInvalid.
	ErrConfig = errors.New("invalid configuration or request")
	// ErrBodyTooLarge: the body is over Config.MaxRequestBytes. The verdict beside
	// it is as for ErrKeyInvalid.
	ErrBodyTooLarge = errors.New("request body too large")
	// ErrHeaderTooLarge: target and headers are over Config.MaxRequestHeaderBytes.
	// The verdict beside it is as for ErrKeyInvalid.
	ErrHeaderTooLarge = errors.New("request headers too large")
	// ErrClosed: the client was closed, or is being closed. With ErrNoEffect where
	// the call had not begun and nothing exists under its key; with
	// ErrOutcomeUnknown where Close cut the waits of an operation, which Resume goes
	// on with, or where one existed under the key before.
	ErrClosed = errors.New("client is closed")
)

// Error is what every failed operation returns. errors.Is finds the sentinels
// that it matches and, through Unwrap, what is behind Cause and Last.
type Error struct {
	_ struct{}

	// Op is the call that failed, such as "do" or "enqueue".
	Op string
	// Key is the key of the operation that the error is about: the one that goes on
	// with it. It may be another than the caller's, where that names several or
	// none. Empty: there is none that may be gone on with.
	Key Key
	// Outcome is what is known of the operation.
	Outcome Outcome
	// State is the state of the operation's record after the call. Where the call
	// was refused because of it (ErrKeyReused, ErrHeld, ErrSettled), it is why. Zero
	// (pending) also where there is no record.
	State persist.State
	// Attempts and Sends count this call's attempts and the sends on the wire
	// that they made, as far as could be seen.
	Attempts, Sends int
	// NextAttempt, if set, is when it is worth going on; Resume does nothing before.
	NextAttempt time.Time
	// Cause is why oncehttp stopped; Last is the last attempt's own error.
	// Either may be nil.
	Cause, Last error
	// Answer is the last answer, as far as it is kept; nil if there was none.
	Answer *persist.Answer

	is []error
}

// Error is one line that starts with "oncehttp: ". It holds the key, never a
// body, a credential or a query string.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("oncehttp: ")
	b.WriteString(e.Op)
	if e.Key != "" {
		fmt.Fprintf(&b, " %q", string(e.Key))
	}
	separator := ": "
	for _, s := range e.is {
		if s == ErrOutcomeUnknown && slices.Contains(e.is, ErrAnswerGone) {
			continue // it took effect; only what was answered is unknown
		}
		b.WriteString(separator + s.Error())
		separator = ", "
	}
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

func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// hasLast reports whether Last says something that Cause does not.
func (e *Error) hasLast() bool {
	return e.Last != nil && !(errors.Is(e.Last, e.Cause) && errors.Is(e.Cause, e.Last))
}

// Is reports whether target is one of the sentinels that e matches.
func (e *Error) Is(target error) bool { return slices.Contains(e.is, target) }

// Unwrap gives Cause and Last, those that are set. One that holds a verdict on
// another operation, as the cause of an errgroup's context may, says what it says
// and matches nothing: what became of that one is not what became of this one.
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

// asAnother keeps the text alone of an error that holds a verdict of this package: it is not this operation's.
func asAnother(err error) error {
	var other *Error
	said := errors.As(err, &other)
	for _, verdict := range []error{
		ErrNoEffect, ErrOutcomeUnknown, ErrNotSent, ErrRefused, ErrInFlight, ErrKeyReused, ErrKeyExpired, ErrStoredError,
		ErrDuplicate, ErrRedirected, ErrHeld, ErrSettled, ErrFinal, ErrAbandoned, ErrAnswerGone,
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

// Error is the text alone.
func (a aboutAnother) Error() string { return a.err.Error() }

// startError refuses a request before anything was written or sent.
func startError(op string, key Key, why error, format string, args ...any) *Error {
	e := &Error{Op: op, Key: key, Outcome: OutcomeNotSent, is: []error{ErrNoEffect, why}}
	if format != "" {
		e.Cause = fmt.Errorf(format, args...)
	}
	return e
}

// doubt turns the verdict into "outcome unknown", because of a record that exists or may exist. "Not sent" is then true
// only of a record that was never sent.
func (e *Error) doubt(rec persist.Record) {
	e.Key, e.State, e.Outcome = Key(rec.Key), rec.State, OutcomeUnknown
	e.is[0] = ErrOutcomeUnknown
	if neverSent := rec.Revision > 0 && !rec.MaybeSent; !neverSent {
		e.is = slices.DeleteFunc(e.is, func(is error) bool { return is == ErrNotSent })
	}
}
