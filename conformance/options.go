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

// Options name the target and set up a run. Only URL is needed. Do not change the maps and
// slices during the run.
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
	// Body is the template of a body. {ref} stands for a reference that is unique to each
	// operation, {key} for the key, if the profile carries it in the body.
	// Empty: {"reference":"{ref}","amount":100}, or reference={ref}&amount=100 for a form.
	Body string
	// ContentType of the body. Empty: application/json, or application/x-www-form-urlencoded
	// if that is the profile's default and Body is no JSON object.
	ContentType string
	// Header is sent with every request, such as credentials.
	Header http.Header
	// As holds the header fields of a second caller, in place of the same fields of Header.
	// Nil: cases with two callers are skipped.
	As http.Header
	// KeyHeader is the header of the key, such as "X-Request-ID". Empty: the profile's.
	KeyHeader string
	// KeyQuoted writes the key as a structured-field string, in double quotes.
	// False: as the profile says.
	KeyQuoted bool
	// KeyField carries the key in the body instead of a header: a member of the JSON object,
	// "/idempotency_key", or a field of a form. Run adds it to a Body without {key}.
	// Empty: as the profile says.
	KeyField string
	// KeyFormat is the format of new keys, KeyUUIDv4 or KeyUUIDv7. Empty: as the profile says,
	// or else version 4.
	KeyFormat string
	// KeyPrefix stands in front of every new key. Empty: no prefix.
	KeyPrefix string
	// TokenPath is the path of an API that hands its keys out, for a fetch before each
	// operation: "/tokens". The answer is the key as text, or JSON with the key at
	// TokenPointer. Empty: as the profile's Token says, or else the suite makes the keys.
	TokenPath string
	// TokenMethod fetches a key: GET or POST, without a body. Empty: GET.
	TokenMethod string
	// TokenPointer is a JSON pointer to the key in the answer. Empty: /token.
	TokenPointer string
	// OtherMethod is a second method for URL and the same body. Empty: PATCH, then PUT; never
	// DELETE.
	OtherMethod string
	// SecondPath is another operation with the same body: "/refunds". Empty: cases with two
	// operations are skipped.
	SecondPath string
	// ActionPath is an action without a body on the result of an operation:
	// "/payments/{id}/cancel". Empty: cases with actions are skipped.
	ActionPath string
	// IDPointer is a JSON pointer (RFC 6901) to the name of the effect in an answer.
	// Empty: /id.
	IDPointer string
	// Witness is a URL with {ref} that counts the effects of a reference. Behind # is a JSON
	// pointer to the number, or to a list of that length. Empty: effects are inferred from the
	// ids in answers, and effects with lost answers are missed.
	Witness string
	// EffectWait is the longest time between the last answer to an operation and its effect.
	// A count is final only after it. The cases wait for it beside each other. Zero: 500 ms.
	EffectWait time.Duration
	// DelayQuery makes one operation slow: "sleep={ms}". Empty: cases with slow operations are
	// skipped; the same holds for the next two.
	DelayQuery string
	// FailQuery makes one operation answer a status: "fail={status}".
	FailQuery string
	// CrashQuery makes the handler of one operation crash: "crash=1".
	CrashQuery string
	// Restart stops the target the hard way (kill -9) and starts it again. It
	// returns when the target is starting; the suite waits until it answers.
	Restart func(context.Context) error
	// Expire makes the target forget keys as if their window had passed. Nil: the suite waits
	// for Window.
	Expire func(context.Context) error
	// Outage takes the store behind the keys away, Recover gives it back. Nil: the case with
	// an outage is skipped.
	Outage, Recover func(context.Context) error
	// Window is the time for which the target promises to keep keys. The suite waits for it if
	// it is 10 s or less. Zero: not known.
	Window time.Duration

	// Explore searches in place of the cases: it draws sequences of requests from Seed, plays
	// them under fresh keys, and compares the answers with a model of a correct server. A
	// contradiction is shortened, tried again, and reported. The results are those of Relations,
	// and of findings that need several of them. Off loopback it needs MaxEffects.
	Explore bool
	// Histories is the number of sequences that Explore draws. Zero: 300, or any number within For.
	Histories int
	// For is how long Explore draws sequences. Timeout is counted on top. Zero: until there are Histories.
	For time.Duration
	// MaxFindings ends the search once it has found so many contradictions. Zero: 12.
	MaxFindings int

	// Volume runs other cases in place of the book: thousands of keys, bodies, bytes and
	// connections, for faults that only numbers show. PlanVolume returns the amount. Off
	// loopback it needs MaxEffects.
	Volume bool

	// Run and Skip choose cases by id, with * for any characters: "scope/**".
	// Empty Run is all of them.
	Run, Skip []string
	// Quick runs replay, conflict, scope and inflight/once.
	Quick bool
	// Rounds is the number of bursts. Zero: 200.
	Rounds int
	// Seed repeats the random parts of a run. Zero: chosen, and reported.
	Seed uint64
	// Timeout bounds the whole run; For comes on top. Zero: 2 min.
	Timeout time.Duration
	// AnswerTimeout bounds each request. Zero: 10 s.
	AnswerTimeout time.Duration
	// MaxRequests bounds the requests of the whole run. Zero: 20,000.
	MaxRequests int
	// MaxEffects bounds the operations of the whole run; a correct server has one effect for
	// each. If the first operation is refused, other ways to send it are tried on loopback
	// always, and elsewhere only if MaxEffects is set. Zero: no bound.
	MaxEffects int
	// NoProbe: if the first operation is refused, no other way to send it is tried.
	NoProbe bool
	// AllowHosts names the hosts besides loopback for URL and Witness, without ports.
	AllowHosts []string
	// Parallel is the number of cases at once. Zero: 8.
	Parallel int
	// Hold is the time for which an operation is kept slow, so that others overlap with it.
	// Longer holds are tried if no overlap came about. Zero: 200 ms.
	Hold time.Duration
	// Settle bounds the time until a key resolves after a fault. Zero: 35 s.
	Settle time.Duration
	// Repeat is the number of runs of every case, to show flakes. Zero: one.
	Repeat int
	// Reruns is the number of further runs of a failing case by itself, for its odds.
	// Zero: 2. Negative: none.
	Reruns int
	// Done is called with each case when it is finished, one at a time. Nil: no call.
	Done func(Result)
}

// withDefaults returns the options with defaults for zero values, and with the key options applied to a copy of the profile. A second call changes
// nothing more. Negative Reruns stay: they mean none.
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
	setDefault(&o.Histories, math.MaxInt) // For is the bound
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

// defaultType returns the content type for an empty ContentType: the profile's default, or
// JSON if the template is an object.
func (o *Options) defaultType() string {
	if o.Profile.Body.Default() == profile.FormBody && !strings.HasPrefix(o.Body, "{") {
		return formType
	}
	return "application/json"
}

// setDefault sets a field that has its zero value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
