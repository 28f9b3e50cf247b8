package sign

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Encoding spells bytes as text.
type Encoding uint8

// The encodings.
const (
	Hex    Encoding = iota // lower-case hexadecimal digits
	Base64                 // RFC 4648 section 4, with padding
)

// encode returns b as text, in base64 or in hexadecimal digits.
func (e Encoding) encode(b []byte) string {
	if e == Base64 {
		return base64.StdEncoding.EncodeToString(b)
	}
	return hex.EncodeToString(b)
}

// decode is the inverse of encode. Hexadecimal digits may be of either case.
func (e Encoding) decode(text string) ([]byte, error) {
	if e == Base64 {
		return base64.StdEncoding.Strict().DecodeString(text)
	}
	return hex.DecodeString(text)
}

// Layout describes one API's own form of signatures; [Layout.Authorize] and [Layout.Verifier] are its two sides. The zero
// value is not usable: Key, Text and Headers are required.
type Layout struct {
	_ struct{}
	// Key signs and verifies: see [HMAC], [HMACFunc], [PrivateKey] and [PublicKey].
	Key Key
	// Text is the template of the signed text. In it
	//
	//	{method}     is the method
	//	{authority}  the host in lower case, with its port unless that is the scheme's own
	//	{path}       the path as sent, "/" at least
	//	{query}      the query as sent, without its question mark
	//	{target}     path and query as sent, with the question mark between
	//	{timestamp}  the time of the attempt in the unit of Unit, since 1970
	//	{nonce}      32 hexadecimal digits, of 128 random bits made for the attempt
	//	{key}        the idempotency key, byte for byte as sent; empty if there is none
	//	{body}       the body
	//	{digest}     SHA-256 of the body, in the encoding Digest
	// It must contain {timestamp}, one of {body} and {digest}, and (except with KeyElsewhere) {key}. Separate them, best by
	// line feeds, since only the body can contain those: without a separator two different requests can have one text.
	Text string
	// Headers are set on each attempt, by name. In their values, {timestamp}, {nonce} and {digest} are as in Text, and
	// {signature} is the signature in Encoding. One of them must contain {signature}, and {timestamp} and {nonce} if Text
	// does.
	Headers map[string]string
	// KeyHeader is the header of the idempotency key, that of the profile. It is only read here. Zero:
	// [DefaultKeyHeader].
	KeyHeader string
	// KeyElsewhere allows a Text without {key}: for APIs with the key in the body or the query, as far as Text covers
	// them, and for APIs with signatures that do not cover the key. In the latter case an attacker can send a captured
	// request under another key.
	KeyElsewhere bool
	// Encoding is that of {signature}, Digest that of {digest}. Zero: [Hex].
	Encoding, Digest Encoding
	// Unit is the unit of {timestamp}. Zero: time.Second.
	Unit time.Duration
}

// layout is a valid Layout with its defaults and parsed templates. It is not changed after read.
type layout struct {
	Layout
	text    template
	headers map[string]template
}

// Authorize returns a function that signs a request: it sets the headers of the Layout and changes nothing else. The
// function is safe for concurrent use. An error names the wrong field of the Layout.
func (l Layout) Authorize() (func(*http.Request) error, error) {
	if l.Key.sign == nil {
		return nil, errors.New("sign: Layout.Key cannot sign: it is empty or public")
	}
	own, err := l.read()
	if err != nil {
		return nil, err
	}
	return own.authorize, nil
}

// Verifier returns the check of the Layout's signatures. Text must contain {nonce}, since only a nonce distinguishes an honest
// retry from a replayed request. An error names the wrong field.
func (l Layout) Verifier(f Freshness) (Verify, error) {
	if l.Key.verify == nil {
		return nil, errors.New("sign: Layout.Key cannot verify: it is empty")
	}
	own, err := l.read()
	if err != nil {
		return nil, err
	}
	if !own.text.has("nonce") {
		return nil, errors.New("sign: Layout.Text has no {nonce}, without which a request that is played again cannot be recognised")
	}
	seen, err := newNonces(f)
	if err != nil {
		return nil, err
	}
	return func(req *http.Request, body []byte) error {
		nonce, at, err := own.check(req, body)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSignature, err)
		}
		return seen.accept(nonce, at)
	}, nil
}

