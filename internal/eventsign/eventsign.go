// Package eventsign holds the schemes by which APIs sign their events. Package sign shows them.
package eventsign

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scheme is the way in which an API signs its events: HMAC-SHA256 under a shared secret. It is data. [Of] has the known ones. The
// zero value is not usable.
type Scheme struct {
	_ struct{}
	// Name is the name of the scheme, such as "stripe".
	Name string
	// Header is the header with the signature. Empty: each event of the body has a signature of its own, at Field.
	Header string
	// Prefix stands before each signature in the header, such as "sha256=".
	Prefix string
	// List: the header is a list of NAME=VALUE with commas between, with the time as t, and any number of signatures after Prefix.
	List bool
	// Text is the signed text. In it {body} is the raw body, {timestamp} the signed time, and {url} the address of the endpoint as the API
	// knows it.
	Text string
	// Field is the JSON pointer to the signature of an event, in the event. Fields are the pointers to the signed values; the text is these
	// values with colons between, and an absent value is empty. Only these values are signed.
	Field  string
	Fields []string
	// Encoding spells the signature. HexKey: the secret is the text of hexadecimal digits.
	Encoding Encoding
	HexKey   bool
	// Source is the page of the API's documentation with the scheme, and its date.
	Source string
}

// Of returns the scheme of this name: adyen, github, gocardless, shopify, square or stripe. ok is false if there is none. A scheme signs Text and puts
// the signature in Header behind Prefix (List: among other values); adyen signs the values at Fields of each event, and puts the signature at Field.
func Of(name string) (scheme Scheme, ok bool) {
	for _, w := range []Scheme{
		{Name: "adyen", Field: "/additionalData/hmacSignature", Encoding: Base64, HexKey: true, Fields: []string{
			"/pspReference", "/originalReference", "/merchantAccountCode", "/merchantReference", "/amount/value", "/amount/currency", "/eventCode", "/success",
		}, Source: "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures (2026-05-23)"},
		{Name: "github", Header: "X-Hub-Signature-256", Prefix: "sha256=", Text: "{body}",
			Source: "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries (2026-11)"},
		{Name: "gocardless", Header: "Webhook-Signature", Text: "{body}",
			Source: "https://developer.gocardless.com/getting-started/stay-up-to-date-with-webhooks-v2 (2026-11)"},
		{Name: "shopify", Header: "X-Shopify-Hmac-Sha256", Text: "{body}", Encoding: Base64,
			Source: "https://shopify.dev/docs/apps/build/webhooks/subscribe/https (2026-11)"},
		{Name: "square", Header: "X-Square-Hmacsha256-Signature", Text: "{url}{body}", Encoding: Base64,
			Source: "https://developer.squareup.com/docs/webhooks/step3validate (2026-11)"},
		{Name: "stripe", Header: "Stripe-Signature", Prefix: "v1=", List: true, Text: "{timestamp}.{body}",
			Source: "https://docs.stripe.com/webhooks/signature (2026-11)"},
	} {
		if w.Name == name {
			return w, true
		}
	}
	return Scheme{}, false
}

// WantsURL reports whether the address of the endpoint is part of the signed text.
func (w Scheme) WantsURL() bool { return strings.Contains(w.Text, "{url}") }

// Timed reports whether a signature covers a time.
func (w Scheme) Timed() bool { return strings.Contains(w.Text, "{timestamp}") }

// The errors of a Verify.
var (
	ErrSignature = errors.New("sign: the signature is refused")
	ErrTime      = errors.New("sign: the signature's time is refused")
)

// Encoding spells a signature as text.
type Encoding uint8

// The encodings.
const (
	Hex    Encoding = iota // hexadecimal digits
	Base64                 // RFC 4648 section 4, with padding
)

// encode returns bytes as a text in the encoding.
func (e Encoding) encode(b []byte) string {
	if e == Base64 {
		return base64.StdEncoding.EncodeToString(b)
	}
	return hex.EncodeToString(b)
}

// decode returns the bytes of a text in the encoding.
func (e Encoding) decode(text string) ([]byte, error) {
	if e == Base64 {
		return base64.StdEncoding.Strict().DecodeString(text)
	}
	return hex.DecodeString(text)
}

const defaultTolerance = 5 * time.Minute

// ToleranceMax bounds Check.Tolerance.
const ToleranceMax = time.Hour

