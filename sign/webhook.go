package sign

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Webhook is the way in which an API signs its events: HMAC-SHA256 under a shared secret. It is data. [WebhookOf] has the known ones. The
// zero value is not usable.
type Webhook struct {
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

// WebhookOf returns the scheme of this name: adyen, github, gocardless, shopify, square or stripe. ok is false if there is none.
func WebhookOf(name string) (scheme Webhook, ok bool) {
	for _, w := range []Webhook{
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
	return Webhook{}, false
}

// WantsURL reports whether the address of the endpoint is part of the signed text.
func (w Webhook) WantsURL() bool { return strings.Contains(w.Text, "{url}") }

// Timed reports whether a signature covers a time.
func (w Webhook) Timed() bool { return strings.Contains(w.Text, "{timestamp}") }

// WebhookToleranceMax bounds WebhookCheck.Tolerance.
const WebhookToleranceMax = time.Hour

// WebhookCheck is the receiver's part of a scheme.
type WebhookCheck struct {
	_ struct{}
	// Secrets are the secrets, each of which may have signed: while one is replaced by another, there are two.
	Secrets [][]byte
	// URL is the address of the endpoint, as the API knows it. Required for a scheme that signs it.
	URL string
	// Tolerance is how far a signed time may lie behind this clock, and ahead of it. Zero: 5 min. At most WebhookToleranceMax.
	Tolerance time.Duration
}

// WebhookVerifier checks the signatures of an API's events, for oncehttp.WebhookConfig. [Webhook.Verifier] makes one. It is safe for
// concurrent use. It prints as the name of its scheme.
type WebhookVerifier struct {
	scheme Webhook
	verify func(header http.Header, body []byte, value func(pointer string) (string, bool)) error // a function, since fmt does not print what it holds
}

// Scheme returns the name of the scheme.
func (v *WebhookVerifier) Scheme() string {
	if v == nil {
		return ""
	}
	return v.scheme.Name
}

// String is "sign.WebhookVerifier(NAME)".
func (v *WebhookVerifier) String() string { return "sign.WebhookVerifier(" + v.Scheme() + ")" }

// GoString is [WebhookVerifier.String].
func (v *WebhookVerifier) GoString() string { return v.String() }

// Fields returns the pointers to the signed values of an event; nil if a signature covers the whole body.
func (v *WebhookVerifier) Fields() []string {
	if v == nil {
		return nil
	}
	return slices.Clone(v.scheme.Fields)
}

// Verify checks the signature of a request with a header and a raw body. For a scheme that signs fields it checks the signature of one event: value
// returns the text of the event at a pointer, empty if it is absent; ok is false for a value that is no text, number or boolean. A text with a
// colon is not to be relied on: other values have the same signature. Errors match [ErrSignature] or [ErrTime].
func (v *WebhookVerifier) Verify(header http.Header, body []byte, value func(pointer string) (text string, ok bool)) error {
	if v == nil || v.verify == nil {
		return fmt.Errorf("%w: the verifier is nil or zero", ErrSignature)
	}
	return v.verify(header, body, value)
}

// webhook is a Webhook with checked settings.
type webhook struct {
	Webhook
	WebhookCheck
	text template
}

// Verifier returns a verifier of the scheme. An error names the wrong setting.
func (w Webhook) Verifier(c WebhookCheck) (*WebhookVerifier, error) {
	own := &webhook{Webhook: w, WebhookCheck: c}
	if own.Tolerance == 0 {
		own.Tolerance = defaultMaxAge
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
	w.Fields = slices.Clone(w.Fields)
	return &WebhookVerifier{scheme: w, verify: own.verify}, nil
}

func (w *webhook) check() (err error) {
	if len(w.Fields) == 0 {
		w.text, err = parse(w.Text, []string{"body", "timestamp", "url"})
	}
	switch {
	case err != nil:
		return fmt.Errorf("sign: Webhook.Text: %w", err)
	case len(w.Fields) == 0 && !w.text.has("body"):
		return errors.New("sign: Webhook.Text has no {body}")
	case (w.Header == "") == (w.Field == ""), (len(w.Fields) == 0) == (w.Header == ""):
		return errors.New("sign: Webhook: want a Header, or a Field and Fields")
	case w.text.has("timestamp") && !w.List:
		return errors.New("sign: Webhook.Text has a {timestamp}, and no List has it")
	case w.WantsURL() && w.URL == "":
		return errors.New("sign: WebhookCheck.URL: the scheme signs the address of the endpoint")
	case len(w.Secrets) == 0:
		return errors.New("sign: WebhookCheck.Secrets is empty")
	case w.Tolerance < 0 || w.Tolerance > WebhookToleranceMax:
		return fmt.Errorf("sign: WebhookCheck.Tolerance: %v, want at most %v", w.Tolerance, WebhookToleranceMax)
	}
	return nil
}

// key returns the key of a secret.
func (w *webhook) key(secret []byte) ([]byte, error) {
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

func (w *webhook) verify(header http.Header, body []byte, value func(string) (string, bool)) error {
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
	if err := w.matches([]byte(w.text.fill(values)), signatures); err != nil {
		return err
	}
	switch age := time.Since(at); {
	case !w.text.has("timestamp"):
	case age > w.Tolerance:
		return fmt.Errorf("%w: it is older than %v", ErrTime, w.Tolerance)
	case age < -w.Tolerance:
		return fmt.Errorf("%w: it is more than %v ahead of this clock", ErrTime, w.Tolerance)
	}
	return nil
}

// read reads the header's signatures and time. values gets the timestamp.
func (w *webhook) read(line string, values map[string]string) (signatures []string, at time.Time, err error) {
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
			if err != nil || seconds < 0 || seconds > 1<<40 {
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

// verifyFields holds the signature of an event with signed fields to these.
func (w *webhook) verifyFields(value func(string) (string, bool)) error {
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

// matches reports an error unless one of the signatures is one of the secrets' over the text.
func (w *webhook) matches(text []byte, signatures []string) error {
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

// Sign returns a request header with the signature of a body, as the API makes it at a time, for tests. A scheme that signs fields has none: see
// SignFields.
func (w Webhook) Sign(secret []byte, url string, at time.Time, body []byte) http.Header {
	text, stamp := w.Text, strconv.FormatInt(at.Unix(), 10)
	t, err := parse(text, []string{"body", "timestamp", "url"})
	if err != nil || w.Header == "" {
		return http.Header{}
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(t.fill(map[string]string{"body": string(body), "timestamp": stamp, "url": url})))
	line := w.Prefix + w.Encoding.encode(h.Sum(nil))
	if w.List {
		line = "t=" + stamp + "," + line
	}
	return http.Header{http.CanonicalHeaderKey(w.Header): {line}}
}

// SignFields returns the signature of an event with signed fields, for tests. value returns the text at a pointer.
func (w Webhook) SignFields(secret []byte, value func(pointer string) string) (string, error) {
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
