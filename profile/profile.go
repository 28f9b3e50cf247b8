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

	// Carrier says where in a request the key travels.
	Carrier Carrier
	// Encoding says how the key is spelled in a header.
	Encoding Encoding
	// Key says which keys the API takes.
	Key KeyRule
	// Methods that the API honours keys on.
	Methods []string
	// Window says how long the API knows a key.
	Window Window

	// AccountHeaders names the request headers that select whose keys these are, such
	// as Stripe-Account. They join the account of an operation.
	AccountHeaders []string
	// Fingerprint names the request headers that belong to what a key names,
	// besides Content-Type, which always does.
	Fingerprint []string

	// The matchers, read in this order; the first list with a hit decides.

	// AlreadyDone: the operation took effect before; Lookup may find its result.
	AlreadyDone []Matcher
	// Mismatch: the key belongs to another request.
	Mismatch []Matcher
	// Poisoned: the key can never succeed again, and what happened is not said.
	Poisoned []Matcher
	// BusinessConflict: a final answer that only looks like a key conflict.
	BusinessConflict []Matcher
	// InProgress: the first request with this key is still being worked on.
	InProgress []Matcher

	// Replay marks the stored answer to an earlier request. It is read beside
	// the lists above. Its absence proves nothing.
	Replay []Matcher

	// NotActed lists the statuses of requests that the API has not acted upon.
	NotActed NotActed
	// Stored says which answers the API keeps under a key.
	Stored Stored
	// ShouldRetry is the header that advises on another attempt; zero: none.
	ShouldRetry ShouldRetry
	// RetryAfter lists the headers that ask for a wait; the longest wait counts.
	RetryAfter []Hint
	// MinDelay is the least wait between two attempts that the API asks for.
	MinDelay time.Duration

	// Lookup finds the result that an AlreadyDone answer names; nil: none.
	Lookup *Lookup
	// Reconcile says in prose how a person finds out what happened.
	Reconcile string

	// Sources says, for each field by name, where the statement comes from.
	Sources map[string]Source
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

// The places. In Body and Query a key is checked against what the request
// already holds, never inserted.
const (
	Header Place = "header" // Carrier.Name is a header
	Body   Place = "body"   // Carrier.Name is a JSON pointer into the body
	Query  Place = "query"  // Carrier.Name is a query parameter
)

// Carrier is the place and the name of the key.
type Carrier struct {
	Place Place  // where the key travels
	Name  string // of the header or parameter, or the pointer; see Place
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
	MinBytes int // 0: 1
	MaxBytes int // 0: 255
	// Alphabet lists the characters allowed; empty: visible ASCII (0x21-0x7E).
	Alphabet string
	// Format is the shape of the whole key; the zero value is AnyFormat.
	Format Format
}

// Window is how long the server is known to keep a key.
type Window struct {
	// Floor is the time after the first request within which a repeat is safe.
	// It is what the client goes by, also where it is a cautious guess
	// (Published says which).
	Floor time.Duration
	// Published: the API promises Floor. Otherwise Floor is this package's cap.
	Published Fact
}

// Matcher recognises an answer. Every condition that is set must hold.
type Matcher struct {
	// Status lists statuses; empty means any.
	Status []int
	// Header must be present; empty means no condition.
	Header string
	// Has lists words of which a value of Header must have one, as a whole word
	// and without regard to case; a word is a run of letters, digits and any of
	// "-_./+". Empty means any value.
	Has []string
	// Pointer is a JSON pointer (RFC 6901) into the body that must lead to a value;
	// empty means no condition.
	Pointer string
	// Equals lists texts of which the value at Pointer must have one; it must be a
	// string, number or boolean. Empty means any value.
	Equals []string
}

// NotActed lists the statuses by which the server says that it did nothing.
type NotActed struct {
	Again []int // wait as told, then send again
	Stop  []int // sending again would not help
}

// Stored says which answers the server keeps under a key and gives again.
type Stored struct {
	// Success: a 2xx is kept and given again.
	Success Fact
	// Client matches the 4xx answers that come from the server's store, or are
	// final once it has looked there: after a lost answer these settle the
	// matter even without a replay mark.
	Client []Matcher
	// ServerError: a 5xx is kept and given again.
	ServerError Fact
}

// ShouldRetry is a header in which the server advises on another attempt.
type ShouldRetry struct {
	Header string // its name; empty: the API has none
	Yes    string // the value that advises another attempt
	No     string // the value that advises against one
}

// Unit is how a hint is spelled.
type Unit string

// The units.
const (
	HTTPDelay    Unit = "http" // seconds, or a date (RFC 9110 section 10.2.3)
	Milliseconds Unit = "ms"   // a whole number of milliseconds
)

// Hint is a header that says how long to wait.
type Hint struct {
	Header string // its name
	Unit   Unit   // how its value is spelled
}

// Lookup finds a resource that an answer names.
type Lookup struct {
	// Pointer leads to the resource's id in the AlreadyDone answer.
	Pointer string
	// Path is where a same-origin GET finds it; "{path}" stands for the path of
	// the operation, "{id}" for the id.
	Path string
}

// Confidence grades a source.
type Confidence string

// The confidences.
const (
	Primary   Confidence = "primary"   // the specification, or the vendor's own source, read itself
	Excerpt   Confidence = "excerpt"   // an official page, seen in part
	Secondary Confidence = "secondary" // a third party's trace or note
	Assumed   Confidence = "assumed"   // not said anywhere: this package's cautious choice
)

// Source is where a statement comes from.
type Source struct {
	Ref        string     // URL, or repository and path
	Date       string     // when it was read, or its own date
	Confidence Confidence // how sure the statement is
}

// hintsHTTP is Retry-After alone, as RFC 9110 spells it.
func hintsHTTP() []Hint { return []Hint{{Header: "Retry-After", Unit: HTTPDelay}} }

// notActed is what the status itself says in HTTP: 421 (RFC 9110 section
// 15.5.20), 425 (RFC 8470 section 5.2) and 429 (RFC 6585 section 4) were not
// acted upon and may be tried again; 401, 403 and 407 come from authentication,
// which refused the request before anything else was done.
func notActed() NotActed {
	return NotActed{Again: []int{421, 425, 429}, Stop: []int{401, 403, 407}}
}
