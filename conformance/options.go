package conformance

import (
	"context"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// Version is the version of the case book; it stands in every report.
const Version = "1.1"

// The defaults of Options' zero values.
const (
	bodyDefault      = `{"reference":"{ref}","amount":100}`
	formDefault      = "reference={ref}&amount=100"
	formType         = "application/x-www-form-urlencoded"
	idDefault        = "/id"
	timeoutDefault   = 2 * time.Minute
	answerDefault    = 10 * time.Second
	holdDefault      = 200 * time.Millisecond
	settleDefault    = 35 * time.Second
	effectDefault    = 500 * time.Millisecond
	requestsDefault  = 20_000
	parallelDefault  = 8
	roundsDefault    = 200
	rerunsDefault    = 2
	windowMax        = 10 * time.Second
	answerBytesMax   = 8 << 20
	evidenceBytesMax = 2048
)

// The formats of keys.
const (
	KeyUUIDv4 = "uuid4"
	KeyUUIDv7 = "uuid7"
)

// Options say what is judged, and how. Only URL is needed. Run copies what it
// keeps; do not change the maps and slices while it runs.
type Options struct {
	// URL is where an operation is sent: http or https, to a loopback host
	// unless AllowHosts names it.
	URL string
	// Name is a short name of the target for headings: "fiber v3.1.0".
	Name string
	// Profile is how the API spells idempotency. Nil: profile.Draft07().
	Profile *profile.Profile
	// Method of an operation. Empty: POST.
	Method string
	// Body is the template of a body; {ref} stands for what is unique to each
	// operation, {key} for the key where the profile carries it in the body.
	// Empty: {"reference":"{ref}","amount":100}, or where ContentType is that of
	// a form reference={ref}&amount=100.
	Body string
	// ContentType of the body. Empty: application/json, or
	// application/x-www-form-urlencoded where that is the profile's default and
	// Body is no JSON object.
	ContentType string
	// Header is sent with every request, such as credentials.
	Header http.Header
	// As is what a second caller sends in place of the same fields of Header.
	// Nil: cases about strangers are skipped.
	As http.Header
	// KeyHeader is the header that carries the key, where it is not the one of
	// Profile: "X-Request-ID". Empty: the profile's.
	KeyHeader string
	// KeyQuoted writes the key as a structured-field string, in double quotes.
	// False: as the profile says.
	KeyQuoted bool
	// KeyField carries the key in the body instead of a header: a member of the JSON
	// object, "/idempotency_key", or a field of a form. It is put into Body unless that
	// has {key}. Empty: as the profile says.
	KeyField string
	// KeyFormat of the keys that are made, KeyUUIDv4 or KeyUUIDv7. Empty: as the
	// profile says, version 4 where it says nothing.
	KeyFormat string
	// KeyPrefix stands in front of every key that is made. Empty: nothing does.
	KeyPrefix string
	// TokenPath is where a key is fetched before each operation by an API that
	// hands its keys out: "/tokens". The answer is the key as text, or
	// JSON that holds it at TokenPointer. Empty: as the profile's Token says, else keys
	// are made by the client.
	TokenPath string
	// TokenMethod fetches a key: GET or POST, without a body. Empty: GET.
	TokenMethod string
	// TokenPointer is a JSON pointer to the key in the answer. Empty: /token.
	TokenPointer string
	// OtherMethod is a second method that the server takes at URL with the same
	// body. Empty: PATCH is tried, then PUT; DELETE never unless it is named here.
	OtherMethod string
	// SecondPath is another operation that takes the same body: "/refunds".
	SecondPath string
	// ActionPath acts, without a body, on what an operation made:
	// "/payments/{id}/cancel".
	ActionPath string
	// IDPointer is a JSON pointer (RFC 6901) to what names the effect in an
	// answer. Empty: /id.
	IDPointer string
	// Witness is a URL, with {ref} in it, that tells how many effects that
	// reference had; behind # stands a JSON pointer to the number, or to a list
	// whose length is the number. Empty: effects are inferred from the ids in
	// answers, which misses those whose answers were lost.
	Witness string
	// EffectWait is for how long after its last answer an operation may still
	// have an effect: only then is a count taken as final. The cases wait for it
	// beside each other. Zero: 500 ms.
	EffectWait time.Duration
	// DelayQuery makes one operation slow: "sleep={ms}".
	DelayQuery string
	// FailQuery makes one operation answer a status: "fail={status}".
	FailQuery string
	// CrashQuery makes the handler of one operation crash: "crash=1".
	CrashQuery string
	// Restart stops the target the hard way (kill -9) and starts it again. It
	// returns when the target is starting; the suite waits until it answers.
	Restart func(context.Context) error
	// Expire makes the target forget keys as if their window had passed.
	Expire func(context.Context) error
	// Outage takes the store behind the keys away, and gives it back.
	Outage, Recover func(context.Context) error
	// Window is for how long the target says that it keeps keys. It is waited
	// for where it is at most 10 s. Zero: not said.
	Window time.Duration

	// Explore searches in place of the cases: sequences of requests are drawn from Seed, played
	// under fresh keys, and held against a model of a right server. What contradicts it is
	// shortened, tried again, and reported. The results are those of Relations, and of findings that need
	// several of them. Elsewhere than on loopback it needs MaxEffects.
	Explore bool
	// Histories is how many sequences Explore draws. Zero: 300, or as many as For lets.
	Histories int
	// For is how long Explore draws sequences. Timeout is counted on top. Zero: until there are Histories.
	For time.Duration
	// MaxFindings ends the search once it has found so many contradictions. Zero: 12.
	MaxFindings int

	// Volume runs other cases in their place: thousands of keys, bodies, bytes and connections, for what shows by
	// number alone. PlanVolume says how much it sends. Elsewhere than on loopback it needs MaxEffects.
	Volume bool

	// Run and Skip choose cases by id, with * for any characters: "scope/**".
	// Empty Run is all of them.
	Run, Skip []string
	// Quick runs replay, conflict, scope and inflight/once.
	Quick bool
	// Rounds is how often a burst is tried. Zero: 200.
	Rounds int
	// Seed repeats the random parts of a run. Zero: chosen, and reported.
	Seed uint64
	// Timeout bounds the whole run but for what For adds. Zero: 2 min.
	Timeout time.Duration
	// AnswerTimeout bounds each request. Zero: 10 s.
	AnswerTimeout time.Duration
	// MaxRequests bounds the requests of the whole run. Zero: 20,000.
	MaxRequests int
	// MaxEffects bounds the operations of the whole run, each of which has an effect if
	// the server is right. Where the first operation is not taken, other ways to send it
	// are tried on loopback without asking, and elsewhere only if this is set. Zero: no bound.
	MaxEffects int
	// NoProbe: where the first operation is not taken no other way to send it is tried.
	NoProbe bool
	// AllowHosts names hosts besides loopback that may be contacted.
	AllowHosts []string
	// Parallel is how many cases run at once. Zero: 8.
	Parallel int
	// Hold is for how long an operation is kept slow so that others overlap
	// with it; longer is tried where the overlap did not come about. Zero: 200 ms.
	Hold time.Duration
	// Settle bounds how long a key may take to resolve after a fault. Zero: 35 s.
	Settle time.Duration
	// Repeat runs every case so many times, to show flakes. Zero: once.
	Repeat int
	// Reruns is how often a failing case is run again by itself, for its odds.
	// Zero: 2. Negative: never.
	Reruns int
	// Done is called with each case when it is finished, one at a time. Nil: no call.
	Done func(Result)
}

// withDefaults is the options with their zero values filled in.
func (o Options) withDefaults() Options {
	if o.Profile == nil {
		o.Profile = profile.Draft07()
	}
	o.Profile = o.Profile.Clone()
	if o.KeyHeader != "" {
		o.Profile.Carrier = profile.Carrier{Place: profile.Header, Name: o.KeyHeader}
	}
	setDefault(&o.Method, http.MethodPost)
	setDefault(&o.ContentType, o.defaultType())
	if o.ContentType == formType {
		setDefault(&o.Body, formDefault)
	}
	setDefault(&o.Body, bodyDefault)
	if o.KeyQuoted {
		o.Profile.Encoding = profile.SFString
	}
	if o.KeyField != "" {
		o.carryInField()
	}
	setDefault(&o.IDPointer, idDefault)
	setDefault(&o.Rounds, roundsDefault)
	if o.For == 0 {
		setDefault(&o.Histories, historiesDefault)
	}
	setDefault(&o.Histories, math.MaxInt)
	setDefault(&o.MaxFindings, findingsMax)
	setDefault(&o.Timeout, timeoutDefault)
	setDefault(&o.AnswerTimeout, answerDefault)
	setDefault(&o.MaxRequests, requestsDefault)
	setDefault(&o.Parallel, parallelDefault)
	setDefault(&o.Hold, holdDefault)
	setDefault(&o.Settle, settleDefault)
	setDefault(&o.EffectWait, effectDefault)
	setDefault(&o.Repeat, 1)
	if o.Volume {
		setDefault(&o.Reruns, -1) // a case asks again by itself
	}
	setDefault(&o.Reruns, rerunsDefault)
	return o
}

// defaultType is the type of the body where none is given: what the profile's API reads by default, unless the template is
// JSON for all that.
func (o *Options) defaultType() string {
	if o.Profile.Body.Default() == profile.FormBody && !strings.HasPrefix(o.Body, "{") {
		return formType
	}
	return "application/json"
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
