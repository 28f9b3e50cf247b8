package conformance

import (
	"slices"
	"strings"
	"time"
)

// Schema is the version of a report's JSON form. It changes only when a reader
// of the old form would misread the new one; added members do not change it.
const Schema = 1

// Report is one run, as plain data. Its JSON is the form of `oncehttp check --format json`.
// It holds credentials as sent; the command removes them from a written report. Its methods
// change nothing.
type Report struct {
	// Schema is the version of the form: the constant Schema.
	Schema int `json:"schema"`
	// Kind is "check"; reports of a referee of clients have another one.
	Kind string `json:"kind"`
	// Suite is the name of the suite, with its version.
	Suite string `json:"suite,omitempty"`
	// Run is the id of this run, from which its keys were made.
	Run string `json:"run,omitempty"`
	// Target is the URL that was judged.
	Target string `json:"target"`
	// Name is Options.Name. Empty: none was given.
	Name string `json:"name,omitempty"`
	// Profile names the profile that was compared with.
	Profile string `json:"profile"`
	// Seed repeats the random parts of the run.
	Seed uint64 `json:"seed"`
	// Started is the wall clock at the start.
	Started time.Time `json:"started,omitzero"`
	// MS is how long the run took, in milliseconds.
	MS float64 `json:"ms"`
	// Requests counts the requests on the wire. Those to the witness are not counted.
	Requests int `json:"requests"`
	// Witness says how effects were counted in this run, at best.
	Witness Witness `json:"witness,omitempty"`
	// Headline is for reading before any verdict: no effect could be seen, say, or the run was
	// cut short. Empty: nothing.
	Headline string `json:"headline,omitempty"`
	// WayIn holds the command's flags under which the target accepts operations, found by trials
	// after a refusal of the first. Empty: the options worked as given.
	WayIn string `json:"way_in,omitempty"`
	// Cut reports that the run ended by its timeout, by its budget of requests or effects,
	// or by the caller before every case was judged.
	Cut bool `json:"cut,omitempty"`
	// Config holds the options of the run, by name.
	Config map[string]string `json:"config,omitempty"`
	// Cases in the order of the case book.
	Cases []Result `json:"cases"`
	// Summary counts the cases by verdict.
	Summary Summary `json:"summary"`
}

// Result is the verdict on one case, with its evidence.
type Result struct {
	// ID is the case's.
	ID string `json:"id"`
	// Level is the case's. For a failure or a warning it is that of the fault: LevelSafety for
	// an effect too many, LevelLiveness for a key that does not resolve, LevelShould for a warning.
	Level Level `json:"level"`
	// Verdict is the worst of the findings.
	Verdict Verdict `json:"verdict"`
	// Witness says how effects were counted for this verdict.
	Witness Witness `json:"witness"`
	// Rule and Spec are the case's, and so are Impact and Fix unless the fault is of another
	// kind than the case's subject.
	Rule   string `json:"rule"`             // the requirement in one sentence
	Impact string `json:"impact,omitempty"` // what goes wrong for a customer when it is broken
	Fix    string `json:"fix,omitempty"`    // what to change in the server; empty: nothing is known
	Spec   []Ref  `json:"spec"`             // where the rule comes from
	// Expected and Actual state the difference if the verdict is VerdictFail or
	// VerdictWarn.
	Expected string `json:"expected,omitempty"`
	// Actual is the actual state, also for VerdictSeen.
	Actual string `json:"actual,omitempty"`
	// Reason says why the verdict is VerdictSkip, VerdictInconclusive or
	// VerdictError. Such a result never goes without.
	Reason string `json:"reason,omitempty"`
	// Odds counts the failures among all runs of the case: "failed 1/3". Empty: one run.
	Odds string `json:"odds,omitempty"`
	// Effects holds the counts of the witness: "the first: 1, the other request: 0"; without a
	// witness those from answers: "its reference: at least 1".
	Effects string `json:"effects,omitempty"`
	// MS is how long the case took, in milliseconds.
	MS float64 `json:"ms"`
	// Findings are the single checks of the case.
	Findings []Finding `json:"findings,omitempty"`
	// Exchanges are the requests and their answers, in the order of their end.
	Exchanges []Exchange `json:"exchanges"`

	proved bool // as trial.proved
	waited bool // as trial.waited
}

// Finding is one check inside a case.
type Finding struct {
	// Verdict of this check alone.
	Verdict Verdict `json:"verdict"`
	// Text is the observation, in one sentence.
	Text string `json:"text"`
}

// Ref is the source of a rule.
type Ref struct {
	// Name is short: "draft-07 §2.2", "field practice".
	Name string `json:"name"`
	// URL leads there. Empty: there is none.
	URL string `json:"url,omitempty"`
	// Quote is the sentence itself.
	Quote string `json:"quote,omitempty"`
}

