// Package profile describes, as data, how one API spells idempotency: where the
// key travels, which keys it takes, how long it knows them, and what its
// answers mean. It holds no function that takes a request or a response; each
// reader (the client, the conformance suite, the mock server) interprets the
// data in code of its own, so that a bug on one side cannot hide on the other.
//
// A profile is a function, so that nobody can change another's copy:
//
//	oncehttp.Config{Profile: profile.StripeV1()}
//
// What is not known is said to be not known ([Unknown]); it is never a "no".
//
// # Files
//
// Each profile is a JSON file (data/NAME.json, embedded); [Load] reads one of your own. Every fact in it names a source,
// with a date and a confidence, and may note what the source says. What a source proves decides what its fact may do:
//
//   - [Primary] and [Excerpt]: the fact counts.
//   - [Secondary], which includes pages that the vendor has since replaced: the fact may only make the readers more
//     careful. Answers that it calls already done, mismatch, business conflict or in progress become Unclear: nothing is
//     concluded, and the operation is held. A window counts only where it is shorter than [WindowUnknown], a key rule only where
//     it is tighter than the default, should-retry only where it says no. Carrier, encoding, bodies, methods, account headers,
//     replay marks, statuses that were not acted upon, answers that are the API's own, stored answers and lookups are unknown. Headers that join the
//     comparison of requests, poisoned keys, waits and prose count. [Profile.Doubted] lists what did not count as it is
//     written.
//   - [Assumed], a choice of the file's author: allowed only for unclear answers, encoding, key rule, bodies, methods, window (at most
//     [WindowCap], not published), account headers, compared headers, replay marks whose name says what they are, waits
//     and prose, and for a carrier that says that no key is sent. Load rejects any other.
//
// What a file does not say is unknown: an encoding is raw then, and the window is WindowUnknown, not published.
//
// Methods of a nil *Profile, *Fact, *Endpoint or *Reference panic.
package profile

import "time"

