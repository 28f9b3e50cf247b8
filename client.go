package oncehttp

import (
	"context"
	"iter"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/persist"
)

// Client sends requests that must not take effect twice. It is safe for
// concurrent use. New and Open make one: make it once, and keep it. Every error of
// a nil or zero Client matches ErrConfig, and so does the error of a call with a
// nil context.Context.
type Client struct{ run *run.Client }

// inner returns the client that does the work; nil for a nil or zero c, which every call of that one refuses.
func (c *Client) inner() *run.Client {
	if c == nil {
		return nil
	}
	return c.run
}

// New returns a client on any journal. The caller closes the journal, after the
// client. Several clients of one process may share one journal.
// Errors: ErrConfig.
func New(cfg Config) (*Client, error) {
	inner, err := run.New(cfg.inner())
	if err != nil {
		return nil, errorOf(err)
	}
	return &Client{inner}, nil
}

// Open is New with a bbolt journal in the file at path. It makes the file if there
// is none. Client.Close closes the journal. Package persist/seal opens sealed
// journals; persist/postgres, persist/mysql and persist/redis open journals on a
// server.
// Errors: ErrConfig; persist.ErrLocked, persist.ErrCorrupt or persist.ErrSealed with the
// name of the file; and those of the file system. It does not make the folder.
func Open(path string, cfg Config) (*Client, error) {
	inner, err := run.Open(path, cfg.inner())
	if err != nil {
		return nil, errorOf(err)
	}
	return &Client{inner}, nil
}

// Do sends the request so that it takes effect once. The key is the request's own,
// else the context's (ContextWithKey), else a generated one. Do makes the key, and
// writes key and request to the journal, before the first attempt.
//
// Do returns the server's final answer, whose body is whole up to
// Config.MaxResponseBytes and streams beyond, or an error. The error
// matches exactly one of ErrNoEffect, ErrFinal and ErrOutcomeUnknown. A final error
// status, such as the 402 of a declined card, is a response. Do does not change the
// request. It reads the body once, to its end, and closes it. The same *http.Request may
// be given to Do again if it has a GetBody (as of http.NewRequest for a bytes.Buffer, a
// bytes.Reader and a strings.Reader) or no body; else the error is ErrConfig.
//
// Without a key, Do returns ErrOutcomeUnknown in two cases: the same request is
// unresolved under a generated key; or Resume or Run ended it, and no caller with
// its key was told. The error names that key. While another process sends the
// operation, the error matches ErrInFlight instead. A call under way in this process
// does not count: two calls at the same time are two operations. See the package comment.
//
// The same key may get a confirmed answer before its record is durable and, on a
// journal of a server (persist.LateFinisher), before the record has the answer.
// Later calls of this process on the operation wait for that. After a crash in
// between the operation is pending, and is sent again under the same key. Flush
// waits for the records.
//
// The end of the request's context ends the attempt, and Do returns the outcome
// known by then. Do returns later while the journal commits, or while a Transport or
// a function of the Config ignores the context. If other callers wait for the
// operation, Do returns at once, and the operation goes on for them.
//
// A panic of a function of the Config, the journal or the Transport goes on in the
// caller of Do that began the call. Other callers get ErrOutcomeUnknown. If the
// first caller has left, or has its answer, the panic is logged. The operation stays
// pending, and the same key goes on with it. A runtime.Goexit in place of a panic
// ends the caller's goroutine if the attempts run there; else the error is
// ErrOutcomeUnknown.
//
// Requests outside the journal (GET, HEAD, OPTIONS, and methods left out by
// Config.Methods) stream through. One that may take effect is not sent while the
// same request of another client is unresolved, or unreported, under a generated
// key. If its method is safe or idempotent by definition (GET, HEAD, OPTIONS, TRACE,
// PUT, DELETE; RFC 9110 sections 9.2.1, 9.2.2) and it has no body, or a GetBody, it is
// sent again after an error and after a 429, 502, 503 or 504, by Config.Retry: see
// Policy.SafeAttempts. The last answer is the response, whatever its status; after a
// lost answer that of a DELETE may be a 404. An answer whose head was returned is not
// asked for again. A GET, HEAD or OPTIONS without an answer is ErrNoEffect: it has no
// effect by definition. Another method is ErrOutcomeUnknown if it may have been sent.
// Methods that are not idempotent are sent again only if nothing of them was sent.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.inner().Do(req)
	return resp, errorOf(err)
}

// DoKey is Do under this key. A key in the request itself must be the same. A GET, HEAD or
// OPTIONS is ErrConfig.
func (c *Client) DoKey(req *http.Request, key Key) (*http.Response, error) {
	resp, err := c.inner().DoKey(req, string(key))
	return resp, errorOf(err)
}

