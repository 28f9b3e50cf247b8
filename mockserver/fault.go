package mockserver

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Kind is the kind of a Fault. The zero value is None.
type Kind uint8

// The kinds. "Before" means that the request has no effect and claims no key;
// "after" that the server has handled it as if nothing were wrong.
const (
	None        Kind = iota // the server behaves
	DropBefore              // the connection closes without an answer; no effect
	DropAfter               // the effect happens, the answer is lost
	Reset                   // as DropBefore, by a TCP reset
	ResetAfter              // as DropAfter, by a TCP reset
	Hang                    // no effect, no answer, until the client leaves or Delay has passed
	HangAfter               // the effect happens, then as Hang
	SlowBody                // the answer's body trickles over Delay (zero: 10 s)
	CutBody                 // the answer's body ends after Bytes (zero: half) of what was declared
	Answer                  // Status (zero: 503) instead of handling the request; no effect
	AnswerAfter             // the effect happens, and Status (zero: 503) is the answer
	Redirect                // Status (zero: 307) to Location (zero: /moved and the path, the same resource); no effect
	HugeError               // Status (zero: 500) with a body of Bytes (zero: 1 MiB); no effect
	Expire                  // the key is forgotten, as if its window had passed; then the server behaves
	KillIdle                // the server behaves; the next request on the connection is read and the connection closed
	Duplicate               // the request is delivered twice: at once, or again after Delay; the client gets the first answer
	Late                    // the connection closes; the request is handled after the next one with its key, or after Delay
	kindsEnd
)

// kindNames returns the names of all kinds of faults, as scripts and mixes spell them.
func kindNames() [kindsEnd]string {
	return [kindsEnd]string{
		"none", "drop-before", "drop-after", "reset", "reset-after", "hang", "hang-after", "slow-body",
		"cut-body", "answer", "answer-after", "redirect", "huge-error", "expire", "kill-idle",
		"duplicate", "late",
	}
}

// String returns the kind's name in scripts and mixes, such as "drop-after", or kind-N for an unknown kind.
func (k Kind) String() string {
	if k >= kindsEnd {
		return fmt.Sprintf("kind-%d", uint8(k))
	}
	return kindNames()[k]
}

// MarshalText returns the kind's name; the error is always nil.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText sets k to the kind of this name. An unknown name is an error, and leaves k as it was.
func (k *Kind) UnmarshalText(text []byte) error {
	names := kindNames()
	at := slices.Index(names[:], string(text))
	if at < 0 {
		return fmt.Errorf("mockserver: unknown fault %q", text)
	}
	*k = Kind(at)
	return nil
}

// Fault is the misbehaviour of the server for one send. The zero value is none.
type Fault struct {
	// Kind is the kind of misbehaviour; zero: none.
	Kind Kind
	// Status is that of Answer, AnswerAfter, Redirect and HugeError; zero: see
	// the kind.
	Status int
	// RetryAfter is the Retry-After header of Answer, AnswerAfter and
	// HugeError, sent as given; empty: none.
	RetryAfter string
	// Location is that of Redirect. An absolute URL may lead to another origin.
	Location string
	// Delay is the duration of Hang, HangAfter and SlowBody, and the time until
	// the second delivery of Duplicate and the only delivery of Late. For every
	// other kind it is the time that handling takes: a request with an effect
	// holds its key for so long, also when the client leaves.
	Delay time.Duration
	// Bytes is the number of bytes of the body that CutBody and HugeError write;
	// zero: see the kind.
	Bytes int
	// Header and Body replace those of Answer and AnswerAfter; zero: a JSON
	// error, for 409 the profile's "in progress", for 402 a declined payment as
	// the profile's API spells it.
	Header http.Header
	// Body is sent as given; see Header.
	Body string
}

// HugeErrorBytesMax bounds Fault.Bytes: 1 GiB.
const HugeErrorBytesMax = 1 << 30

// Validate returns the first mistake of the fault as one line, or nil.
func (f Fault) Validate() error {
	switch {
	case f.Kind >= kindsEnd:
		return fmt.Errorf("mockserver: unknown fault %d", uint8(f.Kind))
	case f.Delay < 0:
		return fmt.Errorf("mockserver: %v: negative delay %v", f.Kind, f.Delay)
	case f.Bytes < 0 || f.Bytes > HugeErrorBytesMax:
		return fmt.Errorf("mockserver: %v: bytes %d is not in 0..%d", f.Kind, f.Bytes, HugeErrorBytesMax)
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("mockserver: %v: status %d is not in 200..599", f.Kind, f.Status)
	case f.Kind == Redirect && f.Status != 0 && (f.Status < 300 || f.Status > 399):
		return fmt.Errorf("mockserver: %v: status %d is not in 300..399", f.Kind, f.Status)
	}
	if f.Location != "" {
		if _, err := url.Parse(f.Location); err != nil {
			return errors.New("mockserver: location is not a URL")
		}
	}
	return nil
}

// status returns the status that the fault answers with: its own, or the usual one of its kind.
func (f Fault) status() int {
	if f.Status != 0 {
		return f.Status
	}
	switch f.Kind {
	case Redirect:
		return http.StatusTemporaryRedirect
	case HugeError:
		return http.StatusInternalServerError
	default:
		return http.StatusServiceUnavailable
	}
}

// before reports whether the fault prevents that the request is handled: it then has no effect, and does not use the key. Late is among them, though
// that handles the request some time afterwards.
func (f Fault) before() bool {
	switch f.Kind {
	case DropBefore, Reset, Hang, Answer, Redirect, HugeError, Late:
		return true
	default:
		return false
	}
}

// holds reports whether the Delay of the fault is the time that the handler takes. For the other kinds it is the time of the fault itself, such as
// that of a slow body.
func (f Fault) holds() bool {
	switch f.Kind {
	case SlowBody, HangAfter, Duplicate, Late:
		return false
	default:
		return true
	}
}