// Profile is how one API, at one version, does idempotency. The zero value is
// not useful; start from one of this package's functions and change what your
// API does otherwise, under a Name of your own.
type Profile struct {
	// Name of the API, recorded with every operation.
	Name string
	// Version of the API, recorded with every operation.
	Version string
	// Title is the API's name for people.
	Title string

	// Carrier says where in a request the key travels.
	Carrier Carrier
	// Encoding says how the key is spelled in a header.
	Encoding Encoding
	// Token says that the key on the wire is a token which the API hands out before the request; nil: the client makes it.
	// The operation's own key then only names it in the journal, and Key bounds the token.
	Token *Token
	// FirstSent names the header in which every attempt says when the first one was sent, as an IMF-fixdate (RFC 9110
	// section 5.6.7), such as Repeatability-First-Sent; empty: the API wants none.
	FirstSent string
	// Key says which keys the API takes.
	Key KeyRule
	// Body says which bodies the API reads.
	Body BodyRule
	// Methods that the API honours keys on, at all of its paths, or at those of Endpoints. Empty: unknown. Where the profile
	// is Named and the list is not empty, a request with another method counts as one that no key protects.
	Methods []string
	// Endpoints at which the API honours keys. Empty: unknown, and Methods alone decide. Else a request elsewhere counts as
	// one that no key protects.
	Endpoints []Endpoint
	// Window says how long the API knows a key.
	Window Window

	// AccountHeaders names the request headers that select whose keys these are, such
	// as Stripe-Account. They part operations of one key.
	AccountHeaders []string
	// Fingerprint names the request headers that belong to what a key names,
	// besides Content-Type, which always does.
	Fingerprint []string

	// The matchers, read in this order; the first list with a hit decides.

	// AlreadyDone: the operation took effect before; Lookup may find its result.
	AlreadyDone []Matcher
	// Duplicate: a business reference in the request, such as an order number that must be unique, was used before: by an
	// earlier attempt at this operation or by somebody else, which the answer does not say. Reference may tell.
	Duplicate []Matcher
	// Mismatch: the key belongs to another request.
	Mismatch []Matcher
	// Poisoned: the key can never succeed again, and what happened is not said.
	Poisoned []Matcher
	// BusinessConflict: a final answer that only looks like a key conflict.
	BusinessConflict []Matcher
	// InProgress: the first request with this key is still being worked on.
	InProgress []Matcher
	// Unclear: what the answer means is not known well enough. The client concludes
	// nothing, sends nothing more, and holds the operation; the conformance suite and
	// the mock server take it for unknown. Load adds the lists above whose source is
	// secondary.
	Unclear []Matcher

	// Verdicts read the outcome of a 2xx out of its body, after the lists above. Empty: a 2xx is a success.
	Verdicts []Verdict

	// Replay marks the stored answer to an earlier request. It is read beside
	// the lists above. Its absence proves nothing.
	Replay []Matcher

	// NotActed lists the statuses of requests that the API has not acted upon.
	NotActed NotActed
	// Own says which answers are the API's own although they look like those of something in front of it.
	Own Own
	// Stored says which answers the API keeps under a key.
	Stored Stored
	// ShouldRetry is the header that advises on another attempt; zero: none.
	ShouldRetry ShouldRetry
	// RetryAfter lists the headers, and the values in answers' bodies, that ask for a wait; the longest wait counts.
	RetryAfter []Hint
	// MinDelay is the least wait between two attempts that the API asks for.
	MinDelay time.Duration

	// Lookup finds the result that an AlreadyDone answer names; nil: none.
	Lookup *Lookup
	// Reference finds what was made under the request's own business reference; nil: the API cannot, or it is not known.
	Reference *Reference
	// Cancel undoes what was made under a key; nil: the API cannot, or it is not known.
	Cancel *Cancel
	// Webhook says which events of the API prove that an operation took effect; nil: none do, or it is not known.
	Webhook *Webhook
	// Reconcile says in prose how a person finds out what happened.
	Reconcile string
	// Notes are facts for people, which no program reads.
	Notes []string

	// Sources says, for each field by name, where the statement comes from.
	Sources map[string]Source
	// Doubted lists the statements of a file whose source is too weak for them to
	// count as they are written; see the package comment.
	Doubted []Statement
}

// Fact is a three-valued answer; the zero value is Unknown.
type Fact uint8

// The values of a Fact.
const (
	Unknown Fact = iota // the API does not say
	No                  // the API says that it is not so
	Yes                 // the API says that it is so
)