// Enqueue records, durably, the intention to send the request under this key. It
// uses no network. Resume or Run sends the request, within Config.EnqueueMaxAge.
// After nil the operation stays until it is final, also if a call is under way with
// its key.
//
// A second Enqueue of the same key with the same bytes returns
//   - nil while the operation goes on, or after it took place;
//   - nil for one held because it was never sent in time: it is sent now;
//   - ErrFinal after a refusal (a final 4xx), with the answer in Error.Answer;
//   - ErrSettled, ErrAbandoned, ErrKeyReused or ErrHeld, as Do, if it was settled as
//     absent, abandoned, mismatched or is held otherwise.
//
// Other bytes are ErrKeyReused. So is an operation begun anew by Rekey or Redrive, until
// the new one has ended without an effect: Error.Key is then the new key. The key may be
// "" if the request has one in its header, query or body, or its context does
// (ContextWithKey). A request without any key is ErrKeyInvalid, since nobody could ask for
// the operation later.
//
// The request's credentials are not kept. A request with credentials needs
// Config.Authorize, which adds them again; else the error is ErrConfig.
func (c *Client) Enqueue(req *http.Request, key Key) error {
	return errorOf(c.inner().Enqueue(req, string(key)))
}

// Prepare returns the record that Enqueue would begin. It writes nothing. In a
// journal in SQL, persist.BeginTx or postgres.BeginPgx begins it in a transaction of
// the caller, as the first write of that, so that the transaction can be repeated.
func (c *Client) Prepare(req *http.Request, key Key) (persist.Record, error) {
	rec, err := c.inner().Prepare(req, string(key))
	return rec, errorOf(err)
}

// Capture returns the request of an SDK's call, unsent, for Prepare, Enqueue or Do. It calls
// call with an http.Client for the SDK. The first request that Transport would make an
// operation, if its context had this key, is kept under the key. The others are sent, as
// Transport sends them: a GET, a token that is renewed.
//
// The http.Client returns an *Error with ErrCaptured for the kept request, inside a
// *url.Error. It is neither a timeout nor temporary. An SDK that tries again all the same
// gets it again, and adds its waits: switch its retries off. The same request again, by the
// comparison of keys, is the one that is kept. Any other operation is an error with
// ErrConfig, for the SDK and for Capture: one Capture is one operation. This holds for calls
// of several goroutines, too. After the return of call nothing is kept: an operation is then
// an error with ErrConfig, and is not sent.
//
// The request has its body in memory, and a GetBody. Its context is ctx with the key
// (ContextWithKey) and, if only the SDK's context has one, with the account of that. Give
// Prepare and Enqueue the same key, or "". The SDK's own key in the profile's header is
// removed; a key at another place of the profile stays, and must be this one. The SDK's
// credentials stay, for Config.Authorize to replace: see Enqueue.
//
// Say which request is the operation, by Config.Operation, the endpoints of a profile or an
// SDK's key: Writes takes the JSON of a login for an operation. Where nothing but Capture's key
// makes a request an operation, a profile with endpoints refuses it elsewhere, with ErrConfig,
// for the SDK and for Capture. With another profile it is kept if call returns nil or
// ErrCaptured; any other error of call is then one of Capture, with ErrConfig. Else an error of
// call counts only if there is no operation. It is in Error.Cause.
//
// A panic goes on in the caller. Capture writes nothing, and does not look at the journal. So each of
// its errors matches ErrOutcomeUnknown: an operation may stand under the key. With ErrConfig
// for no operation, a second one, and a nil call; with ErrKeyInvalid, ErrBodyTooLarge,
// ErrHeaderTooLarge or ErrConfig for a request that cannot be read as an operation; with
// ErrClosed.
func (c *Client) Capture(ctx context.Context, key Key, call func(*http.Client) error) (*http.Request, error) {
	var inner func(*run.Capturing) error
	if call != nil {
		inner = func(t *run.Capturing) error { return call(&http.Client{Transport: capturing{t}}) }
	}
	req, err := c.inner().Capture(ctx, string(key), inner)
	return req, errorOf(err)
}

// Resume makes one pass over the operations of this account that are due when it
// starts, at most Config.ResumeWorkers at a time, and yields the result of each.
// Result.Outcome tells a success, a 202 and a refusal apart; none of them is an
// error. Resume leaves out an operation that another call runs, and one whose next
// attempt is not due yet. Error.NextAttempt, and NextAttempt in the records of
// Unfinished, have that time: right after a failed Do nothing is due.
//
// An *Error is about one operation, and the pass goes on. Any other error ends the
// pass. After a break nothing more starts; Resume waits for the attempts on the
// wire, at most Policy.AttemptTimeout, and records their results. The end of ctx
// cuts off the attempts on the wire. An operation with other callers goes on for
// them, and Resume does not wait for it. The last error then has the cause, as it
// has after Close.
//
// A panic or runtime.Goexit of a function of the Config, the journal or the
// Transport is the error of its operation, with ErrOutcomeUnknown; Config.Logger
// gets the stack. The pass goes on. This process tries the operation again after
// Retry.MaxPause; other processes, and a Do with its key, may go on with it before.
// A panic of the journal outside an operation ends the pass.
//
// An operation whose credentials were left out of the journal needs
// Config.Authorize. Without it each yields an error, and stays pending. Resume asks
// Config.Reconcile about held operations (its comment names them), and leaves the others
// alone.
func (c *Client) Resume(ctx context.Context) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		c.inner().Resume(ctx)(func(r run.Result, err error) bool { return yield(resultOf(r), errorOf(err)) })
	}
}

