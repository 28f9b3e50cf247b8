package profile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Statement is one fact in the words of a file.
type Statement struct {
	// Name of the fact in files, such as "in_progress".
	Name string
	// Value as JSON; empty: unknown.
	Value string
	// Text is the value for people; empty: unknown.
	Text string
	// Source of the fact; zero: none, since it is unknown.
	Source Source
	// Use is the use of a statement that does not count as written; empty: it counts.
	Use string

	held int // the number of its matchers in Profile.Unclear, of a doubted list
}

// fact describes one member of a profile file and its field of Profile.
type fact struct {
	name  string               // in files
	field string               // of Profile
	part  func(p *Profile) any // returns a pointer to the field, in a type for JSON
	// check returns the error of the field's value, which is not empty. Facts before this one are set; an error does not
	// name the fact.
	check func(p *Profile) error
	// assumed: the author of a file may choose the value, without a source.
	assumed bool
	// doubted reduces the field, if its source is Secondary, to a value that only makes readers more careful. nil: each value
	// does that already.
	doubted func(p *Profile)
	use     string // Statement.Use of a doubted fact
	// forPeople: the value is prose, and no program reads it.
	forPeople bool
}

const (
	useHeld    = "held: nothing is concluded from such an answer"
	useUnknown = "not used: unknown"
	useTighter = "used where it is stricter than what holds without it"
)

// facts returns the members of a profile file in reading order, each with its field and its check: all but name, version, title and sources. The order counts:
// the check of endpoints needs methods, that of webhook needs account_headers, and a token of a weak source also takes the carrier away, which must be set by
// then.
func facts() []fact {
	return append(append(requestFacts(), answerFacts()...), otherFacts()...)
}

// requestFacts returns the facts of a profile about requests: for each its name in files, its field, and its check. part returns a pointer to the field.
// doubted puts a cautious value in place of one with a weak source, and use says for people what is then done with the fact. A fact without doubted needs
// none: each of its values is cautious. assumed: the author of a file may choose the value without a source.
func requestFacts() []fact {
	return []fact{
		{name: "carrier", field: "Carrier", part: func(p *Profile) any { return &p.Carrier }, check: checkCarrier,
			doubted: func(p *Profile) { p.Carrier = Carrier{} }, use: useUnknown},
		{name: "encoding", field: "Encoding", part: func(p *Profile) any { return &p.Encoding }, check: checkEncoding, assumed: true,
			doubted: func(p *Profile) { p.Encoding = "" }, use: useUnknown},
		{name: "token", field: "Token", part: func(p *Profile) any { return &p.Token }, check: checkTokenFact,
			doubted: func(p *Profile) { p.Token, p.Carrier = nil, Carrier{} }, use: "not used, and the carrier neither: unknown"},
		{name: "first_sent", field: "FirstSent", part: func(p *Profile) any { return &p.FirstSent },
			check:   func(p *Profile) error { return checkHeaders([]string{p.FirstSent}) },
			doubted: func(p *Profile) { p.FirstSent = "" }, use: useUnknown},
		{name: "key", field: "Key", part: func(p *Profile) any { return &p.Key }, check: checkKeyRule, assumed: true,
			doubted: func(p *Profile) { p.Key.MaxBytes = min(p.Key.MaxBytes, keyBytesMax) }, use: useTighter},
		{name: "body", field: "Body", part: func(p *Profile) any { return &p.Body }, check: checkBody, assumed: true,
			doubted: func(p *Profile) { p.Body = BodyRule{} }, use: useUnknown},
		{name: "methods", field: "Methods", part: func(p *Profile) any { return &p.Methods }, check: checkMethods, assumed: true,
			doubted: func(p *Profile) { p.Methods = nil }, use: useUnknown},
		{name: "endpoints", field: "Endpoints", part: func(p *Profile) any { return &p.Endpoints }, check: checkEndpoints}, // even of a weak source they only reduce the requests with keys
		{name: "window", field: "Window", part: func(p *Profile) any { return (*windowText)(&p.Window) }, check: checkWindow, assumed: true,
			doubted: func(p *Profile) { p.Window = Window{Floor: min(p.Window.Floor, WindowUnknown), Published: No} }, use: useTighter},
		{name: "account_headers", field: "AccountHeaders", part: func(p *Profile) any { return &p.AccountHeaders },
			check: func(p *Profile) error { return checkHeaders(p.AccountHeaders) }, assumed: true,
			doubted: func(p *Profile) { p.AccountHeaders = nil }, use: useUnknown},
		{name: "fingerprint", field: "Fingerprint", part: func(p *Profile) any { return &p.Fingerprint },
			check: func(p *Profile) error { return checkHeaders(p.Fingerprint) }, assumed: true},
	}
}

