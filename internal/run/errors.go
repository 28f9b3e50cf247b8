package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// The verdicts, and the reasons beside them. The variables of package oncehttp document them.
var (
	ErrNoEffect       = persist.ErrNoEffect
	ErrFinal          = persist.ErrFinal
	ErrOutcomeUnknown = persist.ErrOutcomeUnknown
	ErrNotSent        = errors.New("not sent")
	ErrRefused        = errors.New("refused by the server")
	ErrInFlight       = errors.New("still in flight")
	ErrKeyReused      = errors.New("key belongs to another request")
	ErrKeyExpired     = errors.New("key may have expired on the server")
	ErrStoredError    = errors.New("server keeps an error under this key; reconcile")
	ErrDuplicate      = errors.New("its business reference was used before")
	ErrRedirected     = errors.New("redirect not followed")
	ErrHeld           = errors.New("held until settled")
	ErrSettled        = errors.New("key was settled")
	ErrAbandoned      = errors.New("key was abandoned")
	ErrStale          = errors.New("moved since it was seen")
	ErrAnswerGone     = errors.New("its answer is not kept")
	ErrNoKey          = errors.New("no key for this request")
	ErrKeyInvalid     = errors.New("invalid key")
	ErrAccount        = errors.New("may be another account's")
	ErrConfig         = errors.New("invalid configuration or request")
	ErrBodyTooLarge   = errors.New("request body too large")
	ErrHeaderTooLarge = errors.New("request headers too large")
	ErrClosed         = errors.New("client is closed")
	ErrCaptured       = errors.New("captured, and not sent")
)

// Error has the fields of oncehttp.Error, and is documented there.
type Error struct {
	Op              string
	Key             string
	Reference       string
	Outcome         Outcome
	State           persist.State
	Attempts, Sends int
	Joined          bool
	NextAttempt     time.Time
	Cause, Last     error
	Answer          *persist.Answer

	Said Said
}

// Said is the part of an Error told only by its methods.
type Said struct {
	verdict operation.Verdict
	effect  persist.Effect
	why     []error
	goesOn  bool // it is held for a caller of plain HTTP: a call with its key goes on
}

// Effect returns the effect that the verdict implies.
func (e *Error) Effect() persist.Effect { return e.Said.effect }

// Error is one line that starts with "oncehttp: ". It holds the key, never a
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
	b.WriteString(": " + e.sentinel().Error() + e.Said.text())
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

// hasLast reports whether Last adds something to Cause.
func (e *Error) hasLast() bool {
	return e.Last != nil && !(errors.Is(e.Last, e.Cause) && errors.Is(e.Cause, e.Last))
}

// Is reports whether target is e's verdict, or the sentinel of one of its reasons.
func (e *Error) Is(target error) bool {
	return target == e.sentinel() || slices.Contains(e.Said.why, target)
}

// sentinel returns the verdict as an error.
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

// Timeout reports whether the call ended since a time was over: the deadline of its context, a time limit of the Config, or one of the network.
func (e *Error) Timeout() bool {
	if e.Cause != nil && !errors.Is(e.Cause, context.DeadlineExceeded) && errors.Is(e.Cause, context.Canceled) {
		return false
	}
	return e.says(func(err interface{ Timeout() bool }) bool { return err.Timeout() })
}

// Temporary reports whether it is safe to try again, since nothing happened, and may help.
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

// Error is the text alone.
func (a aboutAnother) Error() string { return a.err.Error() }

// subject is the operation of an error, as far as the failed call knows it.
type subject struct {
	key      string
	state    persist.State
	standing operation.Standing
	known    operation.Knowledge
	sent     bool // it may have been handed to the network before
	// reference stands for an operation possibly of another caller, with nothing else said of it; else "".
	reference string
}

// nothing is the subject of a call under key if the call began nothing and nothing stands under the key either.
func nothing(key string) subject {
	return subject{key: key, standing: operation.None, known: operation.Unread}
}

// unclear is the subject if the standing of the operation under key is not known.
func unclear(key string) subject { return subject{key: key, sent: true} }

// unclearTo is unclear for the error of a call: it has the key only if operation.CallKey names it.
func unclearTo(call operation.CallKey, at operation.Glance, key string) subject {
	return unclear(namedTo(call, at, key))
}

// namedTo returns the key if operation.CallKey names it, else "".
func namedTo(call operation.CallKey, at operation.Glance, key string) string {
	if call.Named(at) {
		return key
	}
	return ""
}

// unnamed is the key in the errors of a call that names none itself, about another operation of the same request.
var unnamed = operation.CallKey{Keyless: true}

// subjectOf is the subject of a record. The record must be durable if it is final.
func subjectOf(rec *persist.Record, known operation.Knowledge) subject {
	op := operation.OpOf(rec, 0)
	return subject{key: rec.Key, state: rec.State, standing: op.Standing, known: known, sent: op.EverSent()}
}

// newError makes every Error, for the call op about an operation. Package operation gives the verdict. why holds the sentinels of the
// reasons; ErrNotSent is dropped if the operation may have been sent.
func newError(op string, about subject, cause error, why ...error) *Error {
	verdict := operation.Judge(about.standing, about.known)
	e := &Error{
		Op: op, Key: about.key, Reference: about.reference, State: about.state, Cause: cause,
		Outcome: OutcomeUnknown, Said: Said{verdict: verdict, effect: verdict.Effect(about.standing)},
	}
	if verdict != operation.Unknown && !(about.standing == operation.None && about.sent) {
		e.Outcome = outcomeOf(about.standing)
	}
	for _, is := range why {
		if is != nil && !(is == ErrNotSent && about.sent) {
			e.Said.why = append(e.Said.why, is)
		}
	}
	return e
}

// own returns a separate copy of a call's error for one of its waiting callers, under the name of this caller's own call.
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