// Run resumes at once, after each Enqueue, and when an operation falls due, until
// ctx ends. Then it waits for the attempts on the wire, as Resume does after a
// break, and returns nil. It sweeps once an hour.
//
// Run leaves alone the operations that it cannot send: those that need a field of
// the Config, such as Authorize, and those of another region or version. It tells
// Config.Logger and Config.Observe (EventUnserved) of each cause at once, and then
// once an hour; without a Logger, slog.Default once. If some are unfinished in the
// end, the error matches ErrConfig, or persist.ErrSealed if the key of a seal is
// missing.
//
// On a journal shared by several processes (persist.Claimer and persist.DueTimes)
// each origin with due operations gets its share of Config.ResumeWorkers. Run looks
// for the operations of other processes every third of Config.Lease, and at least
// once a minute; on a persist.Notifier (PostgreSQL, Redis) as soon as another
// process enqueues one. EventPolling tells when the notifications fail.
//
// Config.Observe and Config.Logger get each operation, and each pass that fails
// because of the journal. A failed pass is repeated after a second, and then after
// growing pauses of at most a minute. A panic is treated as in Resume; a panic of
// Config.Observe outside an operation is logged.
//
// Errors: ErrClosed; persist.ErrUncertain, persist.ErrClosed or persist.ErrLocked
// from a journal that accepts nothing more.
func (c *Client) Run(ctx context.Context) error {
	return errorOf(c.inner().Run(ctx))
}

// Wake makes Run look at the journal at once: the Run of this client and, on a
// persist.Notifier, of every other process. Enqueue does so by itself. Call Wake
// after the commit of your own transaction with a begun operation (persist.BeginTx,
// postgres.BeginPgx). Without it Run finds the operation at its next look. Wake does not
// wait, and promises nothing.
func (c *Client) Wake() {
	c.inner().Wake()
}

// Flush waits until the results of all calls that have returned are durable: calls of
// every client on this journal in this process. Do may return a confirmed answer
// before it is durable and, on a journal of a server (persist.LateFinisher), before
// the record has it. After Flush the same key finds the answer even after a crash.
//
// Errors: the journal's; the cause of ctx; and that an answer could not be recorded.
// Then its operation is pending, and each Flush returns the error until the answer is
// recorded, by a later call or by a Run of any process. Flush may be called after
// Close while the journal is open.
func (c *Client) Flush(ctx context.Context) error {
	return errorOf(c.inner().Flush(ctx))
}

// Close ends the client. From now on nothing starts: every call but Flush returns
// ErrClosed with the right verdict for its operation. Requests outside the journal
// still pass through Transport and StandardClient.
//
// Calls under way stop after the attempt on the wire. Close waits for them, at most
// Retry.AttemptTimeout. Then it cuts them off, and waits for their records. A caller
// that had joined a call gets the answer of the attempt on the wire, or
// ErrOutcomeUnknown with ErrClosed. Callers of another client on the same journal go
// on with the operation by themselves. A call has ended when it has returned: the
// body of a streamed response may still be read.
//
// One second after the cut Close stops waiting for functions of the Config, for
// Transports, and for the bodies of loops over Unfinished or Resume; another
// Retry.AttemptTimeout later for everything else. The error then matches
// ErrStillRunning, and names the call. A Close inside such a function returns that
// error, and so does one beside a renewal of leases that the journal does not end.
// The closing continues, and is over when the last call has returned.
//
// Last, Close closes the idle connections of the client's own Transport (a nil
// Config.Transport), and the journal of Open. Close any other journal after the
// client. An error of the journal means that the promise of Flush may not hold. Every
// Close and Shutdown, also at the same time, waits for the same end. All that see it return
// the same error; so after ErrStillRunning a later Close may return nil.
func (c *Client) Close() error {
	return errorOf(c.inner().Close())
}

// Shutdown closes the client like Close, but returns the cause of ctx if that ends first. The client ends all the same.
func (c *Client) Shutdown(ctx context.Context) error {
	return errorOf(c.inner().Shutdown(ctx))
}
