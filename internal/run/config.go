package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/authorized"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Config has the fields of oncehttp.Config, documented there. New fills in the defaults of zero fields.
type Config struct {
	// Journal keeps the operations. The client reaches it through erasedNames only.
	Journal persist.Journal
	// Account is the base of the accounts of this client's operations.
	Account string
	// Credential and Region pin new operations. A record with others is not for this client: see gate.has.
	Credential, Region string
	// Profile is the profile of each host that ProfileByHost does not name.
	Profile *profile.Profile
	// ProfileByHost has the profiles of single hosts, spelled as request.Hosts does.
	ProfileByHost map[string]*profile.Profile
	// ProfileOf may know the profile of a record whose profile this client does not know; nil: nobody else knows one.
	ProfileOf func(persist.Record) *profile.Profile
	// Retry bounds the attempts of one run.
	Retry Policy
	// Transport makes each attempt. countVisits puts one around it that counts the sends under way.
	Transport http.RoundTripper
	// Operation declares requests of Transport as operations; nil: none.
	Operation func(*http.Request) bool
	// Methods are the methods of operations without a key in the request.
	Methods []string
	// KeyHonoured lists endpoints as "METHOD /path". fill reads them into honoured.
	KeyHonoured []string
	// BasePath is cut off the paths of requests before they are compared with endpoints.
	BasePath string
	// RequireKey refuses requests without a key, so that NewKey is never asked.
	RequireKey bool
	// InsertKey puts a key into a body, a form or a query that lacks it.
	InsertKey bool
	// NewKey makes the key of a request without one; nil: random keys.
	NewKey func(*http.Request) (MadeKey, error)
	// ReadsKey: NewKey is one of oncehttp.KeyFromJSON. It reads, and calls nobody.
	ReadsKey bool
	// Token gets the token of an operation from the API, for a profile whose Token has no Path.
	Token func(ctx context.Context, rec persist.Record) (string, error)
	// Authorize adds credentials to each request about to be sent; nil: the caller's request has them.
	Authorize func(*http.Request) error
	// Origins are the origins of operations, and of credentials: see gate. An empty list that is not nil is for a client that sends nothing.
	Origins []string
	// OriginAllowed allows origins beside those of Origins; nil: none.
	OriginAllowed func(origin string) bool
	// Reconcile is asked about held operations in a pass; nil: they stay held.
	Reconcile func(context.Context, persist.Record) (Resolution, error)
	// OnResult gets the results that no Do returned. Each new record says whether its client has one.
	OnResult func(context.Context, persist.Record) error
	// Observe gets each event in the goroutine of its step. The event is valid until Observe returns, since all events of a run share one.
	Observe func(context.Context, *Event)
	// Instrument gets the begin and the end of runs and attempts; nil: nobody is told.
	Instrument Instrument
	// Logger gets the lines for an operator; nil: none but the two warnings of slog.Default.
	Logger *slog.Logger
	// KeepHeader keeps headers that are called like a credential; nil: none.
	KeepHeader func(name string) bool
	// SecretHeaders and SecretParameters name further credentials. The recipe of each record repeats them.
	SecretHeaders, SecretParameters []string
	// KeepFields are pointers to the values of a request that outlive its body.
	KeepFields []string
	// DropAnswer are pointers to the members of answers that no record keeps.
	DropAnswer []string
	// MaxRequestBytes bounds the body of an operation's request.
	MaxRequestBytes int64
	// MaxRequestHeaderBytes bounds the target and the headers of an operation's request.
	MaxRequestHeaderBytes int64
	// MaxResponseBytes bounds the body of an answer in memory and in the record. The rest streams to the caller.
	MaxResponseBytes int64
	// MaxResponseHeaderBytes bounds the headers of a recorded answer. Over it, the status alone is recorded.
	MaxResponseHeaderBytes int64
	// ResumeWorkers is the number of runs of a pass at the same time.
	ResumeWorkers int
	// OriginWorkers bounds those to one origin in a fair pass.
	OriginWorkers int
	// ResultWorkers is the number of calls of OnResult at the same time.
	ResultWorkers int
	// Limiter returns the limiter of an origin; nil, or a nil limiter: no limit.
	Limiter func(origin string) Limiter
	// EnqueueMaxAge is the time for the first send of an enqueued operation.
	EnqueueMaxAge time.Duration
	// KeepAnswer is the time for which a new record keeps its answer; zero: the profile's window.
	KeepAnswer time.Duration
	// KeepRequest tells when a new record loses the body of its request.
	KeepRequest RequestKeeping
	// KeepKey is the time for which a new record remembers its key; zero: for ever.
	KeepKey time.Duration
	// KeepText is the time for which it remembers it with its text; zero: as long as the key.
	KeepText time.Duration
	// ClockSkew is the error allowed to the clock by which windows are judged.
	ClockSkew time.Duration
	// Lease is the length of this client's leases. Those of other clients may differ.
	Lease time.Duration

	reader     request.Reader // made of the above by fill
	randomKeys bool           // NewKey is RandomKey
	// methodsSet: Methods was set. methodsHold: through Transport, too, its methods are operations. profileSet: Profile was set.
	methodsSet, methodsHold, profileSet bool
	origins                             *request.Origins   // of Origins; nil: there are none
	authorized                          *authorized.Client // the origins to which others send with Authorize; New sets it
	instrumenting                       *atomic.Int64      // running calls of Instrument; New sets it
	facts                               []knownFacts       // of the profiles
	honoured                            []profile.Endpoint // of KeyHonoured
	drives                              operation.Client   // made of the above by fill
}

