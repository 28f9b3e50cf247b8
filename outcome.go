package oncehttp

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/persist"
)

// Outcome is the knowledge about an operation. The zero value is OutcomeUnknown.
type Outcome uint8

// The outcomes, and what proves each.
const (
	// OutcomeUnknown: an effect is possible. Everything without a proof is OutcomeUnknown.
	OutcomeUnknown Outcome = iota
	// OutcomeNotSent: no attempt of any process reached the network, or the operation was
	// settled as absent.
	OutcomeNotSent
	// OutcomeRefused: the server said that it did not act. For a response, and for a
	// result of Resume without an error, this is final: a final 4xx. For an error the server
	// may act on the same request later (ErrRefused).
	OutcomeRefused
	// OutcomeInFlight: the server still works on an earlier attempt.
	OutcomeInFlight
	// OutcomeConfirmed: the server's final answer says that the operation took effect: a 2xx,
	// or done already. A 303 to its origin says so through Transport, and if the profile says
	// that the API answers so (profile.Own.SeeOther). The body of a large answer may still
	// arrive. An operation settled as happened is confirmed, whatever the status of its answer.
	OutcomeConfirmed
	// OutcomeMismatch: the server says that the key belongs to another request.
	OutcomeMismatch
	// OutcomeExpired: the server may have forgotten the key, or Config.EnqueueMaxAge has
	// passed without a send.
	OutcomeExpired
	// OutcomeAccepted: the server's final answer is a 202. It has accepted the operation,
	// and may still fail.
	OutcomeAccepted
)

// String returns the outcome in lower case.
func (o Outcome) String() string { return run.Outcome(o).String() }

// Source is the origin of an answer. The zero value is no answer.
type Source uint8

// The sources.
const (
	// SourceServer: the server answered, and did not mark the answer as a replay.
	SourceServer Source = iota + 1
	// SourceReplay: the server repeated its stored answer to an earlier send.
	SourceReplay
	// SourceJournal: the answer was recorded before; nothing was sent.
	SourceJournal
)

// String returns "server", "server replay" or "journal".
func (s Source) String() string { return run.Source(s).String() }

// Result describes the way of an operation to its answer.
type Result struct {
	_ struct{}

	// Key is the operation's key, also a generated one. Empty: no operation.
	Key Key
	// Outcome is OutcomeConfirmed, OutcomeAccepted or OutcomeRefused for every response of Do.
	// A response of a Transport may have any outcome. From Resume, OutcomeNotSent means that
	// Config.Reconcile found no effect.
	Outcome Outcome
	// Effect is the effect proved by the answer, as in Error.Effect: EffectHappened (also for
	// a 202); EffectRefused for a final 4xx; EffectAbsent if nothing happened and nothing is
	// pending; else EffectUnknown.
	Effect persist.Effect
	// Source is the origin of the answer. Zero: there is no answer.
	Source Source
	// Attempts and Sends count over the whole life of the operation, without the unrecorded
	// attempts of processes that died; where one may have sent, Sends has at least that one. A send is one hand-over of the request to the network. A
	// redirect hop is a send; a lookup is none.
	Attempts, Sends int
	// Joined: another caller began the call, and has the same answer.
	Joined bool
	// FirstSent is the start of the first send.
	FirstSent time.Time
	// AlreadyDone: the server said that the operation had been done before.
	AlreadyDone bool
	// Dropped are the pointers of Config.DropAnswer whose members are missing in this answer, since the
	// journal did not keep them. Nil for the callers of the call that got the answer.
	Dropped []string
	// Answer is the recorded answer. Only Resume sets it; a response of Do has its own body.
	Answer *persist.Answer
}

// ResultOf returns the Result of resp, a response of Do, DoKey or a Transport. The zero
// Result means that resp is not of a journaled operation.
func ResultOf(resp *http.Response) Result { return resultOf(run.ResultOf(resp)) }

// Resolution is the finding of a person, or of Config.Reconcile, about an operation in
// doubt.
type Resolution struct {
	_ struct{}

	// Effect: Happened, Absent, or EffectUnknown, which changes nothing.
	Effect persist.Effect
	// Answer is the answer for later calls with the key; it may be nil. Like a server's
	// answer it is kept without the credentials in its headers.
	Answer *persist.Answer
	// Note is a reason, for operators. The record keeps it, at most persist.NoteBytesMax
	// bytes. It changes nothing.
	Note string
}

// What a Resolution can say.
const (
	// EffectHappened: the operation took effect.
	EffectHappened = persist.EffectHappened
	// EffectAbsent: it did not, and never will. This is final: a new try needs Key.Generation.
	EffectAbsent = persist.EffectAbsent
	// EffectUnknown: the finding is open; the operation stays as it is.
	EffectUnknown = persist.EffectUnknown
)

// EffectRefused: the server decided against the operation, with a final 4xx. It occurs in
// Error.Effect and Result.Effect, and in no Resolution.
const EffectRefused = persist.EffectRefused

// OutcomeOf returns the outcome of a record: OutcomeConfirmed, OutcomeAccepted or
// OutcomeRefused by its answer, or by its settlement; OutcomeNotSent if it was settled as
// absent; OutcomeMismatch if the server has the key for another request. It returns
// OutcomeUnknown for an unfinished or abandoned record, and for nil.
func OutcomeOf(rec *persist.Record) Outcome { return Outcome(run.OutcomeOf(rec)) }

// resultOf converts a result of package run.
func resultOf(r run.Result) Result {
	return Result{
		Key: Key(r.Key), Outcome: Outcome(r.Outcome), Effect: r.Effect, Source: Source(r.Source), Attempts: r.Attempts, Sends: r.Sends,
		Joined: r.Joined, FirstSent: r.FirstSent, AlreadyDone: r.AlreadyDone, Dropped: r.Dropped, Answer: r.Answer,
	}
}

// inner converts the Resolution for package run.
func (r Resolution) inner() run.Resolution {
	return run.Resolution{Effect: r.Effect, Answer: r.Answer, Note: r.Note}
}