// answerFacts returns the facts of a profile that are lists of matchers: each gives the answers that it matches a meaning. The answers of a list with
// a weak source are unclear instead (by doubted): they hold the operation for a person. use says this for people. assumed: the author of a file may state
// the fact without a source.
func answerFacts() []fact {
	list := func(name, field string, part func(p *Profile) *[]Matcher) fact {
		return fact{
			name: name, field: field, part: func(p *Profile) any { return part(p) },
			check: func(p *Profile) error { return checkMatchers(*part(p)) },
			doubted: func(p *Profile) {
				p.Unclear = append(p.Unclear, *part(p)...)
				*part(p) = nil
			},
			use: useHeld,
		}
	}
	unclear := list("unclear", "Unclear", func(p *Profile) *[]Matcher { return &p.Unclear })
	unclear.doubted, unclear.assumed = nil, true // such an answer is only held
	poisoned := list("poisoned", "Poisoned", func(p *Profile) *[]Matcher { return &p.Poisoned })
	poisoned.doubted = nil // such an answer (the key cannot help any more) is held in any case
	replay := list("replay", "Replay", func(p *Profile) *[]Matcher { return &p.Replay })
	replay.doubted, replay.use, replay.assumed = func(p *Profile) { p.Replay = nil }, useUnknown, true
	return []fact{
		unclear, // first: doubted lists are added to it
		list("already_done", "AlreadyDone", func(p *Profile) *[]Matcher { return &p.AlreadyDone }),
		list("duplicate", "Duplicate", func(p *Profile) *[]Matcher { return &p.Duplicate }),
		list("mismatch", "Mismatch", func(p *Profile) *[]Matcher { return &p.Mismatch }),
		poisoned,
		list("business_conflict", "BusinessConflict", func(p *Profile) *[]Matcher { return &p.BusinessConflict }),
		list("in_progress", "InProgress", func(p *Profile) *[]Matcher { return &p.InProgress }),
		replay,
	}
}

// otherFacts returns the facts of a profile about stored answers, waits and lookups, and those for people only. part returns a pointer to the field. doubted
// puts a cautious value in place of one with a weak source, and use says for people what is then done with it; without doubted each value is cautious.
// assumed: the author of a file may choose the value without a source. forPeople: no program reads it.
func otherFacts() []fact {
	return []fact{
		{name: "verdicts", field: "Verdicts", part: func(p *Profile) any { return &p.Verdicts }, check: checkVerdicts, doubted: doubtVerdicts, use: useHeld},
		{name: "not_acted", field: "NotActed", part: func(p *Profile) any { return &p.NotActed }, check: checkNotActed,
			doubted: func(p *Profile) { p.NotActed = NotActed{} }, use: useUnknown},
		{name: "own", field: "Own", part: func(p *Profile) any { return &p.Own }, check: checkOwn,
			doubted: func(p *Profile) { p.Own = Own{} }, use: useUnknown},
		{name: "stored", field: "Stored", part: func(p *Profile) any { return &p.Stored },
			check:   func(p *Profile) error { return checkMatchers(p.Stored.Client) },
			doubted: func(p *Profile) { p.Stored = Stored{} }, use: useUnknown},
		{name: "should_retry", field: "ShouldRetry", part: func(p *Profile) any { return &p.ShouldRetry }, check: checkShouldRetry,
			doubted: func(p *Profile) { p.ShouldRetry.Yes = "" }, use: "used where it says no"},
		{name: "retry_after", field: "RetryAfter", part: func(p *Profile) any { return &p.RetryAfter }, check: checkHints, assumed: true},
		{name: "min_delay", field: "MinDelay", part: func(p *Profile) any { return (*spanText)(&p.MinDelay) }, check: checkMinDelay, assumed: true},
		{name: "lookup", field: "Lookup", part: func(p *Profile) any { return &p.Lookup }, check: checkLookup,
			doubted: func(p *Profile) { p.Lookup = nil }, use: useUnknown},
		{name: "reference", field: "Reference", part: func(p *Profile) any { return &p.Reference }, check: checkReference,
			doubted: func(p *Profile) { p.Reference = nil }, use: useUnknown},
		{name: "cancel", field: "Cancel", part: func(p *Profile) any { return &p.Cancel }, check: checkCancel,
			doubted: func(p *Profile) { p.Cancel = nil }, use: useUnknown},
		{name: "webhook", field: "Webhook", part: func(p *Profile) any { return &p.Webhook }, check: checkWebhook,
			doubted: func(p *Profile) { p.Webhook = nil }, use: useUnknown},
		{name: "reconcile", field: "Reconcile", part: func(p *Profile) any { return &p.Reconcile }, check: noCheck, assumed: true, forPeople: true},
		{name: "notes", field: "Notes", part: func(p *Profile) any { return &p.Notes }, check: noCheck, assumed: true, forPeople: true},
	}
}

// noCheck accepts every value: it is the check of facts without rules.
func noCheck(*Profile) error { return nil }

// factNames returns the names of all facts, in order.
func factNames() []string {
	var names []string
	for _, f := range facts() {
		names = append(names, f.name)
	}
	return names
}

// text returns the fact's value as JSON, also an empty one.
func (f *fact) text(p *Profile) string {
	text, err := json.Marshal(f.part(p))
	if err != nil { // impossible: every field can be written
		return ""
	}
	return string(text)
}

// doubted are the statements of a file that do not count as written.
type doubted []Statement

