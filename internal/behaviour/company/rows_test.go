package company_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// change sets fields of one client's Config.
type change func(*cell, *oncehttp.Config)

// row is a difference between two clients. Its name begins with the field of Config, or of Policy after "Retry.".
type row struct {
	one, other change // of the two clients; nil: as the base
	both       change // of each, before that
	// stuck reports whether the runner cannot send what the beginner began. Zero: each can send what any began.
	stuck func(beginner, runner int) bool
	// lease is the longest lease of the two clients. Zero: the default.
	lease time.Duration
	// more is how much longer than its pause an operation may wait.
	more time.Duration
	// forgets: what the client with the one Config has begun is new again after the window.
	forgets bool
	// expires: the time for a first send may be over. holds: a record may wait for a person. unanswered: the caller may get no answer.
	expires, holds, unanswered bool
	// without lists acts, and scenarios, that the row leaves out, with the reason.
	without map[string]string
}

const (
	one   = 0
	other = 1
)

// only returns a stuck for a side that cannot send what the other began.
func only(can int) func(beginner, runner int) bool {
	return func(beginner, runner int) bool { return beginner == can && runner != can }
}

// each is a stuck for clients that send only their own.
func each(beginner, runner int) bool { return beginner != runner }

// never returns a stuck for a side that sends nothing at all.
func never(side int) func(beginner, runner int) bool {
	return func(_, runner int) bool { return runner == side }
}

// named is the profile of the API under another name.
func named(name string, changes ...func(*profile.Profile)) change {
	return func(_ *cell, cfg *oncehttp.Config) {
		p := baseProfile()
		p.Name = name
		for _, f := range changes {
			f(p)
		}
		cfg.Profile = p
	}
}

// duplicate is how the API says that a reference was used before.
var duplicate = []profile.Matcher{{Status: []int{409}, Pointer: "/error/code", Equals: []string{"duplicate_order"}}}

// withProfile changes facts of the profile, under its name.
func withProfile(f func(*profile.Profile)) change { return named("shop", f) }

// carries gives the client's requests what a record leaves out. The account is named, so that what is a credential for one of the
// two does not already tell their requests apart.
func carries(_ *cell, cfg *oncehttp.Config) {
	cfg.Account = "shop"
	cfg.Authorize = func(req *http.Request) error {
		if req.Header.Get("X-Tenant") == "" {
			req.Header.Set("X-Tenant", "t1")
		}
		if req.URL.RawQuery == "" && req.Method == http.MethodPost {
			req.URL.RawQuery = "n=1"
		}
		return nil
	}
}

// policy sets fields of the Policy.
func policy(f func(*oncehttp.Policy)) change {
	return func(_ *cell, cfg *oncehttp.Config) { f(&cfg.Retry) }
}

// set sets a field of the Config.
func set(f func(*oncehttp.Config)) change {
	return func(_ *cell, cfg *oncehttp.Config) { f(cfg) }
}

// limiter is a Config.Limiter that lets each send wait, or refuses it.
type limiter struct {
	wait time.Duration
	err  error
}

