package oncehttp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Config has the settings of a client. New checks it, and copies it deeply: a later change of
// it, or of a profile, map or list in it, has no effect. Durations need a unit: 2 to 999 ns
// are refused. Its functions must be safe for concurrent use. They may call the client, with
// the context that they get: see ErrInFlight. For a panic in one see Do and Resume.
type Config struct {
	_ struct{}

	// Journal keeps the operations. New requires it, and the caller closes it; for Open it must be
	// nil. A journal of your own must call the client about its current operation only with the
	// context that it got: otherwise it would wait for itself, without an end. Its Now must not
	// wait for any call of the client, since each needs the time.
	Journal persist.Journal
	// Account is the account of this client's operations, and part of their identity: a client
	// sees and resumes only operations of its own account. Zero: the unnamed account.
	Account string
	// Credential is the hash of the client's credential, from CredentialHash. Region is the name of
	// its region. Each operation keeps both. An operation with another Credential or Region is not
	// sent, looked up or undone by this client (ErrConfig): at an API with keys for each API key or
	// region it would be another operation. An operation begun without a Credential, or without a
	// Region, is sent by every client, whatever its own is: set both before the first operation.
	// Zero: operations are not pinned, and pinned ones are not sent.
	Credential, Region string
	// Profile describes the idempotency of the API. Zero: profile.Draft07.
	Profile *profile.Profile
	// ProfileByHost has other profiles for single hosts, so that one client and one journal serve
	// many APIs. A host is in lower case, without a scheme, with or without a port:
	// "api.example.com:443" covers https://api.example.com/ too. A host with a port goes before the
	// same one without. There are no patterns, and a final dot does not count. Profiles of one name and version, with Profile, must
	// have the same facts.
	ProfileByHost map[string]*profile.Profile
	// ProfileOf returns the profile of an operation whose profile this client does not know: not its
	// own, not in ProfileByHost, and not built in with that version. It gets a copy of the record at
	// each call. A profile of another name or version, or one that New would refuse, counts as nil:
	// unknown, and nothing is sent. Zero: always nil.
	ProfileOf func(persist.Record) *profile.Profile
	// Retry bounds the attempts. Zero: each field's default.
	Retry Policy
	// Transport sends the requests. It must not retry by itself. It must end RoundTrip, and reads of
	// the answer's body, at the end of the request's context: otherwise no time limit of this
	// package holds. Without events of net/http/httptrace OutcomeNotSent never occurs: the only
	// proof of it is a connection that was asked for and failed, to the request's host and port or
	// to the proxy of an *http.Transport. Other connections under the request's context spoil the
	// proof. A body shorter than its ContentLength counts as cut. Zero: a private clone of
	// http.DefaultTransport with 256 idle connections for each host.
	Transport http.RoundTripper
	// Operation names the requests without a key that are operations through Transport and
	// StandardClient; see Transport. It gets a copy of the request without its Body; GetBody, if
	// there is one, returns the body. It must not make requests through the client. Writes is a
	// ready-made one. Zero: none but those of a ContextWithKey. Do does not call it.
	Operation func(*http.Request) bool
	// Methods are the methods journaled without a key in the request. A slip such as POTS is refused.
	// If it is set, each request of these methods is an operation, also through Transport; another
	// request is one only if it has a key, or Operation names it. Zero: POST and PATCH for Do, and
	// the other declarations for Transport.
	// A request with a key is journaled with any method but GET, HEAD and OPTIONS. A request of Do of
	// another method without a key streams through (Policy.SafeAttempts), unless another client of the journal began the
	// same request under a generated key, and that is unresolved or unreported: then the error is
	// as Do's.
	Methods []string
	// KeyHonoured adds operations to those with keys in the profile, such as "POST /v1/payouts" or
	// "POST /v1/payments/{id}/refunds", where {name} is one segment of a path. A profile with
	// endpoints or methods, except the draft's, protects nothing elsewhere: such a request is sent
	// once, and held in doubt. The Logger is told once for each. Zero: none.
	KeyHonoured []string
	// BasePath is a prefix of the API's paths added by a gateway or a proxy, such as
	// /payments-gateway. It is cut off before a path is compared with the profile's endpoints and
	// with KeyHonoured. A path without it is compared whole. Zero: none.
	BasePath string
	// RequireKey refuses journaled requests without a key of their own: through Transport the requests
	// named by Operation or, without Operation, those of Methods, set or not. It excludes NewKey.
	RequireKey bool
	// InsertKey puts the key of a call (DoKey, ContextWithKey, a NewKey of KeyFromJSON) into the
	// request if the profile has keys in the body, a form or the query, and the request has none
	// there: once, as the last member, before the request is compared and recorded. All other bytes
	// stay. An existing key is used. The error is ErrKeyInvalid for a body with a Content-Encoding or
	// with a header that is its digest, for JSON that is no object, and beside a member of the same
	// name in another case. Random keys are not put in: the same request would differ each time.
	// Under a profile with a header it has no effect. Zero: no key is put in; the request has it.
	InsertKey bool
	// NewKey makes the key of a request without one; ErrNoKey means that it has none. Through Transport
	// it is called for POST and PATCH, too, and a key makes the request an operation. It may ask the
	// server for a token. It gets a copy of the request without its Body, before that is read, and may
	// use GetBody. A request that it makes through the client, with that copy's context, must have a
	// key: else it is ErrKeyInvalid. After Close it is not called: a request without a key is then
	// ErrClosed and ErrOutcomeUnknown. Its keys count as generated: they are forgotten with their
	// answers, except those named by an error, or by another operation (KeepKey). Keys of KeyFromJSON are
	// the business's own, and kept like a caller's. Zero: RandomKey.
	NewKey func(*http.Request) (Key, error)
	// Token asks the API for the operation's key on the wire, if the profile has a Token without a
	// Path; with a Path the client asks by itself. It gets a copy of the record; the record's key is
	// the operation's own, and is not sent. It returns the token as the API knows it. It is called
	// after the operation is durable and before its first send; ctx ends after Retry.AnswerTimeout. An
	// error counts as an attempt without a send. The token of an operation that was not sent is thrown
	// away. Refused if no profile needs it. Zero: the profile's Path.
	Token func(ctx context.Context, rec persist.Record) (string, error)
	// Authorize adds credentials to a request before every send, also on Resume, which has no caller;
	// package sign makes functions that sign. It gets a clone. The clone's GetBody returns the recorded
	// body; for a request outside the journal it is the caller's. It must return at the end of the
	// clone's context: otherwise no time limit of this package holds. It may set headers, and the
	// parameters of the query that the record lists as omitted, since Resume sends without them; all
	// other bytes stay.
	// Nothing is sent if afterwards the method, URL, key, body, or a header differs that takes part in
	// the comparison of requests or selects the account, or if a second key header, or an invalid
	// header, was added. Its own requests through the same client, with its request's context and to
	// the same origin, go out without Authorize. If another client of the journal sends to an origin
	// with Authorize, a client without one sends nothing there. It is also called once after an answer
	// that refuses its credentials (401, 407): if it gives others then, the request is sent once more,
	// at once. Zero: Do sends the caller's credentials, and Resume yields an error for every operation
	// that had any.
	Authorize func(*http.Request) error
	// Origins are the origins for this client's operations and for the credentials of Authorize. An
	// entry is an origin, as "https://api.example.com" or "https://api.example.com:8443";
	// "https://*.example.com" for all names with exactly one label in place of the star; or, for tests,
	// "http://127.0.0.1:*" (or localhost, or [::1]) for all ports of this machine. A call to another
	// origin is ErrConfig; nothing is sent or recorded. An existing operation is sent, looked up and
	// undone at these origins only. A request that is no operation goes anywhere, without Authorize.
	// An empty list that is not nil is for a client that sends nothing: it may enqueue for any origin.
	// Without OriginAllowed it is required with Authorize, and for a journal on a server
	// (persist/postgres, persist/mysql, persist/redis: a persist.Claimer without persist.InProcess),
	// since everybody with write access there decides about the requests. Zero: without OriginAllowed,
	// all origins.
	Origins []string
	// OriginAllowed adds origins, for example from a table. It gets an origin as in Record.Origin, with
	// its port, and is called before each send: it must return at once, and must not call the client.
	// Zero: none.
	OriginAllowed func(origin string) bool
	// Reconcile is asked about held operations during Resume and Run. It is not asked about those of a
	// caller or an operator: persist.HoldCaller, HoldUndo, HoldRekey and HoldRekeyHeld. The last three
	// stay held until an operator repeats the Abandon or the Rekey, or settles them. A Run that shares
	// its workers among origins (OriginWorkers) asks beside its sends, in a quarter of ResumeWorkers
	// calls at once, at least one, and again a minute after each round. A send without an answer may
	// still be on its way until persist.Record.SendUntil: return EffectUnknown, not EffectAbsent, before
	// that, and for as long after it as the API needs to show its effects. Zero: they stay held.
	Reconcile func(context.Context, persist.Record) (Resolution, error)
	// OnResult gets each end and each new hold of an operation without a Do that returned it: those of Run, Resume, an operator, and
	// other programs on the journal. The operation must have been begun by a client with OnResult. See docs/results.md.
	// Run calls it after the record is durable, outside locks and transactions, for at most ResultWorkers operations at once, and for
	// one operation never twice at once. It gets a copy of the record at that time. After an error or a panic it is called again, after a
	// second, then after pauses that double up to Retry.MaxPause, without end. After nil the result is marked as delivered. A process
	// that dies before the mark is durable calls it again: it must be idempotent. ctx ends after Retry.AnswerTimeout, and with Run. A
	// result recorded by a Do that did not return is delivered after a minute. Before its delivery no Sweep or Prune changes the
	// record. Several processes on one journal deliver each result one at a time (persist.SharedResults). MarkDelivered of
	// persist/postgres and persist/mysql marks a result in the transaction of OnResult's own row, for exactly one effect.
	// Errors: ErrConfig from New for a journal without persist.Results. Zero: no result is delivered.
	OnResult func(ctx context.Context, rec persist.Record) error
	// Observe gets every step, in the goroutine of the step; it must return soon. Zero: none.
	Observe func(context.Context, Event)
	// Instrument gets the begin and the end of each run of an operation and of each attempt, and returns a context for each: a trace
	// needs it. Zero: none.
	Instrument Instrument
	// Logger gets one line for each event of interest to an operator. Lines contain keys, and never
	// bodies, credentials or query strings. Its handler must not call the client, and must not panic: a
	// line may come after the answer. Zero: silent, except for two warnings that slog.Default gets once:
	// operations that Run cannot send for want of a setting, and unprotected requests through Transport.
	Logger *slog.Logger
	// KeepHeader reports whether the journal may keep a header. It is asked about headers whose name has a
	// word of credentials (auth, token, cookie, session, secret, signature, api-key and the like); without
	// it they are left out. It must not panic, even after the answer. Zero: false for all.
	KeepHeader func(name string) bool
	// SecretHeaders and SecretParameters name more credentials, among headers and in queries, in any
	// case of letters. They are sent, and never journaled, and take no part in the comparison of requests
	// under one key. An operation begun with other names is compared as it was begun; if that is
	// impossible, the error is ErrConfig, and nothing is sent. Zero: the usual names only (in a query:
	// access_token, api_key, sig, signature, X-Amz-Signature and the like, by an exact list).
	SecretHeaders, SecretParameters []string
	// KeepFields are JSON pointers to values in requests, such as /reference and /amount. The journal
	// keeps these values as long as the key, for the audit of operations whose request was swept. In a
	// form /a/b is the field a[b]. They are not compared with those of an earlier request. At most 8
	// pointers, of 128 bytes in all; at most 256 bytes are kept with their values. Longer values, and
	// values of a body over 1 MiB, are marked as omitted. A pointer through a name of a credential is
	// refused. Zero: none.
	KeepFields []string
	// DropAnswer are JSON pointers to members of answers, such as /client_secret, that the journal does not keep. They are removed before
	// the answer is recorded; an item of an array becomes null, and the others keep their indexes. The pointers also lead from each item of a
	// list at Reference.List of the profile, where a lookup finds the resource. The callers of the call that got the answer have it whole.
	// Everybody else has it without them: a replay and Result.Answer name these pointers in Dropped, and so do OnResult's record and
	// Error.Answer. An answer whose body is not one JSON value is recorded without a body, as one over MaxResponseBytes: a later call
	// sends the request again. Headers with a digest of the whole body are not kept beside a removed member. The pointers are frozen in
	// the record when an operation begins: a client that records an answer leaves out those of the record and its own. At most 32
	// pointers, of 2048 bytes in all. Errors: ErrConfig from New if a profile of the client reads one of the values, or a part of it.
	// Zero: none.
	DropAnswer []string
	// MaxRequestBytes bounds a journaled request's body, which is held in memory. A larger one is
	// ErrBodyTooLarge. The journal's server may accept less: then the error is persist.ErrTooLarge, too.
	// If the profile has keys in the body, the body of every request but GET, HEAD and OPTIONS must be
	// read to find one, and is bounded too. Zero: 10 MiB. At most 1 GiB.
	MaxRequestBytes int64
	// MaxRequestHeaderBytes bounds a journaled request's target with the names and values of all its
	// headers. A larger one is ErrHeaderTooLarge. Zero: 64 KiB. At most 1 GiB.
	MaxRequestHeaderBytes int64
	// MaxResponseBytes bounds the recorded body of an answer. A larger one reaches the caller whole, and is
	// not recorded: a later call sends the request again for it, unless Policy.NeverAskAgain is set. Zero: 1 MiB. At most 1 GiB.
	MaxResponseBytes int64
	// MaxResponseHeaderBytes bounds the recorded headers of an answer, names and values. Larger ones reach
	// the caller, and only the status is recorded: a later call sends the request again, as for a larger
	// body. Zero: 64 KiB. At most 1 GiB.
	MaxResponseHeaderBytes int64
	// ResumeWorkers is the number of operations that Resume runs at once. Zero: 8. At most 10,000.
	ResumeWorkers int
	// OriginWorkers bounds the operations of one origin (scheme, host and port) that Run drives at once, in
	// a journal shared by several processes (persist.Claimer and persist.DueTimes). There Run divides
	// ResumeWorkers equally among the origins with due operations. The rest stays free for another origin
	// while only one has due operations, even if that one never answers. Zero: seven eighths of
	// ResumeWorkers, at least one less, but at least 1. A program with one API sets it to ResumeWorkers.
	// More counts as ResumeWorkers.
	OriginWorkers int
	// ResultWorkers is the number of operations whose results OnResult gets at once, in each Run. Zero: 4. At most 10,000.
	ResultWorkers int
	// Limiter returns the limiter of an origin, as in Record.Origin; nil: no limit. It is asked before each
	// request of an operation: attempts, redirects, lookups, undos, and requests for a token by the
	// profile. *rate.Limiter of golang.org/x/time/rate is one. Keep the limiters: the function is called
	// each time. After an error of the limiter the request is not made, and Resume and Run try the
	// operation again after a pause. Zero: no limits.
	Limiter func(origin string) Limiter
	// EnqueueMaxAge is the time from Enqueue to the latest first send; then the operation is held. Zero: 24 h.
	EnqueueMaxAge time.Duration
	// KeepAnswer is the time for which answers are kept for replay. Each record has that of the client that
	// began it, and a Sweep by any client keeps to it. A client that ends another's operation lengthens it
	// if its own is longer. Zero: the window of the operation's profile. Negative: none, so that an answer
	// goes with the next Sweep. Client.Prune drops answers earlier.
	KeepAnswer time.Duration
	// KeepKey is the time for which the use of a key is remembered: a key chosen by a caller, or a generated
	// one that an error may have named because another call ended its operation, or that belongs to an
	// operation of a Redrive or a Rekey, the old one or the new one. Each record has it, as KeepAnswer. At
	// least the window of each profile. A shorter one than EnqueueMaxAge counts as that: a later generation may
	// wait so long for its first send, and has to find the key. Zero: for ever, or on Redis as in redis.Options.KeepKey. Negative: as
	// long as the answer. A key removed by a sweep is new again: the next call with it is another operation,
	// and may take effect once more. The key of a later generation (Key.Generation) is kept for ever: the
	// records that close the keys below it name it.
	KeepKey time.Duration
	// KeepText is the time for which the use of a key is remembered with its text: the key, the account, path and query, and the digests that
	// tell a repeat from another request. After it a sweep does by itself what Client.Erase does. A used key then costs 146 bytes on
	// PostgreSQL in place of 570, some 150 in a file in place of 420, and less on MariaDB, too. A repeat then finds the key as before; it is ErrFinal with the state and the effect, since nobody can
	// compare the requests. An operation without an account whose request had credentials, with KeepFields, an effect that is not known, an event of the API as evidence, or another one in its
	// place keeps its text. Each record has it, as KeepKey. At least the window of each profile. Zero: as long
	// as the key. Negative: as long as the answer.
	KeepText time.Duration
	// KeepRequest tells when the journal loses the body of a request, which may hold the number of a card, its code, or a person's
	// address. Each record has that of the client that began it. The body goes with the write of the end, which is
	// made anyway. It stays until a Sweep, once an hour in Run, in two cases: an answer that was not kept whole may be asked for again
	// until its window is over, and a result for OnResult is not delivered yet. The digests that tell a repeat from another request, KeepFields, path and
	// query, and the headers without credentials stay. Zero: KeepRequestAsNeeded, after a success at most APIs.
	KeepRequest RequestKeeping
	// ClockSkew is the largest error of the clock that windows are judged by: the journal's if it is a
	// persist.Claimer, else this machine's. The logger is told once if this machine's clock differs from the
	// journal's by more. Zero: 1 min. At most a tenth of each window counts; more than a whole one is refused.
	ClockSkew time.Duration
	// Lease is the time for which an operation is kept for a process that may have died, in a journal shared by
	// several processes (persist.Claimer). A living process renews its leases every third of this time, in one
	// call for all operations. It should be longer than an outage of the journal. Zero: 30 s. At least 100 ms.
	Lease time.Duration
}

