package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Config says how a client works. It is validated once and copied deeply: changing it, or a profile, map or list in it,
// changes nothing later. Times need their unit: from 2 to 999 ns they are refused. All functions in it must be safe for concurrent use.
// They may call the client, and should do it with the context that they get: see ErrInFlight.
// See Do and Resume for what becomes of a panic in one.
type Config struct {
	_ struct{}

	// Journal keeps the operations. Required by New, where it stays the caller's
	// to close; must be nil for Open, which opens its own. A journal of your own must not wait for a call to the client about
	// the operation that it is called for, but with the context that it got: it would wait for itself for ever. Its
	// Now must not wait for any call to the client, since each needs the time.
	Journal persist.Journal
	// Account names whose account this client acts for. It is part of the
	// identity of every operation: a client sees and resumes only its own
	// account's. Zero: the unnamed account.
	Account string
	// Credential is the hash of the credential that this client uses, as CredentialHash makes it, and Region the name of
	// the region that it speaks to. Each operation keeps them, and one that was begun with another of either is not
	// sent, looked up or undone by this client (ErrConfig): at an API that knows keys by API key or by region, a changed
	// one would be another operation. Zero: operations are not pinned, and those that were are not sent.
	Credential, Region string
	// Profile is how the API does idempotency. Zero: profile.Draft07.
	Profile *profile.Profile
	// ProfileByHost gives single hosts another profile, so that one client and one journal serve many APIs. A host is
	// in lower case, without a scheme, and may have a port: "api.example.com:443" is https://api.example.com/ too. A
	// host with a port goes before the same one without. There are no patterns. Profiles of one name and version, that in
	// Profile included, must state the same facts.
	ProfileByHost map[string]*profile.Profile
	// ProfileOf is asked for the profile of an operation that was begun under one that this client does not know: not its
	// own, nor one of ProfileByHost, nor built in with that version. It gets a copy of the record, each time anew. A profile of
	// another name or version, or one that New would refuse, is as nil: not known, and nothing is sent. Zero: as nil.
	ProfileOf func(persist.Record) *profile.Profile
	// Retry bounds the attempts. Zero: each field's default.
	Retry Policy
	// Transport sends. It must not retry by itself, and must end RoundTrip, and reads
	// of the answer's body, when the request's context ends: otherwise no time limit of
	// this package holds. One that reports no events of net/http/httptrace never gives
	// OutcomeNotSent, since only a connection that was asked for and not had proves
	// that nothing was sent: one to the request's host and port, or to the proxy that an
	// *http.Transport takes to it. If others are asked for under the request's context,
	// nothing is proved. A body that is shorter
	// than the ContentLength that it reports counts as cut off. Zero: a private clone
	// of http.DefaultTransport that keeps 256 idle connections per host.
	Transport http.RoundTripper
	// Methods that are journaled without a key in the request; a slip such as POTS
	// is refused. Zero: POST and PATCH. A request that carries a key is journaled whatever its method; GET,
	// HEAD and OPTIONS never are. One of another method and without a key streams through, unless another client of the journal has begun
	// the same request as an operation under a generated key, which is unresolved or unreported: then the error is as Do's.
	Methods []string
	// KeyHonoured are operations at which the API honours keys although the profile does not list them, such as
	// "POST /v1/payouts" or "POST /v1/payments/{id}/refunds": {name} stands for one segment of a path. Elsewhere a profile that has endpoints or methods, and
	// is not that of the draft, protects nothing: the request is sent once, and held where that leaves a doubt. The Logger is
	// told once for each such operation. Zero: none.
	KeyHonoured []string
	// BasePath stands before the API's own paths where a gateway or a proxy has put it, such as /payments-gateway: it is cut
	// off before a path is compared with the profile's endpoints and with KeyHonoured. A path without it is compared whole.
	// Zero: none.
	BasePath string
	// RequireKey refuses journaled requests that carry no key of their own. It excludes NewKey.
	RequireKey bool
	// NewKey makes the key of a request that has none. Zero: RandomKey. It may ask the server for a token. It gets a
	// copy of the request without its Body, before that is read, and may use GetBody. A request that it makes through the client,
	// with that copy's context, must have a key: else it is ErrKeyInvalid. After Close it is not called: a request without a key is ErrClosed
	// and ErrOutcomeUnknown then. Its keys are generated keys: they
	// are forgotten with their answers, unless an error may have named them (KeepKey). Those of KeyFromJSON are the business's own, and kept like a caller's.
	NewKey func(*http.Request) (Key, error)
	// Token asks the API for the token that is an operation's key on the wire, where the profile has a Token without a
	// Path; with a Path the client asks by itself. It gets a copy of the record, whose key is the operation's own and is not
	// sent, and returns the token as the API knows it. It is called once the operation is durable and before it is
	// sent for the first time; ctx ends after Retry.AnswerTimeout. An error counts as an attempt that was not sent. A token
	// whose operation was not sent is thrown away. Refused where no profile asks for it. Zero: the profile's Path.
	Token func(ctx context.Context, rec persist.Record) (string, error)
	// Authorize adds credentials to a request before every send, also on Resume, which has no caller; package sign makes
	// functions that sign. It gets a clone, whose GetBody gives the recorded body (of a request that is not journaled,
	// the caller's GetBody), and must return when the clone's context ends: otherwise no time limit of this package
	// holds. It may set headers, and of the query the parameters that the record names as omitted (for Resume sends
	// without them), the rest byte for byte as it was. If the method, URL, key, body, a header that takes part in the
	// comparison of requests or selects the account differs afterwards, or another key header or one that cannot be sent
	// has come, nothing is sent. What it asks for through the same client with its request's context, at the same origin, goes out
	// without Authorize. Zero: Do sends the caller's credentials, and Resume yields an error for every operation
	// that had any. Where another client of the journal sends with Authorize, one without it sends nothing.
	Authorize func(*http.Request) error
	// Origins are those to which this client sends operations, and to which the credentials of Authorize go. An entry is an origin,
	// as "https://api.example.com" or "https://api.example.com:8443"; "https://*.example.com" for all names with exactly one label in
	// the place of the star; or, for tests, "http://127.0.0.1:*" (or localhost, or [::1]) for all ports of this machine. A call for
	// another origin is ErrConfig; nothing is sent or recorded. An operation that exists is sent to no other, nor is asked of it or
	// undone there. A request that is no operation goes anywhere, but without Authorize.
	// An empty list that is not nil is that of a client that sends nothing: it may enqueue for any origin, and only what others send is sent.
	// Required, unless OriginAllowed is set, with Authorize, and where the journal is on a server, as those of persist/postgres, persist/mysql
	// and persist/redis are (persist.Claimer, without persist.InProcess): whoever may write there decides what is sent. Zero: without OriginAllowed, all.
	Origins []string
	// OriginAllowed adds origins to those of Origins, where a table knows them. It gets an origin as Record.Origin spells it, with
	// its port, and is asked before each send: it must return at once, and must not call the client. Zero: none.
	OriginAllowed func(origin string) bool
	// Reconcile is asked of held operations during Resume and Run. Zero leaves them held. It is not asked of those that a
	// caller or an operator goes on with: persist.HoldCaller, HoldUndo, HoldRekey and HoldRekeyHeld. All but the first stay held,
	// for as long as it takes, until an operator repeats the Abandon or the Rekey, or settles them.
	// A Run that shares its workers among origins (OriginWorkers) asks of what is held beside what it sends, in as many
	// calls at once as a quarter of ResumeWorkers, one at least, and again a minute after each round.
	Reconcile func(context.Context, persist.Record) (Resolution, error)
	// Observe is told of every step, in the goroutine that makes it; it must
	// return soon. Zero: nobody is told.
	Observe func(context.Context, Event)
	// Logger gets one line for what an operator should know. Keys appear in it; bodies, credentials and query strings never.
	// Its handler must neither call the client nor panic: a line may come after the answer. Zero: silent; only what
	// Run cannot send for want of something here is said once, through slog.Default.
	Logger *slog.Logger
	// KeepHeader may keep a header in the journal that is a credential by a word of its name (auth, token, cookie,
	// session, secret, signature, api-key and the like) and is left out otherwise. It must not panic, even after the answer. Zero: none.
	KeepHeader func(name string) bool
	// SecretHeaders and SecretParameters name more credentials, among headers and in queries, case aside. They are
	// sent and never journaled, and do not take part in the comparison of requests under one key. An operation that was
	// begun with other names is compared as it was begun; where that is not possible, the error is ErrConfig, and nothing
	// is sent. Zero: those only that are called so in the field (of a query: access_token, api_key, sig, signature,
	// X-Amz-Signature and the like, by an exact list).
	SecretHeaders, SecretParameters []string
	// KeepFields are JSON pointers to values in requests, such as /reference and /amount, that the journal keeps as
	// long as it remembers the key: an audit needs them of operations whose request was swept. Of a form, /a/b is the
	// field a[b]. They are not compared with those of an earlier request under the key. At most 8, of 128 bytes in
	// all; with their values at most 256 bytes are kept, and what is longer, or is in a body over 1 MiB, is marked as
	// omitted. A pointer through a name that a credential has is refused. A journal file of persist/bolt that has such values
	// is refused by versions of this module that do not know them. Zero: none.
	KeepFields []string
	// MaxRequestBytes bounds a journaled request's body, which is held in memory. A larger one is ErrBodyTooLarge. The server of
	// a journal may take less: then the error is persist.ErrTooLarge, too.
	// Where the profile's keys travel in the body, that of every request but GET, HEAD and OPTIONS has to be read to
	// find one, and is bounded too. Zero: 10 MiB. At most 1 GiB.
	MaxRequestBytes int64
	// MaxRequestHeaderBytes bounds a journaled request's target with the names and values of all its headers. A
	// larger one is ErrHeaderTooLarge. Zero: 64 KiB. At most 1 GiB.
	MaxRequestHeaderBytes int64
	// MaxResponseBytes bounds how much of an answer's body is kept. A larger
	// one still reaches the caller whole, but is not recorded. Zero: 1 MiB. At
	// most 1 GiB.
	MaxResponseBytes int64
	// MaxResponseHeaderBytes bounds how much of an answer's headers, names and values, is kept. Larger ones still
	// reach the caller, but only the status is recorded. Zero: 64 KiB. At most 1 GiB.
	MaxResponseHeaderBytes int64
	// ResumeWorkers is how many operations Resume runs at once. Zero: 8. At most 10,000.
	ResumeWorkers int
	// OriginWorkers bounds how many operations of one origin (scheme, host and port) Run drives at once, in a journal
	// that several processes share (persist.Claimer and persist.DueTimes). There Run gives each origin with something
	// due an equal share of ResumeWorkers; this keeps the others free while only one has, for an origin that comes later,
	// also if the first one never answers. Zero: ResumeWorkers without an eighth of it, at least one less, but 1 at least. A
	// program with one API sets it to ResumeWorkers. More counts as ResumeWorkers.
	OriginWorkers int
	// Limiter gives the limiter of an origin, as Record.Origin spells it, which is asked before each request of an operation:
	// attempts, redirects, lookups, undos, and requests for a token by the profile; nil: no limit. *rate.Limiter of
	// golang.org/x/time/rate is one. If it returns an error, the request is not made, and Resume and Run try the operation
	// again after a pause. It is called before each request: keep the limiters. Zero: no limits.
	Limiter func(origin string) Limiter
	// EnqueueMaxAge is how long after Enqueue a first send may still happen; then the operation is held. Zero: 24 h.
	EnqueueMaxAge time.Duration
	// KeepAnswer is how long answers are kept for replay. It is written into each record that this client begins, and a Sweep by
	// any client goes by that. Who ends the operation of another lengthens it where its own is longer. Zero: the window of the
	// operation's profile. Negative: not at all. To drop answers earlier: Client.Prune.
	KeepAnswer time.Duration
	// KeepKey is how long it is remembered that a key was used that a caller chose, or that oncehttp generated and an error may
	// have named: its operation was ended by another call than the one that began it.
	// It is written into the record, as KeepAnswer is.
	// Zero: for ever, or on Redis what redis.Options.KeepKey says. Negative: no longer than the answer. Either way at least the window of each profile. A key that a sweep has
	// removed is new again: the next call with it is another operation, which may
	// take effect once more.
	KeepKey time.Duration
	// ClockSkew is how far the clock may be off by which windows are judged: that of the journal where it is a
	// persist.Claimer, else this machine's. Where this machine's is off by more from the journal's, the logger is told
	// once. Zero: 1 min. Of each window a tenth counts at most; more than a whole one is refused.
	ClockSkew time.Duration
	// Lease is how long an operation is kept for a process that may have died, in a journal that several processes
	// share (persist.Claimer). While the process lives, its leases are renewed every third of this time, in one call for
	// all its operations. Choose it longer than the journal may be out of reach. Zero: 30 s. At least 100 ms.
	Lease time.Duration

	reader     request.Reader     // made of the above by fill
	randomKeys bool               // NewKey is RandomKey
	origins    *request.Origins   // of Origins; nil: there are none
	authorized *authorized        // where others send with Authorize; New sets it
	facts      []knownFacts       // of the profiles
	honoured   []profile.Endpoint // of KeyHonoured
	drives     operation.Client   // made of the above by fill
}

