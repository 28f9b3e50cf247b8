package oncehttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// Outcome is what is known of an operation. The zero value is the cautious one.
type Outcome uint8

// The outcomes, and what proves each.
const (
	// OutcomeUnknown: an effect is possible. Everything that is not proved is OutcomeUnknown.
	OutcomeUnknown Outcome = iota
	// OutcomeNotSent: no attempt of any process life was handed to the network, or
	// the operation was settled as one without effect.
	OutcomeNotSent
	// OutcomeRefused: the server said that it did not act. Of a response, and of what Resume yields without an error, for
	// good: a final 4xx. Of an error so that it may act on the same request later (ErrRefused).
	OutcomeRefused
	// OutcomeInFlight: the server says that an earlier attempt is still being worked on.
	OutcomeInFlight
	// OutcomeConfirmed: the server's final answer says that the operation took effect: a 2xx, a 303 to its origin, or done
	// already. The body of a large one may still be arriving.
	OutcomeConfirmed
	// OutcomeMismatch: the server says that the key belongs to another request.
	OutcomeMismatch
	// OutcomeExpired: the time in which the server knows the key has passed, or that
	// of Config.EnqueueMaxAge before anything was sent.
	OutcomeExpired
	// OutcomeAccepted: the server's final answer is a 202. It has taken the operation on, which may still fail.
	OutcomeAccepted
)

