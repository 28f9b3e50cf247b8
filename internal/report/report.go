package report

import (
	"strings"
	"time"
)

// Schema is the version of the JSON form. It changes only when a reader of the
// old form would misread the new one; added members do not change it.
const Schema = 1

// The kinds of report.
const (
	// KindCheck: the suite's verdicts on a server.
	KindCheck = "check"
	// KindReferee: the mock's verdicts on a client.
	KindReferee = "referee"
)

// Report is one run. It is plain data, not safe for concurrent change; writers
// never change the report they are given.
type Report struct {
	// Schema is the version of the form; New sets it, Parse demands it.
	Schema int `json:"schema"`
	// Kind is KindCheck or KindReferee.
	Kind string `json:"kind"`
	// Suite names the judging program, with its version: "oncehttp check 0.1.0".
	Suite string `json:"suite,omitempty"`
	// Run is the id of this run. Its keys were made from it.
	Run string `json:"run,omitempty"`
	// Target is the URL (or the name) of the judged server or client. It tells
	// reports shown side by side apart, unless Name is set: then Name does.
	Target string `json:"target"`
	// Name is a short name of the target for headings: "fiber v3.1.0". Optional.
	Name string `json:"name,omitempty"`
	// Profile names the profile of the comparison.
	Profile string `json:"profile"`
	// Seed repeats the run.
	Seed uint64 `json:"seed"`
	// Started is the wall clock at the start; zero is not shown.
	Started time.Time `json:"started,omitzero"`
	// MS is the duration of the run, in milliseconds (see Millis).
	MS float64 `json:"ms"`
	// Requests counts the requests on the wire, of all cases.
	Requests int `json:"requests"`
	// Witness is the strongest way of counting effects in this run. Empty: not said.
	Witness Witness `json:"witness,omitempty"`
	// Headline is the fact for a reader to know before any verdict, in one
	// sentence. Empty: nothing.
	Headline string `json:"headline,omitempty"`
	// WayIn holds flags of the command, if they were found by trying: with them operations
	// are taken. Empty: as given.
	WayIn string `json:"way_in,omitempty"`
	// Cut is true if the run ended before every case was judged.
	Cut bool `json:"cut,omitempty"`
	// Config is the setup of the run, name to value. It has to be enough to
	// understand the verdicts, since the same target wired otherwise may get
	// others. Credentials in it are redacted on writing.
	Config map[string]string `json:"config,omitempty"`
	// Cases are in the order of their display. IDs are unique.
	Cases []Case `json:"cases"`
	// Summary counts the cases by verdict. Writers and Parse compute it from
	// Cases; they never trust this value.
	Summary Summary `json:"summary"`
}

// Case is the verdict on one requirement, with its evidence.
type Case struct {
	// ID is a stable slug, group/name: "replay/status".
	ID string `json:"id"`
	// Level is the weight of the requirement.
	Level Level `json:"level"`
	// Verdict is the result of the case.
	Verdict Verdict `json:"verdict"`
	// Witness says how effects were counted for this verdict.
	Witness Witness `json:"witness"`
	// Rule is the requirement in one sentence.
	Rule string `json:"rule"`
	// Impact is the damage to a customer when the rule is broken.
	Impact string `json:"impact,omitempty"`
	// Fix names the usual cause of the failure, and the change to make.
	Fix string `json:"fix,omitempty"`
	// Spec lists the sources of the rule.
	Spec []Ref `json:"spec"`
	// Expected is the behaviour asked for by the rule, usually in one line.
	Expected string `json:"expected,omitempty"`
	// Actual is the behaviour seen instead, usually in one line.
	Actual string `json:"actual,omitempty"`
	// Reason says why a case was skipped, inconclusive or an error. Such a
	// case never goes without.
	Reason string `json:"reason,omitempty"`
	// Odds is the share of failures when it was run again: "failed 1/3".
	Odds string `json:"odds,omitempty"`
	// Effects are the effects seen by the witness at the end: "payments 1, refunds 0".
	Effects string `json:"effects,omitempty"`
	// Try are shell lines to show the finding again: a line for each variable
	// first, then one curl line for each request, in order. If there are none,
	// writers make them of Exchanges and Config; see tryLines.
	Try []string `json:"try,omitempty"`
	// MS is the duration of the case, in milliseconds.
	MS float64 `json:"ms"`
	// Findings are the single checks of a case with several checks. The verdict
	// of the case is the worst of them.
	Findings []Finding `json:"findings,omitempty"`
	// Exchanges are the requests and their answers, in the order of their start.
	Exchanges []Exchange `json:"exchanges"`
}