// Limiter bounds the pace of sends.
type Limiter interface {
	// Wait returns nil when a send may start. It returns an error if that cannot be, and soon after the end of
	// ctx.
	// A slow Wait holds no operation. Before its first send an operation is given back unchanged after a third of
	// Config.Lease, so that others may send it, and is taken again after Wait returns nil: the call of Wait
	// continues, and no turn is lost. If another client has the operation by then, a Run uses the turn for its
	// next operation, and a Do gets the other's result. Between two attempts it is given back as after a failed
	// attempt; before the send after a token or a lookup of Policy.AskFirst, unchanged. That lookup is made
	// again, after Wait has let two requests go out: both go out then. A Do without a key, and a request through
	// Transport, keep their operation.
	Wait(ctx context.Context) error
}

// inner converts the Config for package run.
func (c *Config) inner() run.Config {
	return run.Config{
		Journal: c.Journal, Account: c.Account, Credential: c.Credential, Region: c.Region,
		Profile: c.Profile, ProfileByHost: c.ProfileByHost, ProfileOf: c.ProfileOf,
		Retry: c.Retry.inner(), Transport: c.Transport, Operation: c.Operation, Methods: c.Methods, KeyHonoured: c.KeyHonoured, BasePath: c.BasePath,
		RequireKey: c.RequireKey, InsertKey: c.InsertKey, NewKey: newKeyOf(c.NewKey), ReadsKey: isJSONKey(c.NewKey), Token: c.Token, Authorize: c.Authorize,
		Origins: c.Origins, OriginAllowed: c.OriginAllowed, Reconcile: reconcileOf(c.Reconcile), OnResult: c.OnResult, Observe: observeOf(c.Observe), Instrument: instrumentOf(c.Instrument),
		Logger: c.Logger, KeepHeader: c.KeepHeader, SecretHeaders: c.SecretHeaders, SecretParameters: c.SecretParameters,
		KeepFields: c.KeepFields, DropAnswer: c.DropAnswer, MaxRequestBytes: c.MaxRequestBytes, MaxRequestHeaderBytes: c.MaxRequestHeaderBytes,
		MaxResponseBytes: c.MaxResponseBytes, MaxResponseHeaderBytes: c.MaxResponseHeaderBytes,
		ResumeWorkers: c.ResumeWorkers, OriginWorkers: c.OriginWorkers, ResultWorkers: c.ResultWorkers, Limiter: limiterOf(c.Limiter),
		EnqueueMaxAge: c.EnqueueMaxAge, KeepAnswer: c.KeepAnswer, KeepKey: c.KeepKey, KeepText: c.KeepText, KeepRequest: c.KeepRequest.inner(), ClockSkew: c.ClockSkew, Lease: c.Lease,
	}
}