// Limiter is oncehttp.Limiter.
type Limiter interface {
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
	defaultResultWorkers    = 4
	defaultEnqueueMaxAge    = 24 * time.Hour
	defaultClockSkew        = time.Minute
	leaseMin                = 100 * time.Millisecond

	keptBytesMax = 1 << 30
	hopsMax      = 3 // same-origin 307 and 308 within one attempt
)

// positive sets *v to def if *v is zero. If *v is negative, it sets *errp to an error with the name of the field, unless *errp is an error already: the first one
// counts.
func positive[T int | int64 | time.Duration](errp *error, name string, v *T, def T) {
	switch {
	case *v == 0:
		*v = def
	case *v < 0 && *errp == nil:
		*errp = fmt.Errorf("%s is %v; want zero for the default of %v, or more", name, *v, def)
	}
}

// profiles returns the profiles (the facts about each API) that this client's Config names, ready to be looked up by URL.
func (c *Config) profiles() clientProfiles { return clientProfiles{c} }

// gate returns the check of this client's means: whether it can act on operations of an origin.
func (c *Config) gate() gate { return gate{c} }

// fill sets the defaults and returns an error for the first mistake. c is the client's own copy.
func (c *Config) fill() error {
	switch {
	case c.Journal == nil:
		return errors.New("no Journal")
	case isNil(c.Journal):
		return fmt.Errorf("the Journal is a nil %T; open it first", c.Journal)
	}
	// Before the defaults: it looks at the times as they were given.
	units := checkUnits(c)
	if err := cmp.Or(fillBounds(c), checkBounds(c), units); err != nil {
		return err
	}
	c.drives = driveLimits(c)
	if err := cmp.Or(checkPin(c), fillOrigins(c)); err != nil {
		return err
	}
	if err := cmp.Or(fillMethods(c), fillHonoured(c)); err != nil {
		return err
	}
	c.randomKeys = c.NewKey == nil
	if err := fillReader(c); err != nil {
		return err
	}
	if c.Transport == nil {
		c.Transport = defaultTransport()
	}
	if err := fillProfiles(c); err != nil {
		return err
	}
	return checkConfig(c)
}