// Limiter bounds the pace of sends.
type Limiter interface {
	// Wait returns nil when a send may start. It returns an error if that will not be, and soon after ctx has ended. Before its first send
	// an operation is given back after a third of Config.Lease, as it was, so that others may send it, and taken again when Wait returns
	// nil: the call of Wait goes on, and no turn is lost. Where another has it by then, the turn of a Run is the next operation's, and a Do
	// gets what the other has recorded. A Do without a key, and a request through Transport, keep theirs. Between two attempts an operation of
	// Resume or Run is given back likewise, as after an attempt in vain; any other keeps it, and so does the send after a lookup or a token.
	Wait(ctx context.Context) error
}

// The defaults and the fixed bounds.
const (
	defaultMaxAttempts      = 6
	defaultMaxElapsed       = 2 * time.Minute
	defaultAttemptTimeout   = 30 * time.Second
	defaultBodyTime         = 2 * time.Minute
	defaultMinDelay         = 500 * time.Millisecond
	defaultMaxDelay         = 30 * time.Second
	defaultMaxRetryAfter    = time.Minute
	defaultMaxPause         = 15 * time.Minute
	defaultMaxRequestBytes  = 10 << 20
	defaultMaxHeaderBytes   = 64 << 10
	defaultMaxResponseBytes = 1 << 20
	defaultResumeWorkers    = 8
	defaultEnqueueMaxAge    = 24 * time.Hour
	defaultClockSkew        = time.Minute
	defaultLease            = 30 * time.Second
	leaseMin                = 100 * time.Millisecond

	keptBytesMax = 1 << 30
	hopsMax      = 3 // same-origin 307 and 308 within one attempt
)