// has reports whether the fact of this name was loaded from a source too weak for it to be used as it is.
func (d doubted) has(name string) bool {
	return slices.ContainsFunc(d, func(s Statement) bool { return s.Name == name })
}

// held returns the number of matchers that the doubted lists (those of weak sources) have added to Profile.Unclear.
func (d doubted) held() (matchers int) {
	for _, s := range d {
		matchers += s.held
	}
	return matchers
}

// stated returns a profile with the field as the file states it: p itself, but for "Unclear" a profile with only its own
// matchers. The matchers of lists with a weak source (doubted) stand at its end. The result is only for reading that field.
func stated(p *Profile, field string) *Profile {
	if field != "Unclear" {
		return p
	}
	return &Profile{Unclear: p.Unclear[:max(len(p.Unclear)-doubted(p.Doubted).held(), 0)]}
}

// fillBlanks sets the encoding and the window of a profile that does not state them to the cautious choices, and their sources to an assumption.
// Sources must not be nil.
func fillBlanks(p *Profile) {
	const ref, date = "not published", "2026-11" // the month of this choice
	if p.Encoding == "" {
		p.Encoding, p.Sources["Encoding"] = Raw, Source{Ref: ref, Date: date, Confidence: Assumed}
	}
	if p.Window.Floor == 0 {
		p.Window, p.Sources["Window"] = Window{Floor: WindowUnknown, Published: No}, Source{Ref: ref, Date: date, Confidence: Assumed}
	}
}

// MarshalText returns the text of String; the error is always nil.
func (f Fact) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText sets f to "yes", "no" or "unknown". Any other text is an error, and leaves f as it was.
func (f *Fact) UnmarshalText(text []byte) error {
	for _, known := range []Fact{Unknown, No, Yes} {
		if known.String() == string(text) {
			*f = known
			return nil
		}
	}
	return fmt.Errorf("%q, want yes, no or unknown", text)
}

// spanText is a duration in the spelling of files: 90s, 5m, 24h, 30d.
type spanText time.Duration

// String returns the duration in the largest unit that divides it; one day is 24h.
func (s spanText) String() string {
	d := time.Duration(s)
	for _, u := range units() {
		if d >= u.length && d%u.length == 0 && (u.name != "d" || d >= 2*u.length) { // a day is 24h, as people say
			return strconv.FormatInt(int64(d/u.length), 10) + u.name
		}
	}
	return d.String()
}

// MarshalText returns the text of String; the error is always nil.
func (s spanText) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a positive whole number and a unit, such as 24h. An error leaves s as it was.
func (s *spanText) UnmarshalText(text []byte) error {
	number := strings.TrimRight(string(text), "dhms")
	n, err := strconv.ParseUint(number, 10, 32)
	for _, u := range units() {
		if err == nil && u.name == string(text[len(number):]) && n > 0 && n <= spanMax {
			*s = spanText(time.Duration(n) * u.length)
			return nil
		}
	}
	return fmt.Errorf("%q, want a whole number and a unit (ms, s, m, h, d), such as 24h", text)
}

// spanMax bounds the number before the unit, so that days fit into a Duration.
const spanMax = 99_999

// unit is a unit of time in files.
type unit struct {
	name   string
	length time.Duration
}

// units returns the units of time, the largest first.
func units() []unit {
	return []unit{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
}

// referenceParts is the form of a Reference in files.
type referenceParts struct {
	referencePlain
	FoundWithin spanText `json:"found_within,omitzero"`
}

// referencePlain is Reference without its methods for JSON.
type referencePlain Reference

// MarshalJSON returns the form of files, with found_within as a text. referencePlain has no methods, so that Marshal does not call this one again.
func (r Reference) MarshalJSON() ([]byte, error) {
	return json.Marshal(referenceParts{referencePlain(r), spanText(r.FoundWithin)})
}

// UnmarshalJSON reads the form of files; unknown members are errors, and leave r as it was. into decodes once more, and refuses them.
func (r *Reference) UnmarshalJSON(text []byte) error {
	var parts referenceParts
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if err := into(value, &parts); err != nil {
		return err
	}
	*r = Reference(parts.referencePlain)
	r.FoundWithin = time.Duration(parts.FoundWithin)
	return nil
}

// windowText is a Window with the JSON of files.
type windowText Window

// windowParts is the form of a Window in files.
type windowParts struct {
	Floor     spanText `json:"floor"`
	Published Fact     `json:"published"`
}

// MarshalJSON returns the form of files.
func (w windowText) MarshalJSON() ([]byte, error) {
	return json.Marshal(windowParts{Floor: spanText(w.Floor), Published: w.Published})
}

// UnmarshalJSON reads the form of files; unknown members are errors, and leave w as it was. into decodes once more, and refuses them.
func (w *windowText) UnmarshalJSON(text []byte) error {
	var parts windowParts
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	type plain windowParts
	if err := into(value, (*plain)(&parts)); err != nil {
		return err
	}
	*w = windowText{Floor: time.Duration(parts.Floor), Published: parts.Published}
	return nil
}