// fillBounds sets the default of each bound that is zero. An origin may have all workers but an eighth: one slow origin leaves some to the others. Errors name the
// field.
func fillBounds(c *Config) error {
	err := c.Retry.fill()
	positive(&err, "MaxRequestBytes", &c.MaxRequestBytes, defaultMaxRequestBytes)
	positive(&err, "MaxRequestHeaderBytes", &c.MaxRequestHeaderBytes, defaultMaxHeaderBytes)
	positive(&err, "MaxResponseBytes", &c.MaxResponseBytes, defaultMaxResponseBytes)
	positive(&err, "MaxResponseHeaderBytes", &c.MaxResponseHeaderBytes, defaultMaxHeaderBytes)
	positive(&err, "ResumeWorkers", &c.ResumeWorkers, defaultResumeWorkers)
	positive(&err, "ResultWorkers", &c.ResultWorkers, defaultResultWorkers)
	positive(&err, "OriginWorkers", &c.OriginWorkers, max(c.ResumeWorkers-max(c.ResumeWorkers/8, 1), 1))
	positive(&err, "EnqueueMaxAge", &c.EnqueueMaxAge, defaultEnqueueMaxAge)
	positive(&err, "ClockSkew", &c.ClockSkew, defaultClockSkew)
	positive(&err, "Lease", &c.Lease, lease.Usual)
	return err
}

// fillReader makes the reader of requests from the checked Config. It turns a request into the parts of a record.
func fillReader(c *Config) error {
	c.SecretHeaders, c.SecretParameters = slices.Clone(c.SecretHeaders), slices.Clone(c.SecretParameters)
	c.KeepFields, c.DropAnswer = slices.Clone(c.KeepFields), slices.Clone(c.DropAnswer)
	c.reader = request.Reader{
		Account: c.Account, MaxHeaderBytes: c.MaxRequestHeaderBytes,
		Bodies: request.Bodies{
			Max: c.MaxRequestBytes,
			Crashed: func(ctx context.Context, value any, stack []byte) {
				c.logCrash(ctx, "the body of a request has crashed, and its caller has left", "", &crash{value: value, stack: stack})
			},
		},
		Keys:       request.Keys{Required: c.RequireKey, New: makeKey(c), Insert: c.InsertKey, MakesBusiness: c.ReadsKey},
		Secrets:    request.Secrets{KeepHeader: c.KeepHeader, Headers: c.SecretHeaders, Parameters: c.SecretParameters},
		Endpoints:  request.Endpoints{Honoured: c.honoured, BasePath: c.BasePath},
		Credential: c.Credential, Region: c.Region, Results: c.OnResult != nil, Pauses: c.Retry.pauses(), AskFirst: c.Retry.AskFirst,
		KeepFields: c.KeepFields, DropAnswer: c.DropAnswer, Producer: c.gate().producer(),
	}
	if c.gate().restricted() {
		c.reader.Allowed = c.gate().allows
	}
	if err := c.reader.Secrets.CheckPointers(c.KeepFields); err != nil {
		return fmt.Errorf("in KeepFields: %w", err)
	}
	return nil
}

// MadeKey is a key made by Config.NewKey.
type MadeKey struct {
	Key      string // not empty, unless NewKey returns an error
	Business bool   // the same request always gets this key
	Unread   bool   // beside an error: the body with the key could not be read
}

// makeKey returns Config.NewKey in the form for the reader of requests; without NewKey, a function that makes random keys. business: the key is made of business
// data, and not random, so that the same request gets it again.
func makeKey(c *Config) func(*http.Request) (key string, business bool, err error) {
	newKey := c.NewKey
	if c.randomKeys {
		return func(*http.Request) (string, bool, error) { return uuid.NewString(), false, nil }
	}
	return func(req *http.Request) (string, bool, error) {
		// NewKey has made this request itself: asked about it, it would make one more, without an end.
		if inflight.From(req.Context()).Names(c) {
			return "", false, errNamesItself
		}
		// By its context a call that NewKey makes shows that it comes from here.
		work := inflight.NewNaming(req.Context(), c)
		defer work.End()
		made, err := newKey(req.WithContext(work.Context(req.Context())))
		// The body could not be read: the caller is told so, and not of a fault of the key.
		if err != nil && made.Unread {
			err = request.UnreadKey{Cause: err}
		}
		return made.Key, made.Business, err
	}
}

