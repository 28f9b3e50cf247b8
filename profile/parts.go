package profile

import "time"

// Fact is a three-valued answer; the zero value is Unknown.
type Fact uint8

// The values of a Fact.
const (
	Unknown Fact = iota // the API does not say
	No                  // the API denies it
	Yes                 // the API confirms it
)

// String returns "unknown", "no" or "yes".
func (f Fact) String() string {
	switch f {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// Place is the place of the key in a request.
type Place string

// The places. With Body, Form and Query the request must hold the key already, or
// Config.InsertKey lets the client put it there.
const (
	Header Place = "header" // Carrier.Name is a header
	Body   Place = "body"   // Carrier.Name is a JSON pointer into the body
	Form   Place = "form"   // Carrier.Name is a field of an application/x-www-form-urlencoded body, such as meta[key]
	Query  Place = "query"  // Carrier.Name is a query parameter

	// Nowhere: the API takes no key, and none is sent; Carrier.Name is empty. The
	// client sends such an operation again only if nothing of it was sent, and holds
	// one with an unknown outcome. The exception is an API that accepts a business
	// reference only once, by Duplicate and Reference.
	Nowhere Place = "none"
)

// Carrier is the place and the name of the key.
type Carrier struct {
	Place Place  `json:"place"` // of the key
	Name  string `json:"name"`  // of the header, field or parameter, or the pointer; see Place
}

// BodyFormat is the format of a request's body.
type BodyFormat string

// The formats of bodies.
const (
	JSONBody BodyFormat = "json" // application/json, or a type that ends in +json
	FormBody BodyFormat = "form" // application/x-www-form-urlencoded; a member b of a is a[b]
)

// Comparison is an API's way of comparing the bodies of two requests.
type Comparison string

// The comparisons.
const (
	ByBytes  Comparison = "bytes"  // byte for byte
	ByValues Comparison = "values" // by the values: order and spelling do not count
)

// BodyRule describes the bodies of an API. The client itself always compares bodies by their bytes.
type BodyRule struct {
	// Formats lists the formats accepted by the API, the default first. Empty: unknown; JSON is the default.
	Formats []BodyFormat `json:"formats,omitempty"`
	// Compared is the comparison of two requests with one key. Empty: unknown.
	Compared Comparison `json:"compared,omitempty"`
}

// Default returns the first of Formats; JSONBody if they are unknown.
func (b BodyRule) Default() BodyFormat {
	if len(b.Formats) == 0 {
		return JSONBody
	}
	return b.Formats[0]
}

// Encoding is the spelling of a key in a header.
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

// WindowUnknown is the window of an API without a known one: one hour. No server has promised it, and a few publish shorter
// windows.
const WindowUnknown = time.Hour

// WindowCap is the longest window in a file without a server's promise: 24 hours, the window that most publishing APIs have.
const WindowCap = 24 * time.Hour

// Window is the time for which the server keeps a key.
type Window struct {
	// Floor is the time after the first request within which a repeat is safe.
	// The client uses it even if it is only a cautious guess (see Published).
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
	// Has lists words; a value of Header must have one of them as a whole word,
	// regardless of case. A word is a run of letters, digits and any of "-_./+".
	// Empty means any value.
	Has []string `json:"has,omitempty"`
	// Pointer is a JSON pointer (RFC 6901) into the body that must lead to a value;
	// empty means no condition.
	Pointer string `json:"pointer,omitempty"`
	// Equals lists texts; the value at Pointer, a string, number or boolean, must
	// have one of them. Empty means any value.
	Equals []string `json:"equals,omitempty"`
}

// NotActed lists the statuses by which the server denies any effect.
type NotActed struct {
	Again []int `json:"again,omitempty"` // wait as asked, then send again
	Stop  []int `json:"stop,omitempty"`  // sending again would not help
}

// Own describes the API's own answers that look like those of a proxy, a gateway or a maintenance page in front of it. The
// zero value is the cautious one: none are known.
type Own struct {
	// HTML: the API's successes may be HTML documents, also for a request without HTML in its Accept.
	HTML Fact `json:"html,omitzero"`
	// Bare lists the 4xx of the API itself with an HTML document or without a body. Any other such answer that no matcher
	// recognises proves only the refusal of this one send.
	Bare []int `json:"bare,omitempty"`
	// SeeOther: the API's successes may be a 303 to another place of its origin. Without it, an operation that is answered so is held, but for one
	// of Transport: what stands before an API may send to a login page with a 303.
	SeeOther Fact `json:"see_other,omitzero"`
}

// Stored describes the answers that the server keeps under a key and gives again.
type Stored struct {
	// Success: a repeat of a 2xx is answered 2xx again, with the kept answer or the present state.
	Success Fact `json:"success,omitzero"`
	// Client matches the 4xx answers that come from the server's store, or are
	// final after a look into it. After a lost answer they settle the operation
	// even without a replay mark. The profiles of the draft name none: see KeptErrors.
	Client []Matcher `json:"client,omitempty"`
	// ServerError: a 5xx is kept and given again.
	ServerError Fact `json:"server_error,omitzero"`
}

// ShouldRetry is a header in which the server advises on another attempt.
type ShouldRetry struct {
	Header string `json:"header"`        // its name; empty: the API has none
	Yes    string `json:"yes,omitempty"` // the value that advises another attempt
	No     string `json:"no,omitempty"`  // the value that advises against one
	// Absent is the advice of a 4xx or 5xx without the header: No is as the value No, unknown is no advice, and Yes is not
	// allowed in a file. Only the API's own answers count: with a body other than HTML, and neither 502, 503 nor 504.
	Absent Fact `json:"absent,omitzero"`
}

// Unit is the spelling of a hint.
type Unit string

// The units.
const (
	HTTPDelay    Unit = "http" // seconds, or a date (RFC 9110 section 10.2.3)
	Milliseconds Unit = "ms"   // a whole number of milliseconds
)

// Hint is a header, or a value in a JSON body, with the time to wait. One of Header and Pointer is set.
type Hint struct {
	Header  string `json:"header,omitempty"`  // its name
	Pointer string `json:"pointer,omitempty"` // a JSON pointer to a string or number in the answer's body
	Unit    Unit   `json:"unit"`              // the spelling of its value
}

// Lookup finds the resource named by an answer.
type Lookup struct {
	// Pointer leads to the resource's id in the AlreadyDone answer.
	Pointer string `json:"pointer"`
	// Path is the target of a same-origin GET for it; "{path}" stands for the path
	// of the operation, "{id}" for the id.
	Path string `json:"path"`
}

// Token describes a separate request for a token, which is in its 2xx answer. An unused token costs nothing.
type Token struct {
	// Method of that request, which has no body: POST or GET. Empty: POST.
	Method string `json:"method,omitempty"`
	// Path is its target, at the origin of the operation. "{path}" stands for the path of the operation, and "{/pointer}"
	// for the value at this pointer in its body, percent-encoded. Empty: the client's Config.Token makes the request.
	Path string `json:"path"`
	// Pointer is the JSON pointer to the token in the answer.
	Pointer string `json:"pointer"`
}

// Cancel describes the request that undoes the effect of a key: a POST with a JSON body. Its success proves neither an effect
// nor its absence.
type Cancel struct {
	// For is the path of the operations to be undone.
	For string `json:"for"`
	// Path is the target of the POST, at the origin of the operation.
	Path string `json:"path"`
	// Pointer is the JSON pointer to the key in its body, such as /idempotency_key.
	Pointer string `json:"pointer"`
}

// Reference finds resources by values of the request's own body. Of a form /a/b is the field a[b].
type Reference struct {
	// Path is the target of a same-origin GET for them. "{path}" stands for the path of the operation, and "{/pointer}"
	// for the value at this JSON pointer in its body, percent-encoded.
	Path string `json:"path"`
	// List is the JSON pointer to the list of resources in the answer; empty: the answer is the one resource, and 404
	// means none.
	List string `json:"list,omitempty"`
	// Same lists the values that must be equal in the operation's request and its resource: the reference itself, amount,
	// currency. It holds at least one.
	Same []Same `json:"same"`
	// FoundWithin is the time after the last send from which the lookup finds every resource for certain. From then on, a
	// lookup without a result proves that there is none. Zero: it never does.
	FoundWithin time.Duration `json:"-"` // found_within in files, such as "60s"
}

// Same names one value in two places, by JSON pointers. Numbers are compared by value, other text as it is.
type Same struct {
	Request  string `json:"request"`  // in the request's body
	Resource string `json:"resource"` // in the resource
}
