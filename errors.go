package oncehttp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// The verdicts. Every error of a method about one operation, of Transport and of a journal's Begin inside a transaction
// matches exactly one of these three. Error.Effect says more of the effect.
var (
	// ErrNoEffect: what the key names did not happen, and nothing is pending. It is safe to go on as if the request had
	// never been made.
	ErrNoEffect = persist.ErrNoEffect
	// ErrFinal: the operation was decided before, and this call cannot have its answer: it is not kept, the key belongs
	// to another request, or the call gives no answers.
	ErrFinal = persist.ErrFinal
	// ErrOutcomeUnknown: an effect is possible, or is intended and pending. Go on with the same key, or settle or
	// abandon it; never with a new key.
	ErrOutcomeUnknown = persist.ErrOutcomeUnknown
)

// The rest say why. Which verdict comes with each is in its comment.
var (
	// ErrNotSent: the operation was never handed to the network. With ErrNoEffect, unless it was enqueued and stays
	// pending.
	ErrNotSent = errors.New("not sent")
	// ErrRefused: the server said that it did not act, and may act on the same request later. As ErrNotSent.
	ErrRefused = errors.New("refused by the server")
	// ErrInFlight: the server still works on an earlier attempt, or another
	// process holds the operation. With ErrOutcomeUnknown. So is a call from a function of the Config, or from the Transport, that
	// would wait for the call for which that function was called: at once if it is made with the context that the function got.
	// Any wait for a call that stays in one such function ends likewise, shortly after Retry.AttemptTimeout.
	ErrInFlight = errors.New("still in flight")
	// ErrKeyReused: the key belongs to another request. With ErrFinal where that one has ended, with ErrOutcomeUnknown
	// while it is unfinished and where it was abandoned. Error.State is that operation's state. Where the server says so of
	// its own accord: with ErrFinal, or with ErrOutcomeUnknown if an attempt was in doubt.
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
	// ErrSettled: the key was settled by Settle or Config.Reconcile. With ErrNoEffect where it was settled as absent, else
	// with ErrFinal.
	ErrSettled = errors.New("key was settled")
	// ErrAbandoned: the key was abandoned by Abandon. With ErrOutcomeUnknown, whatever the request.
	ErrAbandoned = errors.New("key was abandoned")
	// ErrStale: the operation has moved since it was seen (AsSeen), and this call has changed nothing. Look again. With
	// ErrOutcomeUnknown, or with ErrFinal where the operation has ended meanwhile.
	ErrStale = errors.New("moved since it was seen")
	// ErrAnswerGone: the operation is confirmed, or settled as happened, but its answer is not kept; its status may be, in
	// Error.Answer. With ErrFinal.
	ErrAnswerGone = errors.New("its answer is not kept")
	// ErrKeyInvalid: the profile does not take this key, or the request names it in two ways. The call began nothing. The
	// verdict is that on the operation under the keys that the call named; without one, ErrNoEffect. Without a key it is
	// ErrOutcomeUnknown if an operation under a generated key is unresolved or unreported that may be of the same request.
	ErrKeyInvalid = errors.New("invalid key")
	// ErrAccount: an operation stands in the way that may be another caller's: it was begun with other credentials, or the call
	// names an account and the operation has none. With ErrOutcomeUnknown, and with Error.Reference in the place of a key.
	// Name the account of each call by Config.Account or ContextWithAccount; what stands without one is assigned by Assign.
	ErrAccount = errors.New("may be another account's")
	// ErrConfig: the client or the request is not put together rightly. The verdict
	// beside it is as for ErrKeyInvalid.
	ErrConfig = errors.New("invalid configuration or request")
	// ErrBodyTooLarge: the body is over Config.MaxRequestBytes, or the request over what the journal's server takes
	// (persist.ErrTooLarge). The verdict beside it is as for ErrKeyInvalid.
	ErrBodyTooLarge = errors.New("request body too large")
	// ErrHeaderTooLarge: target and headers are over Config.MaxRequestHeaderBytes.
	// The verdict beside it is as for ErrKeyInvalid.
	ErrHeaderTooLarge = errors.New("request headers too large")
	// ErrClosed: the client was closed, or is being closed. Where the call had not begun the verdict is as for
	// ErrKeyInvalid; with ErrOutcomeUnknown where Close cut the waits of an operation, which Resume goes on with.
	ErrClosed = errors.New("client is closed")
)

