package run

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// Outcome is oncehttp.Outcome.
type Outcome uint8

// The outcomes, in the order of package oncehttp.
const (
	OutcomeUnknown   Outcome = iota // an effect is possible
	OutcomeNotSent                  // no attempt reached the network
	OutcomeRefused                  // the server did not act
	OutcomeInFlight                 // the server still works on it
	OutcomeConfirmed                // it took effect
	OutcomeMismatch                 // the key is of another request at the server
	OutcomeExpired                  // the server may have forgotten the key
	OutcomeAccepted                 // a 202: it may still fail
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	names := [...]string{"unknown", "not sent", "refused", "in flight", "confirmed", "mismatch", "expired", "accepted"}
	if int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// Source is oncehttp.Source.
type Source uint8

// The sources, in the order of package oncehttp.
const (
	SourceServer  Source = iota + 1 // a send, without a mark of a replay
	SourceReplay                    // a send, answered from the server's store
	SourceJournal                   // no send
)

// String returns the source of an answer as a word: "server", "server replay" (the server's stored answer, given again) or "journal".
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

// Result has the fields of oncehttp.Result, documented there.
type Result struct {
	// Key is the operation's key; empty: there is no operation.
	Key string
	// Outcome is the knowledge about the operation.
	Outcome Outcome
	// Effect is the effect proved by the answer.
	Effect persist.Effect
	// Source is the origin of the answer; zero: there is none.
	Source Source
	// Attempts and Sends count over the life of the operation, as recorded.
	Attempts, Sends int
	// Joined: the caller has waited for a call of another.
	Joined bool
	// FirstSent is the time of the first send by the journal's clock; zero: there was none.
	FirstSent time.Time
	// AlreadyDone: the server said that the operation had been done before.
	AlreadyDone bool
	// Dropped are the pointers to members left out of the recorded answer; nil for a caller that got the whole one.
	Dropped []string
	// Answer is the recorded answer. Only a pass sets it: a response has its own body.
	Answer *persist.Answer
}

type resultKey struct{}

// resultContext is the context of a response's request, and holds the result for ResultOf.
type resultContext struct {
	context.Context
	result Result
}

// Value implements context.Context: for resultKey it returns the Result of the response, by which ResultOf finds it; for any other key the
// value of the caller's context.
func (c *resultContext) Value(key any) any {
	if key == (resultKey{}) {
		return &c.result
	}
	return c.Context.Value(key)
}

// ResultOf implements oncehttp.ResultOf: it returns the Result behind a response of a client; the zero Result for any other response.
func ResultOf(resp *http.Response) Result {
	if resp == nil || resp.Request == nil {
		return Result{}
	}
	if r, ok := resp.Request.Context().Value(resultKey{}).(*Result); ok {
		return *r
	}
	return Result{}
}

// Resolution has the fields of oncehttp.Resolution, documented there.
type Resolution struct {
	// Effect is the effect found; EffectUnknown changes nothing.
	Effect persist.Effect
	// Answer is the answer for later calls with the key; it may be nil.
	Answer *persist.Answer
	// Note is a reason for operators, and decides nothing.
	Note string
}

// outcomes are the outcomes of proofs. That of ProvesEnd depends on the answer.
var outcomes = [...]Outcome{
	operation.ProvesNothing: OutcomeUnknown, operation.ProvesUnsent: OutcomeNotSent, operation.ProvesRefusal: OutcomeRefused,
	operation.ProvesInFlight: OutcomeInFlight, operation.ProvesEnd: OutcomeConfirmed, operation.ProvesMismatch: OutcomeMismatch,
	operation.ProvesExpiry: OutcomeExpired,
}

// troubles are the sentinel errors for the troubles of a call.
var troubles = [...]error{
	operation.NoTrouble: nil, operation.IsHeld: ErrHeld, operation.IsNotSent: ErrNotSent, operation.IsRefused: ErrRefused,
	operation.IsInFlight: ErrInFlight, operation.IsMismatch: ErrKeyReused, operation.IsExpired: ErrKeyExpired,
	operation.IsStoredError: ErrStoredError, operation.IsRedirected: ErrRedirected, operation.IsDuplicate: ErrDuplicate,
	operation.AnswerGone: ErrAnswerGone, operation.IsSettled: ErrSettled, operation.IsAbandoned: ErrAbandoned,
	operation.IsTooLarge: ErrBodyTooLarge,
}

// sentinels returns the errors, such as ErrHeld, that stand for the two reasons which package operation names; nil for NoTrouble, which
// newError drops.
func sentinels(why [2]operation.Trouble) []error { return []error{troubles[why[0]], troubles[why[1]]} }

// OutcomeOf returns what a record tells of the outcome, as oncehttp.OutcomeOf. A nil record is OutcomeUnknown.
func OutcomeOf(rec *persist.Record) Outcome {
	if rec == nil {
		return OutcomeUnknown
	}
	told := operation.ToldStanding(rec)
	if isUntold(rec, told) {
		return OutcomeUnknown
	}
	return outcomeOf(told)
}

// isUntold reports whether an operation has ended without a known effect, although the server did not keep its key for another request: its caller
// gets "unknown". told is its standing for a caller.
func isUntold(rec *persist.Record, told operation.Standing) bool {
	return told == operation.Ended && rec.State != persist.StateMismatched
}

// outcomeOf returns the outcome, for programs, of an operation with this standing, the internal word for it.
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

// answer is the answer to an operation. Every caller gets a response of its own, made from it.
type answer struct {
	head   *http.Response // protocol and TLS as received; nil from the journal
	from   *url.URL       // the target of a redirect followed inside; nil: there was none
	status int            // as received, or as recorded
	header http.Header    // never written to
	body   []byte         // as far as it is kept
	result Result         // for ResultOf

	// partial: the body is too large to keep, and rest is its unread part, for one caller.
	partial bool
	mu      sync.Mutex
	rest    *wire.Body // nil once a caller has taken it
}

// takeRest hands out the part of a large body that is still on the wire. Only the first caller gets it; nil afterwards, or if the whole
// body is in memory.
func (a *answer) takeRest() *wire.Body {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := a.rest
	a.rest = nil
	return rest
}

// result is the end of a call. An error may have an answer beside it, for callers of plain HTTP.
type result struct {
	answer *answer // nil beside an error
	err    error   // complete, with its verdict
	// notShared: joined callers must ignore this result and start again. The call did not run the operation, or
	// was ended because its starter is draining.
	notShared bool
	// unwritten: the journal did not tell the time, or did not take a write necessary before a send.
	unwritten bool
	// elsewhere: the record is of another scope, and the operation stands at another place.
	elsewhere bool
	// left: the limiter takes long, and the call goes on without its operation. There is no other result.
	left *leftRecord
	// turn: of a pass, the limiter takes long, and the operation was given back. There is no other result.
	turn *turn
	// unreported: by the record, no caller with the key has learnt the operation's end yet.
	unreported bool
	// untold: a pass has ended the operation. A caller that has joined it must write first that it is told.
	untold bool
	// owed: the record's state at this revision is owed to Config.OnResult unless a caller gets this result; zero: nothing is owed.
	owed uint64
	// handed is set if the callers have this result before its record is written.
	handed *handover
}

// release closes the unread rest of the answer, if no caller has taken it.
func (res *result) release() {
	if res == nil || res.answer == nil {
		return
	}
	if rest := res.answer.takeRest(); rest != nil {
		_ = rest.Close()
	}
}

// response makes one caller's own response. It is nil if the answer was too large to keep and another caller has its rest; the caller must then ask the server
// again. joined: another caller began the call. A caller of plain HTTP sees the content length as received, also if none was received.
func (a *answer) response(req *http.Request, plain, joined bool) *http.Response {
	resp := &http.Response{
		StatusCode: a.status, Header: a.header.Clone(),
		Body: newKeptBody(a.body), ContentLength: int64(len(a.body)),
	}
	if a.head != nil {
		resp.Status, resp.Proto, resp.ProtoMajor, resp.ProtoMinor = a.head.Status, a.head.Proto, a.head.ProtoMajor, a.head.ProtoMinor
		resp.Uncompressed, resp.Trailer = a.head.Uncompressed, a.head.Trailer.Clone()
		resp.Close, resp.TransferEncoding = a.head.Close, slices.Clone(a.head.TransferEncoding)
		if plain || a.partial {
			resp.ContentLength = a.head.ContentLength
		}
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
		resp.Body = newLargeBody(req.Context(), a.body, rest)
		if a.head != nil { // Trailer is filled in while the rest is read
			resp.Trailer = a.head.Trailer
		}
	}
	if resp.Header == nil {
		resp.Header = make(http.Header)
	}
	// ResultOf finds the result in the context of resp.Request, a copy of the caller's request. Wrappers may replace resp.Body and do not
	// lose it.
	result := a.result
	result.Joined = joined
	resp.Request = req.WithContext(&resultContext{req.Context(), result})
	if a.from != nil { // relative URLs of the answer begin there
		from := *a.from
		resp.Request.URL = &from
	}
	return resp
}

// keptBody is a body kept whole, for one caller.
type keptBody struct {
	bytes.Reader
	closed atomic.Bool
}

// newKeptBody returns a body with these bytes, for one caller. Each caller gets a body of its own, so an answer can be given again.
func newKeptBody(body []byte) *keptBody {
	b := &keptBody{}
	b.Reset(body)
	return b
}

// errReadClosed is the error of reading a closed body, in net/http's words.
type errReadClosed struct{}

// Error returns the text that net/http gives for a read after Close.
func (errReadClosed) Error() string { return "http: read on closed response body" }

// Is makes errors.Is match http.ErrBodyReadAfterClose, as for a body of net/http.
func (errReadClosed) Is(target error) bool { return target == http.ErrBodyReadAfterClose }

// Read reads from a body in memory. After Close it returns an error, as a body of net/http does.
func (b *keptBody) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, errReadClosed{}
	}
	return b.Reader.Read(p)
}

// WriteTo writes the rest of a body in memory to w. After Close it returns an error, as a read of net/http's body does.
func (b *keptBody) WriteTo(w io.Writer) (int64, error) {
	if b.closed.Load() {
		return 0, errReadClosed{}
	}
	return b.Reader.WriteTo(w)
}

// Close makes further reads fail. The body is in memory, so there is no connection to close.
func (b *keptBody) Close() error {
	b.closed.Store(true)
	return nil
}

// largeBody is a body too large to keep: first the kept part, then the rest as it arrives. The call is over by then, so
// the end of the caller's context ends the body, as with a body of net/http.
type largeBody struct {
	io.Reader
	rest io.Closer
	stop func() bool
}

// newLargeBody returns a body of the bytes kept, and then of rest, which is still on the wire. The end of ctx ends rest.
func newLargeBody(ctx context.Context, kept []byte, rest *wire.Body) *largeBody {
	cut := func() { rest.Cancel(sanitize.Cause(ctx)) }
	return &largeBody{io.MultiReader(bytes.NewReader(kept), rest), rest, context.AfterFunc(ctx, cut)}
}

// Close ends the exchange with the server: the unread rest of the body is not read any more.
func (b *largeBody) Close() error {
	b.stop()
	return b.rest.Close()
}