// errNamesItself refuses a request made by NewKey without a key: NewKey would be asked for a key again, and so on for ever.
var errNamesItself = errors.New("NewKey makes a request through its client, which needs a key of its own")

// keeping returns the times for which this client's records keep their answer, key and text after their end. window is that of the operation's
// profile, the time for which the server knows a key: no key or text goes within it. Nor does a key go before EnqueueMaxAge, since an enqueued next try may be sent until then.
func (c *Config) keeping(window time.Duration) intent.Keeping {
	return intent.Keeping{Answer: c.KeepAnswer, Key: c.KeepKey, Text: c.KeepText}.Within(window, c.EnqueueMaxAge)
}

// keeps sets KeepAnswer, KeepKey and KeepText of the record of a new operation: how long its answer, its key and the key's text stay after
// its end. at holds the facts behind KeepKey, all but the key, which is taken from rec.
func (c *Config) keeps(rec *persist.Record, at intent.KeysPlace) {
	keep := c.keeping(rec.Window)
	rec.KeepAnswer, rec.KeepText = keep.Answer, keep.Text
	c.keepsKey(rec, at)
}

// keepsKey sets KeepKey, the time for which the key of a new operation is kept after its end. It is called once the account of the record is chosen
// (at), since the time depends on it.
func (c *Config) keepsKey(rec *persist.Record, at intent.KeysPlace) {
	at.Key = rec.Key
	rec.KeepKey = at.KeepsKey(c.keeping(rec.Window).Key)
}

// listsMethod reports whether a method is one of Methods in any letter case. A request with another letter case is an operation, and is
// refused.
func (c *Config) listsMethod(method string) bool {
	return slices.ContainsFunc(c.Methods, func(m string) bool { return strings.EqualFold(m, method) })
}

// journals reports whether Config.Methods has the method: then a request without a key of its own becomes an operation, too. Other requests without a
// key are sent as they are.
func (c *Config) journals(method string) bool { return slices.Contains(c.Methods, method) }

// keepAnswer takes the parts not to be recorded out of an answer to the request of a record. These are the credentials, as this client or
// the beginner of the record names them, the members at DropAnswer of this client and of the record, and headers and body if the headers are too large. As after an answer with too large a body, the
// server is then asked again.
func (c *Config) keepAnswer(rec *persist.Record, a *persist.Answer) {
	a.Header = c.reader.Secrets.KeptHeader(a.Header)
	// Else both have the same rules, and the line above has applied them.
	if c.KeepHeader != nil || request.NamesSecrets(rec) {
		a.Header = request.KeptBy(rec, a.Header)
	}
	if request.HeaderBytes(a.Header) > c.MaxResponseHeaderBytes {
		a.Header, a.BodyDropped = nil, true
	}
	if dropMembers(c, rec, a); a.BodyDropped {
		a.Body, a.Dropped = nil, nil
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

// leaseHost returns the parts of the client that its leases use: their length, the longest send, the logger, and the guard against crashes.
func (c *Config) leaseHost() *lease.Host {
	return &lease.Host{
		Length: c.Lease, Sending: c.Retry.sending(), Skew: c.ClockSkew,
		Log: func(ctx context.Context, level slog.Level, msg string, err error, more ...slog.Attr) {
			c.log(ctx, level, msg, "", err, more...)
		},
		Guard: func(ctx context.Context, doing string, f func()) { _ = c.guard(ctx, doing, f) },
	}
}