func (l limiter) Wait(ctx context.Context) error {
	select {
	case <-time.After(l.wait):
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// limited gives a client that limiter.
func limited(l limiter) change {
	return set(func(cfg *oncehttp.Config) { cfg.Limiter = func(string) oncehttp.Limiter { return l } })
}

// deadProxy reaches no server.
type deadProxy struct{}

func (deadProxy) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.GetConn(req.URL.Host)
	}
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

// rows are the rows of the matrix: one for each field, and more where it can differ in more ways.
func rows() map[string]row {
	all := map[string]row{}
	for _, some := range []map[string]row{whoRows(), profileRows(), keyRows(), userRows(), secretRows(), boundRows(), policyRows(), pairRows()} {
		for name, r := range some {
			all[name] = r
		}
	}
	return all
}

// whoRows are about whose an operation is, and where it belongs.
func whoRows() map[string]row {
	hash := func(of string) change {
		return func(c *cell, cfg *oncehttp.Config) {
			cfg.Credential, cfg.Transport = oncehttp.CredentialHash(of), regional{c.server, of}
		}
	}
	region := func(of string) change {
		return func(c *cell, cfg *oncehttp.Config) { cfg.Region, cfg.Transport = of, regional{c.server, of} }
	}
	otherOnly := "they act for other customers: what one of them is asked for without the other's account is another intent"
	return map[string]row{
		"Account": {
			one: set(func(cfg *oncehttp.Config) { cfg.Account = "shop" }), stuck: each,
			without: map[string]string{"repeats without a key": otherOnly, "repeats": otherOnly, "another request under the key": otherOnly}, unanswered: true,
		},
		"Credential": {one: hash("a"), other: hash("b"), stuck: each, unanswered: true},
		"Credential/or none": {
			one: hash("a"), other: func(c *cell, cfg *oncehttp.Config) { cfg.Transport = regional{c.server, "a"} }, stuck: only(one), unanswered: true,
		},
		"Region": {one: region("eu"), other: region("us"), stuck: each, unanswered: true},
		"Origins": {
			other: barred([]string{}), stuck: never(other), unanswered: true,
		},
		"Origins/elsewhere": {
			other: barred([]string{"https://other.example.com"}), stuck: never(other), unanswered: true,
		},
		"OriginAllowed": {
			both: set(func(cfg *oncehttp.Config) { cfg.Origins = []string{"https://other.example.com"} }), stuck: never(other), unanswered: true,
			one:   set(func(cfg *oncehttp.Config) { cfg.OriginAllowed = func(o string) bool { return o == origin+":443" } }),
			other: barred([]string{"https://other.example.com"}),
		},
		"Transport": {
			other: set(func(cfg *oncehttp.Config) { cfg.Transport = deadProxy{} }), stuck: never(other), unanswered: true,
		},
	}
}

// forgetful: where the client with the shorter window begins, that is the true one.
func forgetful(c *cell, _ *oncehttp.Config) {
	if c.side(0) == one {
		c.server.configure(func(s *server) { s.window = time.Hour })
	}
}

// barred sets the origins of a client that must send nothing to the API.
func barred(origins []string) change {
	return func(c *cell, cfg *oncehttp.Config) { cfg.Origins, cfg.Transport = origins, bar{c} }
}

// bar is the transport of a client that must not send.
type bar struct{ c *cell }

func (b bar) RoundTrip(req *http.Request) (*http.Response, error) {
	b.c.Errorf("a client sends to %s, which is none of its origins", req.URL.Host)
	return b.c.server.RoundTrip(req)
}

// profileRows are about the profile.
func profileRows() map[string]row {
	hosts := set(func(cfg *oncehttp.Config) {
		p := baseProfile()
		p.Name = "hosted"
		cfg.ProfileByHost = map[string]*profile.Profile{"api.example.com": p}
	})
	return map[string]row{
		"Profile/another":       {one: named("one"), other: named("two"), stuck: each, unanswered: true},
		"Profile/window":        {both: forgetful, one: withProfile(func(p *profile.Profile) { p.Window.Floor = time.Hour }), expires: true, unanswered: true},
		"Profile/carrier":       {one: withProfile(func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Nowhere} }), holds: true, unanswered: true},
		"Profile/fingerprint":   {one: withProfile(func(p *profile.Profile) { p.Fingerprint = []string{"Content-Type"} }), unanswered: true},
		"Profile/in progress":   {one: withProfile(func(p *profile.Profile) { p.InProgress = nil }), holds: true},
		"Profile/stored":        {one: withProfile(func(p *profile.Profile) { p.Stored = profile.Stored{} }), unanswered: true},
		"Profile/minimum delay": {one: withProfile(func(p *profile.Profile) { p.MinDelay = 10 * time.Second })},
		"Profile/account header": {
			both: func(c *cell, _ *oncehttp.Config) { c.headers = map[string]string{"Stripe-Account": "acct_1"} },
			one:  withProfile(func(p *profile.Profile) { p.AccountHeaders = []string{"Stripe-Account"} }), unanswered: true,
		},
		"ProfileByHost": {one: hosts, stuck: only(one), unanswered: true},
		"ProfileOf": {
			one: named("one"), other: set(func(cfg *oncehttp.Config) {
				cfg.ProfileOf = func(persist.Record) *profile.Profile {
					p := baseProfile()
					p.Name = "one"
					return p
				}
			}), stuck: only(other), unanswered: true,
		},
	}
}

