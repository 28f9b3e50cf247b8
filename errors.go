package oncehttp

import (
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/persist"
)

// The verdicts. Every error about one operation, of the methods, of a Transport and of a
// Begin in a transaction, matches exactly one of these three. Error.Effect says more of the
// effect.
var (
	// ErrNoEffect: the operation did not happen, and nothing is pending. It is safe to go on
	// as if the request had never been made.
	ErrNoEffect = persist.ErrNoEffect
	// ErrFinal: the operation was decided before, and this call cannot have its answer. The
	// answer is not kept, the key belongs to another request, or the call returns no answers.
	ErrFinal = persist.ErrFinal
	// ErrOutcomeUnknown: an effect is possible, or is intended and pending. Go on with the same
	// key, or settle or abandon the operation; never use a new key.
	ErrOutcomeUnknown = persist.ErrOutcomeUnknown
)

// The causes. The comment of each names its verdict.
var (
	// ErrNotSent: the operation never reached the network. With ErrNoEffect; with
	// ErrOutcomeUnknown for an enqueued operation, which stays pending.
	ErrNotSent = run.ErrNotSent
	// ErrRefused: the server said that it did not act, and may act on the same request later.
	// Verdicts as for ErrNotSent.
	ErrRefused = run.ErrRefused
	// ErrInFlight: the server still works on an earlier attempt, or another process holds the
	// operation. With ErrOutcomeUnknown. Erase, Redrive and Rekey also return it for an ended
	// operation with a send that may be on its way; then with the verdict of its end. A call
	// from inside a function of the Config, or a
	// Transport, gets it at once if it would wait for its own outer call and has the context of
	// that function. Any other wait for a call inside such a function ends with it shortly after
	// Retry.AttemptTimeout.
	ErrInFlight = run.ErrInFlight
	// ErrKeyReused: the key belongs to another request. With ErrFinal if that one has ended;
	// with ErrOutcomeUnknown while it is unfinished, and if it was abandoned. Error.State is
	// that operation's state. If the server says so by itself: with ErrFinal, or with
	// ErrOutcomeUnknown if an attempt was in doubt. Also: another operation of the same intent
	// stands against this one, such as an earlier generation that has not ended. With
	// ErrOutcomeUnknown; Error.Cause names it, and Error.Key and Error.State are not of it.
	// Also: Rekey or Redrive has begun the operation anew, with Error.Key as the new key. With
	// ErrOutcomeUnknown, or with ErrFinal once the new operation has taken effect.
	ErrKeyReused = run.ErrKeyReused
	// ErrKeyExpired: the server may have forgotten the key. With ErrOutcomeUnknown.
	ErrKeyExpired = run.ErrKeyExpired
	// ErrStoredError: the server keeps an error under the key, and repeats it; reconcile. With
	// ErrOutcomeUnknown.
	ErrStoredError = run.ErrStoredError
	// ErrDuplicate: the server says that a business reference of the request, or its key, was used before,
	// by an earlier attempt or by another operation. With ErrOutcomeUnknown.
	ErrDuplicate = run.ErrDuplicate
	// ErrRedirected: the answer is a redirect that is not followed. With ErrOutcomeUnknown.
	ErrRedirected = run.ErrRedirected
	// ErrHeld: nothing is sent until the operation is settled or, if it is held for a caller of
	// Transport (persist.HoldCaller), until a call with its key goes on. With
	// ErrOutcomeUnknown.
	ErrHeld = run.ErrHeld
	// ErrSettled: the operation was settled, by Settle or Config.Reconcile. With ErrNoEffect
	// if as absent, else with ErrFinal.
	ErrSettled = run.ErrSettled
	// ErrAbandoned: the operation was abandoned. With ErrOutcomeUnknown, for every request.
	ErrAbandoned = run.ErrAbandoned
	// ErrStale: the operation has moved since it was seen (AsSeen), and this call has changed
	// nothing. Look again. With ErrOutcomeUnknown, or with ErrFinal if the operation has ended.
	ErrStale = run.ErrStale
	// ErrAnswerGone: the operation is confirmed, or settled as happened, but its answer is not
	// kept. Error.Answer may have its status or, if the call has asked again in vain, the last
	// answer to that, which decides nothing: look at Error.Effect. With ErrFinal.
	ErrAnswerGone = run.ErrAnswerGone
	// ErrKeyInvalid: the profile does not accept this key, or the request has two. The call
	// began nothing. The verdict is about the operation under the keys of the call; without
	// such an operation it is ErrNoEffect. Without a key it is ErrOutcomeUnknown if an operation
	// with a generated key is unresolved or unreported, and may be of the same request.
	ErrKeyInvalid = run.ErrKeyInvalid
	// ErrNoKey is the error of a Config.NewKey that has no key for a request. Through Transport
	// the request then passes, unless Config.Operation or Config.Methods names it. Every other
	// call is ErrKeyInvalid, too.
	ErrNoKey = run.ErrNoKey
	// ErrAccount: an operation that may belong to another caller has this key: it was begun with
	// other credentials, or the call has an account and the operation has none. With
	// ErrOutcomeUnknown, and with Error.Reference in place of a key. Set the account of each
	// call by Config.Account or ContextWithAccount; Assign gives an operation its account.
	ErrAccount = run.ErrAccount
	// ErrConfig: a mistake in the Config or the request. Verdicts as for ErrKeyInvalid.
	ErrConfig = run.ErrConfig
	// ErrBodyTooLarge: the body is over Config.MaxRequestBytes, or the request is over the limit
	// of the journal's server (persist.ErrTooLarge). Verdicts as for ErrKeyInvalid.
	ErrBodyTooLarge = run.ErrBodyTooLarge
	// ErrHeaderTooLarge: target and headers are over Config.MaxRequestHeaderBytes. Verdicts as
	// for ErrKeyInvalid.
	ErrHeaderTooLarge = run.ErrHeaderTooLarge
	// ErrClosed: the client is closed, or is being closed. Before the begin of a call the
	// verdicts are as for ErrKeyInvalid. With ErrOutcomeUnknown if Close cut the waits of an
	// operation; Resume goes on with it.
	ErrClosed = run.ErrClosed
	// ErrCaptured: Client.Capture keeps the request for its caller, and nothing was sent. With
	// ErrOutcomeUnknown, since the operation is intended.
	ErrCaptured = run.ErrCaptured
)