// Check is the receiver's part of a scheme.
type Check struct {
	_ struct{}
	// Secrets are the secrets, each of which may have signed: while one is replaced by another, there are two.
	Secrets [][]byte
	// URL is the address of the endpoint, as the API knows it. Required for a scheme that signs it.
	URL string
	// Tolerance is how far a signed time may lie behind this clock, and ahead of it. Zero: 5 min. At most ToleranceMax.
	Tolerance time.Duration
}

// verifier is a Scheme with checked settings.
type verifier struct {
	Scheme
	Check
}

// Verify checks the signature of a request with a header and a raw body. For a scheme that signs fields it checks the signature of one event:
// value returns the text of the event at a pointer, empty if it is absent; ok is false for a value that is no text, number or boolean. A text
// with a colon is not to be relied on: other values have the same signature. It is safe for concurrent use. Errors match [ErrSignature] or
// [ErrTime].
type Verify = func(header http.Header, body []byte, value func(pointer string) (text string, ok bool)) error

// Verifier returns a function that checks signatures of the scheme. An error names the wrong setting.
func (w Scheme) Verifier(c Check) (Verify, error) {
	own := &verifier{Scheme: w, Check: c}
	if own.Tolerance == 0 {
		own.Tolerance = defaultTolerance
	}
	if err := own.check(); err != nil {
		return nil, err
	}
	own.Secrets = make([][]byte, len(c.Secrets))
	for i, secret := range c.Secrets {
		key, err := own.key(secret)
		if err != nil {
			return nil, err
		}
		own.Secrets[i] = key
	}
	own.Fields = slices.Clone(w.Fields)
	return own.verify, nil
}

// check returns an error if the scheme or the settings are not complete, or contradict each other.
func (w *verifier) check() error {
	// The signature is in a header, over Text, or in a field of each event, over Fields: one of the two.
	switch {
	case len(w.Fields) == 0 && !strings.Contains(w.Text, "{body}"):
		return errors.New("sign: Webhook.Text has no {body}")
	case (w.Header == "") == (w.Field == ""), (len(w.Fields) == 0) == (w.Header == ""):
		return errors.New("sign: Webhook: want a Header, or a Field and Fields")
	case w.Timed() && !w.List:
		return errors.New("sign: Webhook.Text has a {timestamp}, and no List has it")
	case w.WantsURL() && w.URL == "":
		return errors.New("sign: WebhookCheck.URL: the scheme signs the address of the endpoint")
	case len(w.Secrets) == 0:
		return errors.New("sign: WebhookCheck.Secrets is empty")
	case w.Tolerance < 0 || w.Tolerance > ToleranceMax:
		return fmt.Errorf("sign: WebhookCheck.Tolerance: %v, want at most %v", w.Tolerance, ToleranceMax)
	}
	return nil
}

// key returns the bytes of a secret to sign with: with HexKey the secret is a text of hexadecimal digits, else it is these bytes.
func (w *verifier) key(secret []byte) ([]byte, error) {
	if !w.HexKey {
		if len(secret) == 0 {
			return nil, errors.New("sign: WebhookCheck.Secrets: one is empty")
		}
		return bytes.Clone(secret), nil
	}
	key, err := hex.DecodeString(string(secret))
	if err != nil || len(key) == 0 {
		return nil, errors.New("sign: WebhookCheck.Secrets: want a secret of hexadecimal digits")
	}
	return key, nil
}

// signaturesMax bounds the signatures of a header.
const signaturesMax = 16

// verify returns ErrSignature unless the event has a valid signature, by the header or, without w.Header, by its fields, and ErrTime if a signed time is
// too far from now. value returns the text at a JSON pointer into the event; it is called for a signature of fields only.
func (w *verifier) verify(header http.Header, body []byte, value func(string) (string, bool)) error {
	if w.Header == "" {
		return w.verifyFields(value)
	}
	lines := header.Values(w.Header)
	if len(lines) != 1 {
		return fmt.Errorf("%w: the header %s is there %d times; it has to be there once", ErrSignature, w.Header, len(lines))
	}
	values := map[string]string{"body": string(body), "url": w.URL}
	signatures, at, err := w.read(lines[0], values)
	if err != nil {
		return err
	}
	if err := w.matches([]byte(fill(w.Text, values)), signatures); err != nil {
		return err
	}
	switch age := time.Since(at); {
	case !w.Timed(): // the signature covers no time
	case age > w.Tolerance:
		return fmt.Errorf("%w: it is older than %v", ErrTime, w.Tolerance)
	case age < -w.Tolerance:
		return fmt.Errorf("%w: it is more than %v ahead of this clock", ErrTime, w.Tolerance)
	}
	return nil
}