// keyRows are about keys.
func keyRows() map[string]row {
	pointer := func(p string) change {
		return set(func(cfg *oncehttp.Config) { cfg.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), p) })
	}
	tokens := func(prefix string) change {
		return set(func(cfg *oncehttp.Config) {
			cfg.Token = func(_ context.Context, rec persist.Record) (string, error) { return prefix + rec.Key, nil }
		})
	}
	endpoints := func(text string) change {
		return named("endpoints", func(p *profile.Profile) {
			e, err := profile.ParseEndpoint(text)
			if err != nil {
				panic(err)
			}
			p.Endpoints = []profile.Endpoint{e}
		})
	}
	return map[string]row{
		"Operation": {one: set(func(cfg *oncehttp.Config) { cfg.Operation = oncehttp.Writes })},
		"Methods": {other: set(func(cfg *oncehttp.Config) { cfg.Methods = []string{"PATCH"} }), unanswered: true, without: map[string]string{
			"repeats without a key, the other begins": "without a key its POST is no operation, and nothing in the journal tells of it",
		}},
		"KeyHonoured": {
			both: endpoints("POST /elsewhere"), one: set(func(cfg *oncehttp.Config) { cfg.KeyHonoured = []string{"POST /v1/payments"} }), holds: true, unanswered: true,
		},
		"BasePath":        {both: endpoints("POST /payments"), one: set(func(cfg *oncehttp.Config) { cfg.BasePath = "/v1" }), holds: true, unanswered: true},
		"RequireKey":      {other: set(func(cfg *oncehttp.Config) { cfg.RequireKey = true }), unanswered: true},
		"InsertKey":       {one: set(func(cfg *oncehttp.Config) { cfg.InsertKey = true }), unanswered: true},
		"NewKey":          {other: pointer("/order"), unanswered: true},
		"NewKey/pointers": {one: pointer("/id"), other: pointer("/order"), unanswered: true},
		"Token": {
			both: named("tokens", func(p *profile.Profile) { p.Token = &profile.Token{} }), one: tokens("a"), other: tokens("b"),
		},
	}
}

// userRows are about functions of the user.
func userRows() map[string]row {
	return map[string]row{
		"Authorize": {
			both: func(c *cell, _ *oncehttp.Config) { c.server.configure(func(s *server) { s.auth = true }) },
			one: set(func(cfg *oncehttp.Config) {
				cfg.Authorize = func(req *http.Request) error { req.Header.Set("Authorization", "Bearer a"); return nil }
			}), stuck: never(other), unanswered: true,
		},
		"Reconcile": {one: func(c *cell, cfg *oncehttp.Config) {
			cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
				for _, o := range c.ops {
					if string(o.key) == rec.Key && c.server.happened(c.intent(o)) > 0 {
						return oncehttp.Resolution{Effect: persist.EffectHappened}, nil
					}
				}
				return oncehttp.Resolution{}, nil
			}
		}, unanswered: true},
		"OnResult":   {one: set(func(cfg *oncehttp.Config) { cfg.OnResult = func(context.Context, persist.Record) error { return nil } })},
		"Instrument": {one: set(func(cfg *oncehttp.Config) { cfg.Instrument = &clienttest.Spans{} })},
		"Observe":    {one: set(func(cfg *oncehttp.Config) { cfg.Observe = func(context.Context, oncehttp.Event) {} })},
		"Logger":     {one: set(func(cfg *oncehttp.Config) { cfg.Logger = slog.New(slog.DiscardHandler) })},
		"Limiter/refuses": {
			other: limited(limiter{err: errors.New("not now")}), stuck: never(other), unanswered: true,
		},
		"Limiter/waits": {
			other: limited(limiter{wait: 2 * time.Hour}), stuck: never(other), unanswered: true,
		},
	}
}