// positive gives v, or def if v is zero; a negative v is an error that names it.
func positive[T int | int64 | time.Duration](errp *error, name string, v *T, def T) {
	switch {
	case *v == 0:
		*v = def
	case *v < 0 && *errp == nil:
		*errp = fmt.Errorf("%s is %v; want zero for the default of %v, or more", name, *v, def)
	}
}

// fill puts in the defaults and says what is wrong. c is the client's own copy.
func (c *Config) fill() error {
	switch {
	case c.Journal == nil:
		return errors.New("no Journal")
	case isNil(c.Journal):
		return fmt.Errorf("the Journal is a nil %T; open it first", c.Journal)
	}
	units := c.checkUnits()
	if err := cmp.Or(c.fillBounds(), c.checkBounds(), units); err != nil {
		return err
	}
	c.drives = c.driveLimits()
	if err := cmp.Or(c.checkPin(), c.fillOrigins()); err != nil {
		return err
	}
	if err := cmp.Or(c.fillMethods(), c.fillHonoured()); err != nil {
		return err
	}
	c.randomKeys = c.NewKey == nil
	if err := c.fillReader(); err != nil {
		return err
	}
	if c.Transport == nil {
		c.Transport = defaultTransport()
	}
	if err := c.fillProfiles(); err != nil {
		return err
	}
	return c.check()
}

