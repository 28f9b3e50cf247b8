package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/authorized"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Config has the fields of oncehttp.Config, documented there. New fills in the defaults of zero fields.
type Config struct {
	Journal                         persist.Journal
	Account                         string
	Credential, Region              string
	Profile                         *profile.Profile
	ProfileByHost                   map[string]*profile.Profile
	ProfileOf                       func(persist.Record) *profile.Profile
	Retry                           Policy
	Transport                       http.RoundTripper
	Operation                       func(*http.Request) bool
	Methods                         []string
	KeyHonoured                     []string
	BasePath                        string
	RequireKey                      bool
	InsertKey                       bool
	NewKey                          func(*http.Request) (MadeKey, error) // nil: random keys
	ReadsKey                        bool                                 // NewKey is one of oncehttp.KeyFromJSON: it reads, and calls nobody
	Token                           func(ctx context.Context, rec persist.Record) (string, error)
	Authorize                       func(*http.Request) error
	Origins                         []string
	OriginAllowed                   func(origin string) bool
	Reconcile                       func(context.Context, persist.Record) (Resolution, error)
	OnResult                        func(context.Context, persist.Record) error
	Observe                         func(context.Context, *Event)
	Instrument                      Instrument
	Logger                          *slog.Logger
	KeepHeader                      func(name string) bool
	SecretHeaders, SecretParameters []string
	KeepFields                      []string
	DropAnswer                      []string
	MaxRequestBytes                 int64
	MaxRequestHeaderBytes           int64
	MaxResponseBytes                int64
	MaxResponseHeaderBytes          int64
	ResumeWorkers                   int
	OriginWorkers                   int
	ResultWorkers                   int
	Limiter                         func(origin string) Limiter
	EnqueueMaxAge                   time.Duration
	KeepAnswer                      time.Duration
	KeepRequest                     RequestKeeping
	KeepKey                         time.Duration
	KeepText                        time.Duration
	ClockSkew                       time.Duration
	Lease                           time.Duration

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

// positive sets *v to def if *v is zero. A negative *v is an error with its name.
func positive[T int | int64 | time.Duration](errp *error, name string, v *T, def T) {
	switch {
	case *v == 0:
		*v = def
	case *v < 0 && *errp == nil:
		*errp = fmt.Errorf("%s is %v; want zero for the default of %v, or more", name, *v, def)
	}
}

// fill sets the defaults and returns an error for the first mistake. c is the client's own copy.
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
	positive(&err, "ResultWorkers", &c.ResultWorkers, defaultResultWorkers)
	positive(&err, "OriginWorkers", &c.OriginWorkers, max(c.ResumeWorkers-max(c.ResumeWorkers/8, 1), 1))
	positive(&err, "EnqueueMaxAge", &c.EnqueueMaxAge, defaultEnqueueMaxAge)
	positive(&err, "ClockSkew", &c.ClockSkew, defaultClockSkew)
	positive(&err, "Lease", &c.Lease, lease.Usual)
	return err
}