// read checks all fields but Key, fills in the defaults, and parses the templates. A signature must cover the time, the body or its digest and,
// unless KeyElsewhere is set, the idempotency key.
func (l Layout) read() (*layout, error) {
	if l.KeyHeader == "" {
		l.KeyHeader = DefaultKeyHeader
	}
	if l.Unit == 0 {
		l.Unit = time.Second
	}
	own := &layout{Layout: l, headers: map[string]template{}}
	var err error
	own.text, err = parse(l.Text, []string{"method", "authority", "path", "query", "target", "timestamp", "nonce", "key", "body", "digest"})
	switch {
	case err != nil:
		return nil, fmt.Errorf("sign: Layout.Text: %w", err)
	case !own.text.has("timestamp"):
		return nil, errors.New("sign: Layout.Text has no {timestamp}")
	case !own.text.has("body") && !own.text.has("digest"):
		return nil, errors.New("sign: Layout.Text has neither {body} nor {digest}")
	case !own.text.has("key") && !l.KeyElsewhere:
		return nil, errors.New("sign: Layout.Text has no {key}; set KeyElsewhere if the key is in the body or cannot be covered")
	case l.Unit < 0 || l.Encoding > Base64 || l.Digest > Base64:
		return nil, fmt.Errorf("sign: Layout: a negative Unit of %v, or an unknown Encoding or Digest", l.Unit)
	}
	return own, own.readHeaders()
}

// readHeaders parses the templates of the headers that the signature adds. A verifier must find the signature in them, and the time and the nonce if the
// signed text has them.
func (l *layout) readHeaders() error {
	found := map[string]bool{}
	for name, value := range l.Headers {
		if !usableName(name) || strings.EqualFold(name, l.KeyHeader) {
			return fmt.Errorf("sign: Layout.Headers: %q cannot be set", name)
		}
		t, err := parse(value, []string{"signature", "timestamp", "nonce", "digest"})
		if err == nil {
			err = t.readable()
		}
		if err != nil {
			return fmt.Errorf("sign: Layout.Headers[%q]: %w", name, err)
		}
		for _, p := range t {
			found[p.name] = true
		}
		l.headers[name] = t
	}
	for _, name := range []string{"signature", "timestamp", "nonce"} {
		if !found[name] && (name == "signature" || l.text.has(name)) {
			return fmt.Errorf("sign: Layout.Headers: none has {%s}", name)
		}
	}
	return nil
}

// authorize signs a request with the present time (counted in units of Unit) and a new nonce, and sets the headers. After an error no header is set.
func (l *layout) authorize(req *http.Request) error {
	body, err := bodyOf(req)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	values := map[string]string{
		"timestamp": strconv.FormatInt(time.Now().UnixNano()/int64(l.Unit), 10),
		"nonce":     newNonce(),
	}
	text, err := l.signed(req, body, values)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	signature, err := l.Key.sign([]byte(text))
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	values["signature"] = l.Encoding.encode(signature)
	if req.Header == nil {
		req.Header = http.Header{}
	}
	for name, t := range l.headers {
		req.Header.Set(name, t.fill(values))
	}
	return nil
}

// signed returns the text that is signed for a request: the template filled in. values has the time and the nonce; signed adds the rest to it. Without {key}
// in the template the request needs no key.
func (l *layout) signed(req *http.Request, body []byte, values map[string]string) (string, error) {
	if l.text.has("key") {
		key, err := keyOf(req, l.KeyHeader)
		if err != nil {
			return "", err
		}
		values["key"] = key
	}
	sum := sha256.Sum256(body)
	values["method"], values["authority"], values["path"] = req.Method, authority(req), path(req)
	values["query"], values["target"] = req.URL.RawQuery, target(req)
	values["body"], values["digest"] = string(body), l.Digest.encode(sum[:])
	return l.text.fill(values), nil
}

// check verifies the signature of an incoming request, without its freshness, and returns its nonce and time. An error does not
// name the signature; the caller wraps it.
func (l *layout) check(req *http.Request, body []byte) (nonce string, at time.Time, err error) {
	given := map[string]string{}
	for name, t := range l.headers {
		lines := req.Header.Values(name)
		if len(lines) != 1 {
			return "", at, fmt.Errorf("the header %s is there %d times; it has to be there once", name, len(lines))
		}
		if err := t.read(lines[0], given); err != nil {
			return "", at, fmt.Errorf("the header %s: %w", name, err)
		}
	}
	stamp, err := strconv.ParseInt(given["timestamp"], 10, 64)
	if err != nil || stamp < 0 || stamp > (1<<62)/int64(l.Unit) { // stamp*Unit must fit into an int64
		return "", at, errors.New("its timestamp is no number of this time")
	}
	signature, err := l.Encoding.decode(given["signature"])
	if err != nil {
		return "", at, errors.New("it is not spelled as it should be")
	}
	values := map[string]string{"timestamp": given["timestamp"], "nonce": given["nonce"]}
	text, err := l.signed(req, body, values)
	if err != nil {
		return "", at, err
	}
	if digest, told := given["digest"]; told && digest != values["digest"] {
		return "", at, errors.New("the digest is not that of the body")
	}
	if err := l.Key.verify([]byte(text), signature); err != nil {
		return "", at, err
	}
	return given["nonce"], time.Unix(0, stamp*int64(l.Unit)), nil
}