// fillBounds sets the default of each bound that is zero. Errors name the field.
func (c *Config) fillBounds() error {
	err := c.Retry.fill()
	positive(&err, "MaxRequestBytes", &c.MaxRequestBytes, defaultMaxRequestBytes)
	positive(&err, "MaxRequestHeaderBytes", &c.MaxRequestHeaderBytes, defaultMaxHeaderBytes)
	positive(&err, "MaxResponseBytes", &c.MaxResponseBytes, defaultMaxResponseBytes)
	positive(&err, "MaxResponseHeaderBytes", &c.MaxResponseHeaderBytes, defaultMaxHeaderBytes)
	positive(&err, "ResumeWorkers", &c.ResumeWorkers, defaultResumeWorkers)
	positive(&err, "OriginWorkers", &c.OriginWorkers, max(c.ResumeWorkers-max(c.ResumeWorkers/8, 1), 1))
	positive(&err, "EnqueueMaxAge", &c.EnqueueMaxAge, defaultEnqueueMaxAge)
	positive(&err, "ClockSkew", &c.ClockSkew, defaultClockSkew)
	positive(&err, "Lease", &c.Lease, defaultLease)
	return err
}

// fillReader makes the reader of requests.
func (c *Config) fillReader() error {
	c.SecretHeaders, c.SecretParameters = slices.Clone(c.SecretHeaders), slices.Clone(c.SecretParameters)
	c.KeepFields = slices.Clone(c.KeepFields)
	c.reader = request.Reader{
		Account: c.Account, MaxBodyBytes: c.MaxRequestBytes, MaxHeaderBytes: c.MaxRequestHeaderBytes, RequireKey: c.RequireKey,
		NewKey: c.makeKey(), Credential: c.Credential, Region: c.Region,
		Secrets: request.Secrets{
			KeepHeader: c.KeepHeader, Headers: c.SecretHeaders, Parameters: c.SecretParameters,
		},
		KeyHonoured: c.honoured, BasePath: c.BasePath, KeepFields: c.KeepFields, Pauses: c.Retry.pauses(), AskFirst: c.Retry.AskFirst, Producer: c.producer(),
		Crashed: func(ctx context.Context, value any, stack []byte) {
			c.logCrash(ctx, "the body of a request has crashed, and its caller has left", "", &crash{value, stack})
		},
	}
	if c.restricted() {
		c.reader.Allowed = c.originAllowed
	}
	if err := c.reader.Secrets.CheckPointers(c.KeepFields); err != nil {
		return fmt.Errorf("in KeepFields: %w", err)
	}
	return nil
}