// fillReader makes the reader of requests.
func (c *Config) fillReader() error {
	c.SecretHeaders, c.SecretParameters = slices.Clone(c.SecretHeaders), slices.Clone(c.SecretParameters)
	c.KeepFields, c.DropAnswer = slices.Clone(c.KeepFields), slices.Clone(c.DropAnswer)
	c.reader = request.Reader{
		Account: c.Account, MaxBodyBytes: c.MaxRequestBytes, MaxHeaderBytes: c.MaxRequestHeaderBytes, RequireKey: c.RequireKey,
		NewKey: c.makeKey(), InsertKey: c.InsertKey, MakesBusiness: c.ReadsKey, Credential: c.Credential, Region: c.Region,
		Secrets: request.Secrets{
			KeepHeader: c.KeepHeader, Headers: c.SecretHeaders, Parameters: c.SecretParameters,
		},
		KeyHonoured: c.honoured, BasePath: c.BasePath, KeepFields: c.KeepFields, DropAnswer: c.DropAnswer, Results: c.OnResult != nil, Pauses: c.Retry.pauses(), AskFirst: c.Retry.AskFirst, Producer: c.producer(),
		Crashed: func(ctx context.Context, value any, stack []byte) {
			c.logCrash(ctx, "the body of a request has crashed, and its caller has left", "", &crash{value: value, stack: stack})
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

// MadeKey is a key made by Config.NewKey.
type MadeKey struct {
	Key      string
	Business bool // the same request always gets this key
	Unread   bool // beside an error: the body with the key could not be read
}

// makeKey returns NewKey in the form for the reader of requests.
func (c *Config) makeKey() func(*http.Request) (key string, business bool, err error) {
	newKey := c.NewKey
	if c.randomKeys {
		return func(*http.Request) (string, bool, error) { return uuid.NewString(), false, nil }
	}
	return func(req *http.Request) (string, bool, error) {
		if inflight.From(req.Context()).Names(c) {
			return "", false, errNamesItself
		}
		work := inflight.NewNaming(req.Context(), c)
		defer work.End()
		made, err := newKey(req.WithContext(work.Context(req.Context())))
		if err != nil && made.Unread {
			err = request.UnreadKey{Cause: err}
		}
		return made.Key, made.Business, err
	}
}

// errNamesItself refuses a request made by NewKey without a key: NewKey would be asked for a key again, and so on for ever.
var errNamesItself = errors.New("NewKey makes a request through its client, which needs a key of its own")

// keeping returns Record.KeepAnswer, Record.KeepKey and Record.KeepText of an operation of this client. It takes no key and no text away within the
// window, also if Config.ProfileOf gave the profile.
func (c *Config) keeping(window time.Duration) (answer, key, text time.Duration) {
	answer, key, text = cmp.Or(c.KeepAnswer, window, -1), c.KeepKey, c.KeepText
	for _, keep := range []*time.Duration{&key, &text} {
		if *keep > 0 || *keep < 0 && answer < window {
			*keep = max(*keep, window)
		}
	}
	return answer, key, text
}

// journals reports whether requests of this method are journaled without a key of their own.
func (c *Config) journals(method string) bool { return slices.Contains(c.Methods, method) }

// keepAnswer takes the parts not to be recorded out of an answer to the request of a record. These are the credentials, as this client or
// the beginner of the record names them, the members at DropAnswer of this client and of the record, and headers and body if the headers are too large. As after an answer with too large a body, the
// server is then asked again.
func (c *Config) keepAnswer(rec *persist.Record, a *persist.Answer) {
	a.Header = c.reader.Secrets.KeptHeader(a.Header)
	if c.KeepHeader != nil || request.NamesSecrets(rec) {
		a.Header = request.KeptBy(rec, a.Header)
	}
	if request.HeaderBytes(a.Header) > c.MaxResponseHeaderBytes {
		a.Header, a.BodyDropped = nil, true
	}
	if c.dropMembers(rec, a); a.BodyDropped {
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

// patience is the longest time in one function of the Config, the Transport included, before a wait for the call gives up. An attempt
// ended by its own timeout is over before.
func (c *Config) patience() time.Duration { return c.Retry.AttemptTimeout + c.Retry.AttemptTimeout/8 }

// leaseHost returns the client as its leases see it.
func (c *Config) leaseHost() *lease.Host {
	return &lease.Host{
		Length: c.Lease, Sending: c.Retry.sending(), Skew: c.ClockSkew,
		Log: func(ctx context.Context, level slog.Level, msg string, err error, more ...slog.Attr) {
			c.log(ctx, level, msg, "", err, more...)
		},
		Guard: func(ctx context.Context, doing string, f func()) { _ = c.guard(ctx, doing, f) },
	}
}

// wireLimits are the bounds of one attempt.
func (c *Config) wireLimits() wire.Limits {
	return wire.Limits{
		AttemptTimeout: c.Retry.AttemptTimeout, AnswerTimeout: c.Retry.AnswerTimeout,
		BodyBytes: c.MaxResponseBytes, Hops: hopsMax,
	}
}