// ErrStillRunning is the error of Close and Shutdown if they stop waiting for a call in a
// function of the Config, a Transport, the body of a request, or the body of a loop. The
// error names the call. Nothing is sent any more. The journal of Open is closed when the last
// call has returned.
var ErrStillRunning = run.ErrStillRunning

// Error is the error of every call about one operation. errors.Is finds its verdict
// (ErrNoEffect, ErrFinal or ErrOutcomeUnknown), its causes and, through Unwrap, the errors
// in Cause and Last. Methods of a nil *Error panic.
type Error struct {
	_ struct{}

	// Op is the failed call, such as "do" or "enqueue".
	Op string
	// Key goes on with the operation of the error. It may differ from the caller's, if that has
	// several or none. Empty: no key may go on with it.
	Key Key
	// Reference stands for an operation that may belong to another caller (ErrAccount). Then Key
	// is empty, and the error says nothing else of the operation. Settle, Abandon and Assign
	// accept it in place of a key. Otherwise it is empty.
	Reference string
	// Outcome is the knowledge about the operation.
	Outcome Outcome
	// State is the state of the operation's record as the call found it. If the call was refused
	// because of it (ErrKeyReused, ErrHeld, ErrSettled), it is the cause. It is zero (pending)
	// if there is no record.
	State persist.State
	// Attempts and Sends count this call's attempts and their sends on the wire, as far as they
	// could be seen. All callers of one call get its counts; a caller that left early gets the
	// sends until then. Of a request that is no operation Sends is always zero. Sends proves
	// nothing of the effect: the verdict does.
	Attempts, Sends int
	// Joined: another caller began the call, and has the same counts.
	Joined bool
	// NextAttempt is the earliest time of the next attempt, also for Resume. Zero: none is
	// known.
	NextAttempt time.Time
	// Cause is the reason for the end of the call; Last is the last attempt's own error. Either
	// may be nil.
	Cause, Last error
	// Answer is the last answer, as far as it is kept; nil if there was none. With ErrKeyReused
	// it may be the answer to the other request that has the key: show it to nobody as this one's.
	Answer *persist.Answer

	said run.Said
}