// Ref is the source of a rule.
type Ref struct {
	// Name is short: "draft-07 §2.2", "field practice: Stripe".
	Name string `json:"name"`
	// URL leads there; only http and https become links.
	URL string `json:"url,omitempty"`
	// Quote is the sentence itself.
	Quote string `json:"quote,omitempty"`
}

// Finding is one check inside a case.
type Finding struct {
	// Verdict of this check alone.
	Verdict Verdict `json:"verdict"`
	// Text is the observation, in one sentence.
	Text string `json:"text"`
}

// Exchange is one request on the wire and its result.
type Exchange struct {
	// At is the start of the request, in milliseconds from the start of the case.
	At float64 `json:"at_ms"`
	// Took is the time until the whole answer or the error, in milliseconds.
	Took float64 `json:"took_ms"`
	// Lane labels the connection or the part played: "leader", "conn 2". The
	// timeline draws exchanges of one lane in one row. Empty: a row of its own.
	Lane string `json:"lane,omitempty"`
	// Method of the request.
	Method string `json:"method"`
	// URL as sent; it may be path and query alone.
	URL string `json:"url"`
	// Key is the idempotency key as sent, without the spaces around it. It may be
	// empty though one was sent: see KeySent.
	Key string `json:"key,omitempty"`
	// KeySent is true if the request carried a key, perhaps an empty one. A
	// non-empty Key was sent in any case.
	KeySent bool `json:"key_sent,omitempty"`
	// Caller tells the senders apart: "" is the first, "second" and "none" (a
	// request without credentials) are others.
	Caller string `json:"caller,omitempty"`
	// Ref is the name of the operation in its body; exchanges of one operation
	// have the same. Empty: not said.
	Ref string `json:"ref,omitempty"`
	// Shows marks the exchanges with the finding.
	Shows bool `json:"shows,omitempty"`
	// Status of the answer, 0 for none.
	Status int `json:"status,omitempty"`
	// Error says why there is no (whole) answer.
	Error string `json:"error,omitempty"`
	// Effects are the effects seen by the witness after this exchange.
	Effects string `json:"effects,omitempty"`
	// Note points at the important part: "the payment's answer".
	Note string `json:"note,omitempty"`
	// Request as far as it was kept; nil if it was not.
	Request *Message `json:"request,omitempty"`
	// Response as far as it was kept; nil if it was not, or there was none.
	Response *Message `json:"response,omitempty"`
}

// Message is the header and the body of a request or an answer.
type Message struct {
	// Header as it was on the wire; an http.Header can be assigned.
	Header map[string][]string `json:"header,omitempty"`
	// HeaderBytes holds, again, all values of each field with a value outside
	// UTF-8: in JSON, Header has other characters in place of such bytes. Nil: none.
	HeaderBytes map[string][][]byte `json:"header_bytes,omitempty"`
	// Body is its beginning, as text; bytes outside UTF-8 were replaced.
	Body string `json:"body,omitempty"`
	// BodyBytes is the length of the whole body, in bytes.
	BodyBytes int64 `json:"body_bytes"`
	// Run is a long run of one byte, left out of Body. Nil: there is none.
	Run *Run `json:"run,omitempty"`
}

// Run is Count times the character Of, left out of a body at the byte At.
type Run struct {
	At    int    `json:"at"`    // in bytes from the start of Body
	Of    string `json:"of"`    // one character
	Count int    `json:"count"` // the number of repetitions
}

// New returns an empty report in the current schema. kind says what was tested: KindCheck (a server) or KindReferee (a client).
func New(kind string) *Report { return &Report{Schema: Schema, Kind: kind} }

// NewMessage keeps at most bodyMax bytes of the body, as text. It copies the
// header: the caller may go on using it.
func NewMessage(header map[string][]string, body []byte, bodyMax int) *Message {
	m := &Message{BodyBytes: int64(len(body)), Header: make(map[string][]string, len(header))}
	for name, values := range header {
		m.Header[name] = append([]string(nil), values...)
	}
	m.Body = strings.ToValidUTF8(string(body[:min(len(body), max(bodyMax, 0))]), "\uFFFD")
	return m
}

// Millis is d in milliseconds, to the microsecond: the unit of every time in a
// report.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Group returns the part of the ID before the first slash, or "other".
func (c *Case) Group() string {
	group, _, found := strings.Cut(c.ID, "/")
	if !found || group == "" {
		return "other"
	}
	return group
}

// Title returns the report's Name or, if that is empty, its Target.
func (r *Report) Title() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Target
}