// String is the outcome in lower case.
func (o Outcome) String() string {
	names := [...]string{"unknown", "not sent", "refused", "in flight", "confirmed", "mismatch", "expired", "accepted"}
	if int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// Source is where an answer comes from. The zero value says nothing.
type Source uint8

// The sources.
const (
	// SourceServer: the server answered, and did not mark the answer as a replay.
	SourceServer Source = iota + 1
	// SourceReplay: the server gave its stored answer to an earlier send.
	SourceReplay
	// SourceJournal: the answer was recorded before; nothing was sent.
	SourceJournal
)

// String is "server", "server replay" or "journal".
func (s Source) String() string {
	switch s {
	case SourceServer:
		return "server"
	case SourceReplay:
		return "server replay"
	case SourceJournal:
		return "journal"
	}
	return ""
}

// Result says how an operation came to its answer.
type Result struct {
	_ struct{}

	// Key is the operation's key, also where it was generated; "" is no operation.
	Key Key
	// Outcome is what is known of it: OutcomeConfirmed, OutcomeAccepted or OutcomeRefused for every response of Do. A
	// Transport may return a response with another outcome. Of Resume,
	// OutcomeNotSent means that Reconcile found no effect.
	Outcome Outcome
	// Effect is what the response says of the effect, as Error.Effect does: EffectHappened (also of a 202), EffectRefused of
	// a final 4xx, EffectAbsent where nothing happened and nothing is pending, else EffectUnknown.
	Effect persist.Effect
	// Source is where the answer comes from; zero where there is none.
	Source Source
	// Attempts and Sends count over the whole life of the operation, the
	// attempts of processes that died without recording theirs left out. A send
	// is one hand-over to the network; a redirect hop is a send of its own, and so
	// is the lookup that an already-done answer leads to.
	Attempts, Sends int
	// Joined: another caller began the call that got the answer, and has it too.
	Joined bool
	// FirstSent is when the first send began.
	FirstSent time.Time
	// AlreadyDone: the server said that the operation had been done before.
	AlreadyDone bool
	// Answer is the recorded answer. Only Resume sets it; a response of Do
	// carries its own body.
	Answer *persist.Answer
}

type resultKey struct{}

// resultContext is the context of a response's request, and holds the result for ResultOf.
type resultContext struct {
	context.Context
	result Result
}

// Value returns the result for resultKey, and otherwise what the caller's context has.
func (c *resultContext) Value(key any) any {
	if key == (resultKey{}) {
		return &c.result
	}
	return c.Context.Value(key)
}

// ResultOf says how resp, a response of Do, DoKey or a Transport, came about.
// The zero Result means that resp is not of a journaled operation.
func ResultOf(resp *http.Response) Result {
	if resp == nil || resp.Request == nil {
		return Result{}
	}
	if r, ok := resp.Request.Context().Value(resultKey{}).(*Result); ok {
		return *r
	}
	return Result{}
}

// Resolution is what a person, or a Reconcile function, found out about an
// operation in doubt.
type Resolution struct {
	_ struct{}

	// Effect: Happened, Absent, or EffectUnknown, which changes nothing.
	Effect persist.Effect
	// Answer, if known, is what later calls with the key are answered. It is kept
	// without credentials in its headers, as an answer of the server is.
	Answer *persist.Answer
	// Note says why, for operators. It is kept in the record, at most
	// persist.NoteBytesMax, and changes nothing.
	Note string
}

// What a Resolution can say.
const (
	// EffectHappened: the operation took effect.
	EffectHappened = persist.EffectHappened
	// EffectAbsent: it did not and never will. Final: to try anew, use Key.Generation.
	EffectAbsent = persist.EffectAbsent
	// EffectUnknown: nothing could be found out; the operation stays as it is.
	EffectUnknown = persist.EffectUnknown
)

// EffectRefused: the server decided against the operation, with a final 4xx. Only of Error.Effect; no Resolution says so.
const EffectRefused = persist.EffectRefused

// outcomes are the outcomes of proofs. That of ProvesEnd depends on the answer.
var outcomes = [...]Outcome{
	operation.ProvesNothing: OutcomeUnknown, operation.ProvesUnsent: OutcomeNotSent, operation.ProvesRefusal: OutcomeRefused,
	operation.ProvesInFlight: OutcomeInFlight, operation.ProvesEnd: OutcomeConfirmed, operation.ProvesMismatch: OutcomeMismatch,
	operation.ProvesExpiry: OutcomeExpired,
}

// troubles are the sentinels that name the trouble of a call.
var troubles = [...]error{
	operation.NoTrouble: nil, operation.IsHeld: ErrHeld, operation.IsNotSent: ErrNotSent, operation.IsRefused: ErrRefused,
	operation.IsInFlight: ErrInFlight, operation.IsMismatch: ErrKeyReused, operation.IsExpired: ErrKeyExpired,
	operation.IsStoredError: ErrStoredError, operation.IsRedirected: ErrRedirected, operation.IsDuplicate: ErrDuplicate,
	operation.AnswerGone: ErrAnswerGone,
}

// known returns the outcome of the run so far.
func (r *run) known() Outcome {
	proof := r.drive.Proof()
	if proof.Kind == operation.ProvesEnd && r.last.Answer != nil {
		return outcomeOf(operation.Answered(r.last.Answer.Head.StatusCode, proof.AlreadyDone, proof.Refused))
	}
	return outcomes[proof.Kind]
}

// OutcomeOf returns what a record says of its operation: OutcomeConfirmed, OutcomeAccepted or OutcomeRefused where its
// answer or whoever settled it says so, OutcomeNotSent where it was settled as absent, OutcomeMismatch where the server
// kept the key for another request. It returns OutcomeUnknown of a record that is unfinished or was abandoned, and of nil.
func OutcomeOf(rec *persist.Record) Outcome {
	if rec == nil {
		return OutcomeUnknown
	}
	return outcomeOf(operation.StandingOf(rec))
}

// outcomeOf returns the outcome of an operation that stands so.
func outcomeOf(s operation.Standing) Outcome {
	switch s {
	case operation.Succeeded, operation.Happened:
		return OutcomeConfirmed
	case operation.Accepted:
		return OutcomeAccepted
	case operation.Refused:
		return OutcomeRefused
	case operation.Ended:
		return OutcomeMismatch
	case operation.None, operation.Absent:
		return OutcomeNotSent
	}
	return OutcomeUnknown
}

// answer is the answer to an operation, of which every caller gets a response of its own.
type answer struct {
	head   *http.Response // protocol and TLS as received; nil from the journal
	status int
	header http.Header
	body   []byte
	result Result

	// partial: the body is too large to keep, and rest is what is left of it, for one caller.
	partial bool
	mu      sync.Mutex
	rest    *wire.Body
}

// takeRest hands out the unread rest of a large body, once.
func (a *answer) takeRest() *wire.Body {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := a.rest
	a.rest = nil
	return rest
}

// result is how a call ended. An error may have an answer beside it, for callers that see plain HTTP.
type result struct {
	answer *answer
	err    error
	// notShared: callers that joined must ignore this result and start again. The call did not run the operation, or
	// was ended because its starter is draining.
	notShared bool
	// unwritten: the journal did not tell the time, or did not take what has to be written before a send.
	unwritten bool
	// elsewhere: the record is of another scope, and the operation stands at another place.
	elsewhere bool
	// left: the limiter takes long, and the call goes on without its operation. There is no other result.
	left *leftRecord
	// turn: of a pass, the limiter takes long, and the operation was given back. There is no other result.
	turn *turn
	// unreported: the record says that no caller with the key has yet learnt how the operation ended.
	unreported bool
}

// release closes what no caller has taken of the answer.
func (res *result) release() {
	if res == nil || res.answer == nil {
		return
	}
	if rest := res.answer.takeRest(); rest != nil {
		_ = rest.Close()
	}
}

// response makes one caller's own response. It is nil if the answer was too large to keep and another caller has its
// rest; the caller must then ask the server again.
func (a *answer) response(req *http.Request, joined bool) *http.Response {
	resp := &http.Response{
		StatusCode: a.status, Header: a.header.Clone(),
		Body: newKeptBody(a.body), ContentLength: int64(len(a.body)),
	}
	if a.head != nil {
		resp.Status, resp.Proto, resp.ProtoMajor, resp.ProtoMinor = a.head.Status, a.head.Proto, a.head.ProtoMajor, a.head.ProtoMinor
		resp.Uncompressed, resp.Trailer = a.head.Uncompressed, a.head.Trailer.Clone()
		if a.head.TLS != nil {
			state := *a.head.TLS
			resp.TLS = &state
		}
	} else {
		resp.Status = strconv.Itoa(a.status) + " " + http.StatusText(a.status)
		resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/1.1", 1, 1
	}
	if a.partial {
		rest := a.takeRest()
		if rest == nil {
			return nil
		}
		resp.Body, resp.ContentLength = newLargeBody(req.Context(), a.body, rest), -1
	}
	if resp.Header == nil {
		resp.Header = make(http.Header)
	}
	// Where ResultOf finds it, on a copy of the caller's request, so that wrappers which replace resp.Body do not lose
	// it.
	result := a.result
	result.Joined = joined
	resp.Request = req.WithContext(&resultContext{req.Context(), result})
	return resp
}

// keptBody is a body that was kept whole, for one caller.
type keptBody struct{ bytes.Reader }

func newKeptBody(body []byte) *keptBody {
	b := &keptBody{}
	b.Reset(body)
	return b
}

// Close does nothing.
func (*keptBody) Close() error { return nil }

// largeBody is a body too large to keep: first the kept part, then the rest as it arrives. The call is over by then, so
// that the caller's context ends it, as it ends a body of net/http.
type largeBody struct {
	io.Reader
	rest io.Closer
	stop func() bool
}

func newLargeBody(ctx context.Context, kept []byte, rest *wire.Body) *largeBody {
	cut := func() { rest.Cancel(context.Cause(ctx)) }
	return &largeBody{io.MultiReader(bytes.NewReader(kept), rest), rest, context.AfterFunc(ctx, cut)}
}

// Close ends the exchange with the server.
func (b *largeBody) Close() error {
	b.stop()
	return b.rest.Close()
}