// makeKey returns NewKey as the reader of requests calls it.
func (c *Config) makeKey() func(*http.Request) (key string, business bool, err error) {
	newKey := c.NewKey
	if c.randomKeys {
		return func(*http.Request) (string, bool, error) { return string(RandomKey()), false, nil }
	}
	return func(req *http.Request) (string, bool, error) {
		var made madeKey
		if inflight.From(req.Context()).Names(c) {
			return "", false, errNamesItself
		}
		work := inflight.NewNaming(req.Context(), c)
		defer work.End()
		key, err := newKey(req.WithContext(context.WithValue(work.Context(req.Context()), madeKeyName{}, &made)))
		if err != nil && made.unread {
			err = request.UnreadKey{Cause: err}
		}
		return string(key), made.business, err
	}
}

// errNamesItself refuses a request that NewKey asks for and that has no key: it would be asked for that, too, and so on for ever.
var errNamesItself = errors.New("NewKey makes a request through its client, which needs a key of its own")

// keeping returns Record.KeepAnswer and Record.KeepKey of an operation of this client. It takes no key away within the window,
// also where Config.ProfileOf gave the profile.
func (c *Config) keeping(window time.Duration) (answer, key time.Duration) {
	answer, key = cmp.Or(c.KeepAnswer, window, -1), c.KeepKey
	if key > 0 || key < 0 && answer < window {
		key = max(key, window)
	}
	return answer, key
}

// journals reports whether requests of this method are journaled without a key of their own.
func (c *Config) journals(method string) bool { return slices.Contains(c.Methods, method) }

// keepAnswer takes out of an answer to the request of a record what is not recorded: what is a credential for this client or for whoever
// began the record, and headers and body where the headers are too large. As after an answer with too large a body, the server is then
// asked again.
func (c *Config) keepAnswer(rec *persist.Record, a *persist.Answer) {
	a.Header = c.reader.Secrets.KeptHeader(a.Header)
	if c.KeepHeader != nil || request.NamesSecrets(rec) {
		a.Header = request.KeptBy(rec, a.Header)
	}
	if request.HeaderBytes(a.Header) > c.MaxResponseHeaderBytes {
		a.Header, a.BodyDropped = nil, true
	}
	if a.BodyDropped {
		a.Body = nil
	}
}

// defaultTransport keeps enough idle connections: the two per host of
// http.DefaultTransport cost a third of the throughput at 64 workers.
func defaultTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // another was put in its place
		t = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	}
	t = t.Clone()
	t.MaxIdleConns = 1024
	t.MaxIdleConnsPerHost = 256
	return t
}

// patience is how long a wait lets a call be in one function of the Config, the Transport included. An attempt that its own timeout
// ends is over before.
func (c *Config) patience() time.Duration { return c.Retry.AttemptTimeout + c.Retry.AttemptTimeout/8 }

// wireLimits are the bounds of one attempt.
func (c *Config) wireLimits() wire.Limits {
	return wire.Limits{
		AttemptTimeout: c.Retry.AttemptTimeout, AnswerTimeout: c.Retry.AnswerTimeout,
		BodyBytes: c.MaxResponseBytes, Hops: hopsMax,
	}
}