// Effect returns the effect according to the verdict: EffectUnknown with ErrOutcomeUnknown,
// EffectAbsent with ErrNoEffect. With ErrFinal it is the record's: EffectHappened (also
// after a 202), EffectRefused after a final 4xx, EffectAbsent if it was settled so, else
// EffectUnknown. Another key, such as the next Key.Generation, is right only after
// EffectRefused and EffectAbsent.
func (e *Error) Effect() persist.Effect { return e.inner().Effect() }

// Error returns one line that starts with "oncehttp: ". It contains the key, and no body,
// credential or query string.
func (e *Error) Error() string { return e.inner().Error() }

// Is reports whether target is e's verdict, or one of its causes.
func (e *Error) Is(target error) bool { return e.inner().Is(target) }

// Timeout reports whether a time limit ended the call: the deadline of its context, a limit
// of Policy, or one of the network. net/http, os.IsTimeout and url.Error call it.
func (e *Error) Timeout() bool { return e.inner().Timeout() }

// Temporary reports whether another try is safe and may help: nothing happened
// (ErrNoEffect), and a time limit ended the call, or the network reports a temporary error.
// Many SDKs then try again by themselves.
func (e *Error) Temporary() bool { return e.inner().Temporary() }

// Unwrap returns Cause and Last, if they are set. One of them may hold a verdict about
// another operation, as the cause of an errgroup's context. It keeps its text, and matches
// nothing: its verdict is not the verdict of e.
func (e *Error) Unwrap() []error { return e.inner().Unwrap() }

// inner converts the error for package run.
func (e *Error) inner() *run.Error {
	return &run.Error{
		Op: e.Op, Key: string(e.Key), Reference: e.Reference, Outcome: run.Outcome(e.Outcome), State: e.State, Attempts: e.Attempts, Sends: e.Sends,
		Joined: e.Joined, NextAttempt: e.NextAttempt, Cause: e.Cause, Last: e.Last, Answer: e.Answer, Said: e.said,
	}
}

// errorOf converts an error of package run. It returns any other error as it is. If err only wraps one of package run, the result
// (around) has the text of err, and the converted error among those that it wraps.
func errorOf(err error) error {
	if err == nil { // checked before e, since declaring e allocates memory
		return nil
	}
	var e *run.Error
	if !errors.As(err, &e) {
		return err
	}
	if err != error(e) {
		return around{err, errorOf(e)}
	}
	return &Error{
		Op: e.Op, Key: Key(e.Key), Reference: e.Reference, Outcome: Outcome(e.Outcome), State: e.State, Attempts: e.Attempts, Sends: e.Sends,
		Joined: e.Joined, NextAttempt: e.NextAttempt, Cause: errorOf(e.Cause), Last: errorOf(e.Last), Answer: e.Answer, said: e.Said,
	}
}

// around is an error that wraps one of package run; about is the converted one.
type around struct{ whole, about error }

// Error returns the text of the whole error.
func (a around) Error() string { return a.whole.Error() }

// Unwrap returns the converted error, and the whole one with all else that it wraps.
func (a around) Unwrap() []error { return []error{a.about, a.whole} }