// read returns the signatures in a line of the header, and their time. values gets the text of the time as "timestamp". A header that is no list has
// one signature and no time; a list has pairs such as t=TIME,v1=SIGNATURE with commas between, and any number of signatures up to signaturesMax.
func (w *verifier) read(line string, values map[string]string) (signatures []string, at time.Time, err error) {
	if !w.List {
		signature, found := strings.CutPrefix(line, w.Prefix)
		if !found {
			return nil, at, fmt.Errorf("%w: the header %s does not begin with %s", ErrSignature, w.Header, w.Prefix)
		}
		return []string{signature}, at, nil
	}
	for part := range strings.SplitSeq(line, ",") {
		part = strings.TrimSpace(part)
		stamp, isTime := strings.CutPrefix(part, "t=")
		signature, isSignature := strings.CutPrefix(part, w.Prefix)
		switch _, twice := values["timestamp"]; {
		case isTime && twice, isSignature && len(signatures) == signaturesMax:
			return nil, at, fmt.Errorf("%w: the header %s has two times, or over %d signatures", ErrSignature, w.Header, signaturesMax)
		case isTime:
			seconds, err := strconv.ParseInt(stamp, 10, 64)
			if err != nil || seconds < 0 || seconds > 1<<40 { // far in the future, and no overflow of a time
				return nil, at, fmt.Errorf("%w: its time is no number of seconds", ErrSignature)
			}
			values["timestamp"], at = stamp, time.Unix(seconds, 0)
		case isSignature:
			signatures = append(signatures, signature)
		}
	}
	if values["timestamp"] == "" {
		return nil, at, fmt.Errorf("%w: the header %s has no time", ErrSignature, w.Header)
	}
	return signatures, at, nil
}

// verifyFields checks the signature at w.Field of an event: it must be over the values at w.Fields, joined by colons. value returns the text at a
// JSON pointer into the event; false: the value is no text, number or boolean.
func (w *verifier) verifyFields(value func(string) (string, bool)) error {
	signature, ok := value(w.Field)
	if !ok || signature == "" {
		return fmt.Errorf("%w: nothing is at %s", ErrSignature, w.Field)
	}
	texts := make([]string, len(w.Fields))
	for i, field := range w.Fields {
		if texts[i], ok = value(field); !ok {
			return fmt.Errorf("%w: the value at %s is none", ErrSignature, field)
		}
	}
	return w.matches([]byte(strings.Join(texts, ":")), []string{signature})
}

// matches returns an error unless one of the signatures was made over the text with one of the secrets. Signatures that cannot be decoded are passed over.
func (w *verifier) matches(text []byte, signatures []string) error {
	for _, signature := range signatures {
		given, err := w.Encoding.decode(signature)
		if err != nil {
			continue
		}
		for _, secret := range w.Secrets {
			h := hmac.New(sha256.New, secret)
			h.Write(text)
			if hmac.Equal(h.Sum(nil), given) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: it does not match", ErrSignature)
}

// fill puts values in the places of their names, in one pass: a value is never read as a name.
func fill(text string, values map[string]string) string {
	return strings.NewReplacer("{body}", values["body"], "{timestamp}", values["timestamp"], "{url}", values["url"]).Replace(text)
}

// Sign returns a request header with the signature of a body, as the API makes it at a time, for tests. A scheme that signs fields has none: see
// SignFields.
func (w Scheme) Sign(secret []byte, url string, at time.Time, body []byte) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	if w.Header == "" {
		return http.Header{}
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(fill(w.Text, map[string]string{"body": string(body), "timestamp": stamp, "url": url})))
	line := w.Prefix + w.Encoding.encode(h.Sum(nil))
	if w.List {
		line = "t=" + stamp + "," + line
	}
	return http.Header{http.CanonicalHeaderKey(w.Header): {line}}
}

// SignFields returns the signature of an event with signed fields, for tests. value returns the text at a pointer.
func (w Scheme) SignFields(secret []byte, value func(pointer string) string) (string, error) {
	key, err := hex.DecodeString(string(secret))
	if err != nil || len(w.Fields) == 0 {
		return "", errors.New("sign: want a scheme that signs fields, and a secret of hexadecimal digits")
	}
	texts := make([]string, len(w.Fields))
	for i, field := range w.Fields {
		texts[i] = value(field)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(strings.Join(texts, ":")))
	return w.Encoding.encode(h.Sum(nil)), nil
}