// secretRows are about what is a credential.
func secretRows() map[string]row {
	noted := func(req *http.Request) error {
		if req.Header.Get(noteHeader) == "" {
			req.Header.Set(noteHeader, "note")
		}
		return nil
	}
	return map[string]row{
		"KeepHeader": {
			both: func(c *cell, cfg *oncehttp.Config) {
				withProfile(func(p *profile.Profile) { p.Fingerprint = append(p.Fingerprint, noteHeader) })(c, cfg)
				cfg.Account = "shop"
				cfg.Authorize, c.headers = noted, map[string]string{noteHeader: "note"}
			},
			one: set(func(cfg *oncehttp.Config) {
				cfg.KeepHeader = func(name string) bool { return strings.EqualFold(name, noteHeader) }
			}), unanswered: true,
		},
		"SecretHeaders":    {both: carries, other: set(func(cfg *oncehttp.Config) { cfg.SecretHeaders = []string{"X-Tenant"} }), unanswered: true},
		"SecretParameters": {both: carries, other: set(func(cfg *oncehttp.Config) { cfg.SecretParameters = []string{"n"} }), unanswered: true},
		"KeepFields":       {one: set(func(cfg *oncehttp.Config) { cfg.KeepFields = []string{"/order"} })},
		"DropAnswer":       {one: set(func(cfg *oncehttp.Config) { cfg.DropAnswer = []string{"/secret"} }), other: set(func(cfg *oncehttp.Config) { cfg.DropAnswer = []string{"/other"} })},
	}
}

// boundRows are about bounds and times of the Config.
func boundRows() map[string]row {
	return map[string]row{
		"MaxRequestBytes":        {other: set(func(cfg *oncehttp.Config) { cfg.MaxRequestBytes = 10 }), unanswered: true},
		"MaxRequestHeaderBytes":  {other: set(func(cfg *oncehttp.Config) { cfg.MaxRequestHeaderBytes = 10 }), unanswered: true},
		"MaxResponseBytes":       {other: set(func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 100 }), unanswered: true},
		"MaxResponseHeaderBytes": {other: set(func(cfg *oncehttp.Config) { cfg.MaxResponseHeaderBytes = 5 }), unanswered: true},
		"ResumeWorkers":          {one: set(func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 1 })},
		"OriginWorkers":          {one: set(func(cfg *oncehttp.Config) { cfg.OriginWorkers = 1 })},
		"ResultWorkers":          {one: set(func(cfg *oncehttp.Config) { cfg.ResultWorkers = 1 })},
		"EnqueueMaxAge":          {one: set(func(cfg *oncehttp.Config) { cfg.EnqueueMaxAge = 2 * time.Second }), expires: true, unanswered: true},
		"KeepAnswer":             {one: set(func(cfg *oncehttp.Config) { cfg.KeepAnswer = -1 }), other: set(func(cfg *oncehttp.Config) { cfg.KeepAnswer = 100 * window }), unanswered: true},
		"KeepKey":                {one: set(func(cfg *oncehttp.Config) { cfg.KeepAnswer, cfg.KeepKey = window, -1 }), forgets: true, other: set(func(cfg *oncehttp.Config) { cfg.KeepKey = 100 * window }), unanswered: true},
		"KeepText":               {one: set(func(cfg *oncehttp.Config) { cfg.KeepAnswer, cfg.KeepText = window, -1 }), other: set(func(cfg *oncehttp.Config) { cfg.KeepText = 100 * window }), unanswered: true},
		"KeepRequest":            {one: set(func(cfg *oncehttp.Config) { cfg.KeepRequest = oncehttp.KeepRequestWithAnswer }), other: set(func(cfg *oncehttp.Config) { cfg.KeepRequest = oncehttp.DropRequestAfterEnd })},
		"ClockSkew":              {one: set(func(cfg *oncehttp.Config) { cfg.ClockSkew = time.Second }), other: set(func(cfg *oncehttp.Config) { cfg.ClockSkew = 2 * time.Hour })},
		"Lease":                  {one: set(func(cfg *oncehttp.Config) { cfg.Lease = 100 * time.Millisecond }), other: set(func(cfg *oncehttp.Config) { cfg.Lease = 10 * time.Minute }), lease: 10 * time.Minute},
	}
}