// String is "unknown", "no" or "yes".
func (f Fact) String() string {
	switch f {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// Place is where in a request the key travels.
type Place string

// The places. In Body, Form and Query the request holds the key already, or the
// client puts it there if its Config.InsertKey says so.
const (
	Header Place = "header" // Carrier.Name is a header
	Body   Place = "body"   // Carrier.Name is a JSON pointer into the body
	Form   Place = "form"   // Carrier.Name is a field of an application/x-www-form-urlencoded body, such as meta[key]
	Query  Place = "query"  // Carrier.Name is a query parameter

	// Nowhere: the API takes no key, and none is sent; Carrier.Name is empty. The
	// client sends such an operation again only if nothing of it was sent, and holds
	// it where its outcome is not known; unless Duplicate and Reference say that the
	// API accepts a business reference of the request only once.
	Nowhere Place = "none"
)

// Carrier is the place and the name of the key.
type Carrier struct {
	Place Place  `json:"place"` // where the key travels
	Name  string `json:"name"`  // of the header, field or parameter, or the pointer; see Place
}

// BodyFormat is how a request's body spells its values.
type BodyFormat string

// The formats of bodies.
const (
	JSONBody BodyFormat = "json" // application/json, or a type that ends in +json
	FormBody BodyFormat = "form" // application/x-www-form-urlencoded; a member b of a is a[b]
)

// Comparison is how an API tells one request's body from another's.
type Comparison string

// The comparisons.
const (
	ByBytes  Comparison = "bytes"  // byte for byte
	ByValues Comparison = "values" // by what the body says: neither order nor spelling counts
)

// BodyRule says which bodies an API reads. The client compares bodies by their bytes, whatever the API does.
type BodyRule struct {
	// Formats lists those that the API reads, the default first. Empty: unknown; JSON is the default.
	Formats []BodyFormat `json:"formats,omitempty"`
	// Compared says how the bodies of two requests with one key are compared. Empty: unknown.
	Compared Comparison `json:"compared,omitempty"`
}

// Default is the first of Formats; JSONBody where they are unknown.
func (b BodyRule) Default() BodyFormat {
	if len(b.Formats) == 0 {
		return JSONBody
	}
	return b.Formats[0]
}

// Encoding is how a key is spelled in a header.
type Encoding string

// The encodings.
const (
	Raw      Encoding = "raw"       // the key as it is
	SFString Encoding = "sf-string" // a structured-field String: quoted (RFC 9651 section 3.3.3)
)

// Format is the shape that a key must have as a whole.
type Format string

// The formats.
const (
	AnyFormat Format = ""       // any text within the other bounds of the KeyRule
	UUID      Format = "uuid"   // any RFC 9562 UUID in its 36-character text form
	UUIDv4    Format = "uuidv4" // a version 4 UUID
)

// KeyRule bounds a key, before its encoding. A key outside it is refused before
// anything is sent; it is never cut or repaired.
type KeyRule struct {
	MinBytes int `json:"min_bytes,omitempty"` // 0: 1
	MaxBytes int `json:"max_bytes,omitempty"` // 0: 255
	// Alphabet lists the characters allowed; empty: visible ASCII (0x21-0x7E).
	Alphabet string `json:"alphabet,omitempty"`
	// Format is the shape of the whole key; the zero value is AnyFormat.
	Format Format `json:"format,omitempty"`
}

// WindowUnknown is the window where none is known: one hour. No server has promised it; a few that publish a window keep keys
// for less.
const WindowUnknown = time.Hour

// WindowCap is the longest window that a file may state where no server promises one: 24 hours, as most APIs that publish one
// say.
const WindowCap = 24 * time.Hour

// Window is how long the server is known to keep a key.
type Window struct {
	// Floor is the time after the first request within which a repeat is safe.
	// It is what the client goes by, also where it is a cautious guess
	// (Published says which).
	Floor time.Duration
	// Published: the API promises Floor. Otherwise Floor is WindowUnknown, or the choice of the file's author.
	Published Fact
}

// Matcher recognises an answer. Every condition that is set must hold.
type Matcher struct {
	// Status lists statuses; empty means any.
	Status []int `json:"status,omitempty"`
	// Header must be present; empty means no condition.
	Header string `json:"header,omitempty"`
	// Has lists words of which a value of Header must have one, as a whole word
	// and without regard to case; a word is a run of letters, digits and any of
	// "-_./+". Empty means any value.
	Has []string `json:"has,omitempty"`
	// Pointer is a JSON pointer (RFC 6901) into the body that must lead to a value;
	// empty means no condition.
	Pointer string `json:"pointer,omitempty"`
	// Equals lists texts of which the value at Pointer must have one; it must be a
	// string, number or boolean. Empty means any value.
	Equals []string `json:"equals,omitempty"`
}

// NotActed lists the statuses by which the server says that it did nothing.
type NotActed struct {
	Again []int `json:"again,omitempty"` // wait as told, then send again
	Stop  []int `json:"stop,omitempty"`  // sending again would not help
}

// Own says which answers are the API's own although they look like those of a proxy, a gateway or a maintenance page in
// front of it. The zero value is the cautious one: none are known.
type Own struct {
	// HTML: the API's successes may be HTML documents, also for a request whose Accept does not name HTML.
	HTML Fact `json:"html,omitzero"`
	// Bare lists the statuses of 4xx that the API itself gives with an HTML document or without a body. Of other 4xx that no
	// matcher names, such an answer proves only that this send was refused.
	Bare []int `json:"bare,omitempty"`
}

// Stored says which answers the server keeps under a key and gives again.
type Stored struct {
	// Success: a repeat of a 2xx is answered 2xx again, with the answer that was kept or the present state.
	Success Fact `json:"success,omitzero"`
	// Client matches the 4xx answers that come from the server's store, or are
	// final once it has looked there: after a lost answer these settle the
	// matter even without a replay mark.
	Client []Matcher `json:"client,omitempty"`
	// ServerError: a 5xx is kept and given again.
	ServerError Fact `json:"server_error,omitzero"`
}

// ShouldRetry is a header in which the server advises on another attempt.
type ShouldRetry struct {
	Header string `json:"header"`        // its name; empty: the API has none
	Yes    string `json:"yes,omitempty"` // the value that advises another attempt
	No     string `json:"no,omitempty"`  // the value that advises against one
	// Absent: what an answer of 4xx or 5xx without the header advises. No is as the value No; unknown is no advice, and Yes is
	// none that a file may state. Only answers that are the API's own count: with a body that is no HTML, and neither 502, 503
	// nor 504.
	Absent Fact `json:"absent,omitzero"`
}

// Unit is how a hint is spelled.
type Unit string

// The units.
const (
	HTTPDelay    Unit = "http" // seconds, or a date (RFC 9110 section 10.2.3)
	Milliseconds Unit = "ms"   // a whole number of milliseconds
)

// Hint is a header, or a value in a JSON body, that says how long to wait. One of Header and Pointer is set.
type Hint struct {
	Header  string `json:"header,omitempty"`  // its name
	Pointer string `json:"pointer,omitempty"` // a JSON pointer to a string or number in the answer's body
	Unit    Unit   `json:"unit"`              // how its value is spelled
}

// Lookup finds a resource that an answer names.
type Lookup struct {
	// Pointer leads to the resource's id in the AlreadyDone answer.
	Pointer string `json:"pointer"`
	// Path is where a same-origin GET finds it; "{path}" stands for the path of
	// the operation, "{id}" for the id.
	Path string `json:"path"`
}

// Token says how the API hands out a token: the answer to a request of its own, with a status of 2xx, holds it. A token that
// was handed out and not used costs nothing.
type Token struct {
	// Method of that request, which has no body: POST or GET. Empty: POST.
	Method string `json:"method,omitempty"`
	// Path is where it goes, at the origin of the operation. "{path}" stands for the path of the operation, and "{/pointer}"
	// for the value at this pointer in its body, percent-encoded. Empty: the client's Config.Token knows how.
	Path string `json:"path"`
	// Pointer leads to the token in the JSON of the answer.
	Pointer string `json:"pointer"`
}

// Cancel says how the API undoes what was made under a key, by a POST with a JSON body. Its success proves neither that there
// was an effect nor that there was none.
type Cancel struct {
	// For is the path of the operations that it undoes.
	For string `json:"for"`
	// Path is where the POST goes, at the origin of the operation.
	Path string `json:"path"`
	// Pointer says where in its body the key stands, such as /idempotency_key.
	Pointer string `json:"pointer"`
}

// Reference finds resources by values of the request's own body. Of a form /a/b is the field a[b].
type Reference struct {
	// Path is where a same-origin GET finds them. "{path}" stands for the path of the operation, and "{/pointer}" for the
	// value at this JSON pointer in its body, percent-encoded.
	Path string `json:"path"`
	// List leads to the list of resources in the answer; empty: the answer is the one resource, and 404 says that there
	// is none.
	List string `json:"list,omitempty"`
	// Same lists what must be equal for a resource to be the operation's own: the reference itself, amount, currency. It
	// holds at least one.
	Same []Same `json:"same"`
	// FoundWithin is how long after the last send everything that was made is found for certain; only then a lookup that
	// finds nothing proves that there is nothing. Zero: it never does.
	FoundWithin time.Duration `json:"-"` // found_within in files, such as "60s"
}

// Same names one value in two places, by JSON pointers. Numbers are compared by value, other text as it is.
type Same struct {
	Request  string `json:"request"`  // in the request's body
	Resource string `json:"resource"` // in the resource
}