// reconcileOf converts Config.Reconcile for package run; nil stays nil.
func reconcileOf(f func(context.Context, persist.Record) (Resolution, error)) func(context.Context, persist.Record) (run.Resolution, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, rec persist.Record) (run.Resolution, error) {
		said, err := f(ctx, rec)
		return said.inner(), err
	}
}

// observeOf converts Config.Observe for package run; nil stays nil.
func observeOf(f func(context.Context, Event)) func(context.Context, *run.Event) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, e *run.Event) { f(ctx, eventOf(e)) }
}

// limiterOf converts Config.Limiter for package run; nil stays nil.
func limiterOf(f func(origin string) Limiter) func(origin string) run.Limiter {
	if f == nil {
		return nil
	}
	return func(origin string) run.Limiter {
		// A nil Limiter must become a nil run.Limiter: no limit for this origin.
		if limiter := f(origin); limiter != nil {
			return limiter
		}
		return nil
	}
}

// RequestKeeping is the value of [Config.KeepRequest]: when the journal loses the body of a request. An unfinished operation keeps
// it, since it may have to be sent again.
type RequestKeeping uint8

const (
	// KeepRequestAsNeeded is KeepRequestWithAnswer where the profile has events that name a business reference of the body
	// (profile.EventProof.Reference), and DropRequestAfterSuccess anywhere else. Without the body nobody knows whether such an event is about
	// the operation, so that no event with a reference would prove anything at that endpoint. A reference of WebhookConfig.References is not
	// known here: choose KeepRequestWithAnswer for it, or keep it in KeepFields.
	KeepRequestAsNeeded RequestKeeping = iota
	// DropRequestAfterSuccess drops it with the write that ends the operation as succeeded or accepted. A refused operation, and
	// one that a person has settled, keeps it for as long as its answer: it may be begun once more, or be taken back.
	DropRequestAfterSuccess
	// KeepRequestWithAnswer keeps it for as long as the answer, whatever the end.
	KeepRequestWithAnswer
	// DropRequestAfterEnd drops it with the write of any end. Redrive, Rekey and Unsettle then refuse the operation with ErrConfig.
	DropRequestAfterEnd
)

// String returns the choice in words.
func (k RequestKeeping) String() string {
	switch k {
	case KeepRequestAsNeeded:
		return "as needed"
	case DropRequestAfterSuccess:
		return persist.RequestUntilSuccess.String()
	case KeepRequestWithAnswer:
		return persist.RequestWithAnswer.String()
	case DropRequestAfterEnd:
		return persist.RequestUntilEnd.String()
	}
	return fmt.Sprintf("RequestKeeping(%d)", uint8(k))
}

// inner returns the choice for package run. Any other value stays one that New refuses.
func (k RequestKeeping) inner() run.RequestKeeping { return run.RequestKeeping(k) }