// policyRows are about the Policy.
func policyRows() map[string]row {
	timeout := func(attempt, answer time.Duration) change {
		return policy(func(p *oncehttp.Policy) { p.AttemptTimeout, p.AnswerTimeout = attempt, answer })
	}
	return map[string]row{
		"Retry.MaxAttempts":  {one: policy(func(p *oncehttp.Policy) { p.MaxAttempts = 1 }), other: policy(func(p *oncehttp.Policy) { p.MaxAttempts = 6 })},
		"Retry.MaxInFlight":  {one: policy(func(p *oncehttp.Policy) { p.MaxInFlight = 1 })},
		"Retry.SafeAttempts": {one: policy(func(p *oncehttp.Policy) { p.SafeAttempts = 1 })},
		"Retry.MaxElapsed":   {one: policy(func(p *oncehttp.Policy) { p.MaxElapsed = time.Second }), other: policy(func(p *oncehttp.Policy) { p.MaxElapsed = time.Hour })},
		"Retry.AttemptTimeout": {
			both: func(c *cell, _ *oncehttp.Config) { // no API takes longer than its clients wait, and finds it at once all the same
				if c.side(0) == other {
					c.server.configure(func(s *server) { s.takes = 15 * time.Minute })
				}
			},
			one: timeout(time.Second, 0), other: timeout(20*time.Minute, 0), unanswered: true, more: 20 * time.Minute,
		},
		"Retry.AnswerTimeout": {one: timeout(time.Second, 2*time.Second), other: timeout(time.Minute, time.Hour), unanswered: true},
		"Retry.MinDelay":      {one: policy(func(p *oncehttp.Policy) { p.MinDelay = time.Millisecond }), other: policy(func(p *oncehttp.Policy) { p.MinDelay = 30 * time.Second })},
		"Retry.MaxDelay":      {one: policy(func(p *oncehttp.Policy) { p.MaxDelay = 10 * time.Second }), other: policy(func(p *oncehttp.Policy) { p.MaxDelay = 8 * time.Hour })},
		"Retry.MaxRetryAfter": {one: policy(func(p *oncehttp.Policy) { p.MaxRetryAfter = time.Second }), other: policy(func(p *oncehttp.Policy) { p.MaxRetryAfter = time.Hour })},
		"Retry.MaxPause":      {one: policy(func(p *oncehttp.Policy) { p.MaxPause = time.Minute }), other: policy(func(p *oncehttp.Policy) { p.MaxDelay, p.MaxPause = 2*time.Hour, 8*time.Hour })},
		"Retry.NeverAskAgain": {
			both: set(func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 5 }), one: policy(func(p *oncehttp.Policy) { p.NeverAskAgain = true }), unanswered: true,
		},
		"Retry.AskFirst": {both: withProfile(func(p *profile.Profile) { p.Duplicate = duplicate }), one: policy(func(p *oncehttp.Policy) { p.AskFirst = true }), unanswered: true},
	}
}

// pairRows are differences in two fields at a time.
func pairRows() map[string]row {
	rows := map[string]row{}
	for _, pair := range [][2]string{
		{"KeepAnswer", "SecretHeaders"}, {"Retry.AttemptTimeout", "Profile/window"}, {"KeepKey", "NewKey"},
		{"Profile/account header", "NewKey"}, {"Limiter/refuses", "Retry.MaxDelay"},
	} {
		first, found := rowNamed(pair[0])
		second, also := rowNamed(pair[1])
		if !found || !also {
			panic("there is no row " + pair[0] + " or " + pair[1])
		}
		rows[pair[0]+" and "+pair[1]] = first.and(second)
	}
	return rows
}

// rowNamed is the row of one difference.
func rowNamed(name string) (row, bool) {
	for _, some := range []map[string]row{whoRows(), profileRows(), keyRows(), userRows(), secretRows(), boundRows(), policyRows()} {
		if r, found := some[name]; found {
			return r, true
		}
	}
	return row{}, false
}

// and is both differences at once.
func (r row) and(s row) row {
	both := func(f, g change) change {
		return func(c *cell, cfg *oncehttp.Config) {
			for _, set := range []change{f, g} {
				if set != nil {
					set(c, cfg)
				}
			}
		}
	}
	without := maps.Clone(r.without)
	if without == nil {
		without = map[string]string{}
	}
	maps.Copy(without, s.without)
	return row{
		one: both(r.one, s.one), other: both(r.other, s.other), both: both(r.both, s.both), lease: max(r.lease, s.lease), more: max(r.more, s.more),
		stuck: func(beginner, runner int) bool {
			return r.stuck != nil && r.stuck(beginner, runner) || s.stuck != nil && s.stuck(beginner, runner)
		},
		forgets: r.forgets || s.forgets, expires: r.expires || s.expires, holds: r.holds || s.holds, unanswered: r.unanswered || s.unanswered, without: without,
	}
}