// Error is the error of every call about one operation. errors.Is finds its verdict (ErrNoEffect, ErrFinal or
// ErrOutcomeUnknown), the sentinels that say why, and, through Unwrap, what is behind Cause and Last.
// Methods of a nil *Error panic.
type Error struct {
	_ struct{}

	// Op is the call that failed, such as "do" or "enqueue".
	Op string
	// Key is the key of the operation that the error is about: the one that goes on
	// with it. It may be another than the caller's, where that names several or
	// none. Empty: there is none that may be gone on with.
	Key Key
	// Reference stands for an operation that may be another caller's (ErrAccount), of which the error says nothing else: Key is
	// empty. Settle, Abandon and Assign take it in the place of a key. Else it is empty.
	Reference string
	// Outcome is what is known of the operation.
	Outcome Outcome
	// State is the state of the operation's record after the call. Where the call
	// was refused because of it (ErrKeyReused, ErrHeld, ErrSettled), it is why. Zero
	// (pending) also where there is no record.
	State persist.State
	// Attempts and Sends count this call's attempts and the sends on the wire
	// that they made, as far as could be seen. All who waited for one call get its
	// counts; who left before its end gets the sends that were made by then.
	Attempts, Sends int
	// Joined: another caller began the call, and has the same counts.
	Joined bool
	// NextAttempt, if set, is when it is worth going on; Resume does nothing before.
	NextAttempt time.Time
	// Cause is why oncehttp stopped; Last is the last attempt's own error.
	// Either may be nil.
	Cause, Last error
	// Answer is the last answer, as far as it is kept; nil if there was none.
	Answer *persist.Answer

	verdict operation.Verdict
	effect  persist.Effect
	why     []error
}

// Effect returns what the verdict says of the operation's effect: EffectUnknown with ErrOutcomeUnknown, EffectAbsent
// with ErrNoEffect. With ErrFinal it is the record's: EffectHappened (also after a 202), EffectRefused after a final 4xx,
// EffectAbsent where it was settled so, else EffectUnknown. Another key, such as the next Key.Generation, is right only
// after EffectRefused and EffectAbsent.
func (e *Error) Effect() persist.Effect { return e.effect }

// Error is one line that starts with "oncehttp: ". It holds the key, never a
// body, a credential or a query string.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("oncehttp: ")
	b.WriteString(e.Op)
	if e.Key != "" {
		fmt.Fprintf(&b, " %q", string(e.Key))
	}
	if e.Reference != "" {
		b.WriteString(" " + e.Reference)
	}
	b.WriteString(": " + e.sentinel().Error())
	if e.verdict == operation.Final && e.effect != EffectUnknown {
		b.WriteString(" (" + string(e.effect) + ")")
	}
	for _, why := range e.why {
		b.WriteString(", " + why.Error())
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

// Is reports whether target is e's verdict, or one of the sentinels that say why.
func (e *Error) Is(target error) bool {
	return target == e.sentinel() || slices.Contains(e.why, target)
}

// sentinel returns the verdict as an error.
func (e *Error) sentinel() error {
	switch e.verdict {
	case operation.NoEffect:
		return ErrNoEffect
	case operation.Final:
		return ErrFinal
	}
	return ErrOutcomeUnknown
}

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

// subject is the operation that an error is about, as far as the failed call knows it.
type subject struct {
	key      Key
	state    persist.State
	standing operation.Standing
	known    operation.Knowledge
	sent     bool // it may have been handed to the network before
	// reference stands for an operation that may be another caller's, of which nothing else is said; else "".
	reference string
}

// nothing is the subject of a call under key that began nothing, where nothing stands either.
func nothing(key Key) subject {
	return subject{key: key, standing: operation.None, known: operation.Unread}
}

// unclear is the subject where it is not known how the operation under key stands.
func unclear(key Key) subject { return subject{key: key, sent: true} }

// subjectOf is the subject that has a record. The record must be durable if it is final.
func subjectOf(rec *persist.Record, known operation.Knowledge) subject {
	return subject{
		key: Key(rec.Key), state: rec.State, standing: operation.StandingOf(rec), known: known,
		sent: rec.MaybeSent || rec.Sends > 0,
	}
}

// newError makes every Error: of the call op about an operation, for which package operation has the verdict. why are
// the sentinels that say why; ErrNotSent does not count where the operation may have been sent.
func newError(op string, about subject, cause error, why ...error) *Error {
	verdict := operation.Judge(about.standing, about.known)
	e := &Error{
		Op: op, Key: about.key, Reference: about.reference, State: about.state, Cause: cause,
		Outcome: OutcomeUnknown, verdict: verdict, effect: verdict.Effect(about.standing),
	}
	if verdict != operation.Unknown && !(about.standing == operation.None && about.sent) {
		e.Outcome = outcomeOf(about.standing)
	}
	for _, is := range why {
		if is != nil && !(is == ErrNotSent && about.sent) {
			e.why = append(e.why, is)
		}
	}
	return e
}

// own returns a copy of an error of a call for one of those who waited for it: of its own, under the name of its own call.
func own(err error, op string, joined bool) error {
	shared, ok := err.(*Error)
	if !ok {
		return err
	}
	e := *shared
	e.Op, e.Joined, e.why = op, joined, slices.Clone(shared.why)
	if shared.Answer != nil {
		answer := *shared.Answer
		answer.Header, answer.Body = answer.Header.Clone(), slices.Clone(answer.Body)
		e.Answer = &answer
	}
	return &e
}