// Exchange is one request on the wire and what became of it.
type Exchange struct {
	// At is when the request was started, in milliseconds from the start of the case.
	At float64 `json:"at_ms"`
	// Took is how long it was until the whole answer or the error, in milliseconds.
	Took float64 `json:"took_ms"`
	// Lane labels the connection or the part played: "leader", "follower".
	Lane string `json:"lane,omitempty"`
	// Method of the request.
	Method string `json:"method"`
	// URL is path and query, as sent.
	URL string `json:"url"`
	// Key is the key as it was sent. It may be empty though one was sent.
	Key string `json:"key,omitempty"`
	// KeySent reports that the request carried a key, perhaps an empty one.
	KeySent bool `json:"key_sent,omitempty"`
	// Caller tells the senders apart: "" is the first, "second" the one of
	// Options.As, "none" a request without credentials.
	Caller string `json:"caller,omitempty"`
	// Ref is the reference of the operation, which {ref} stands for. Exchanges
	// of one operation have the same.
	Ref string `json:"ref,omitempty"`
	// Shows marks the exchanges behind Expected and Actual, for VerdictFail and VerdictWarn.
	Shows bool `json:"shows,omitempty"`
	// Status of the answer. Zero: there was none.
	Status int `json:"status,omitempty"`
	// Error says why there is no (whole) answer.
	Error string `json:"error,omitempty"`
	// Note is the part of the request in the case: "the repeat".
	Note string `json:"note,omitempty"`
	// Request as far as it was kept; nil if it was not.
	Request *Message `json:"request,omitempty"`
	// Response as far as it was kept; nil if it was not, or there was none.
	Response *Message `json:"response,omitempty"`
}

// Message is the header and the body of a request or an answer.
type Message struct {
	// Header as it was on the wire.
	Header map[string][]string `json:"header,omitempty"`
	// HeaderBytes repeats all values of each field with a value outside UTF-8: in JSON, Header
	// has other characters in place of such bytes. Nil: there is no such field.
	HeaderBytes map[string][][]byte `json:"header_bytes,omitempty"`
	// Body is its beginning, as text; bytes that are not UTF-8 were replaced.
	Body string `json:"body,omitempty"`
	// BodyBytes is the length of the whole body, in bytes.
	BodyBytes int64 `json:"body_bytes"`
	// Run is a long run of one character, left out of Body so that the rest of a large body is
	// whole. Nil: nothing was left out.
	Run *BodyRun `json:"run,omitempty"`
}

// BodyRun is Count times the character Of, left out of a body at the byte At.
type BodyRun struct {
	At    int    `json:"at"`    // in bytes from the start of Body
	Of    string `json:"of"`    // one character
	Count int    `json:"count"` // how often it stood there
}

// Summary counts cases by verdict.
type Summary struct {
	Pass         int `json:"pass"`         // VerdictPass
	Fail         int `json:"fail"`         // VerdictFail
	Warn         int `json:"warn"`         // VerdictWarn
	Seen         int `json:"seen"`         // VerdictSeen
	Skip         int `json:"skip"`         // VerdictSkip
	Inconclusive int `json:"inconclusive"` // VerdictInconclusive
	Error        int `json:"error"`        // VerdictError
}

// Group is the results of one group of cases, by the part of their ids before
// the slash.
type Group struct {
	// Name is that part.
	Name string
	// Cases of the group, in the order of the report.
	Cases []Result
}

// Groups splits the results by their group, in the order of first appearance.
func (r *Report) Groups() []Group {
	var groups []Group
	for i := range r.Cases {
		name, _, _ := strings.Cut(r.Cases[i].ID, "/")
		at := slices.IndexFunc(groups, func(g Group) bool { return g.Name == name })
		if at < 0 {
			at = len(groups)
			groups = append(groups, Group{Name: name})
		}
		groups[at].Cases = append(groups[at].Cases, r.Cases[i])
	}
	return groups
}

// ExitStatus returns the exit status of a command for this report, known failures aside: 0 no
// failure, 1 a failure, 2 nothing was judged, 3 the suite itself failed, 4 nothing failed, but
// a safety case was not decided or the run was cut short.
func (r *Report) ExitStatus() int {
	s := r.Summary
	switch {
	case s.Error > 0:
		return exitError
	case s.Fail > 0:
		return exitFailed
	case s.Pass+s.Warn+s.Inconclusive == 0:
		return exitUsage
	case r.Cut || len(r.Undecided()) > 0:
		return exitUndecided
	}
	return exitOK
}

const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitError     = 3
	exitUndecided = 4
)

// Undecided lists the ids of the safety cases that were tried and not decided, in the order of the report. A case with a warning is among them if a
// part of it was inconclusive, too. Skipped cases are not: the target lacks what they need.
func (r *Report) Undecided() []string {
	var ids []string
	for i := range r.Cases {
		c := &r.Cases[i]
		open := slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Verdict == VerdictInconclusive })
		if c.Level == LevelSafety && (c.Verdict == VerdictInconclusive || c.Verdict == VerdictWarn && open) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// summarize counts the results by verdict. An unknown verdict counts as an error: a case
// without a judgement must not look good.
func summarize(cases []Result) Summary {
	var s Summary
	for i := range cases {
		switch cases[i].Verdict {
		case VerdictPass:
			s.Pass++
		case VerdictFail:
			s.Fail++
		case VerdictWarn:
			s.Warn++
		case VerdictSeen:
			s.Seen++
		case VerdictSkip:
			s.Skip++
		case VerdictInconclusive:
			s.Inconclusive++
		default:
			s.Error++
		}
	}
	return s
}

// millis returns d in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
