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

func (e Encoding) encode(b []byte) string {
	if e == Base64 {
		return base64.StdEncoding.EncodeToString(b)
	}
	return hex.EncodeToString(b)
}

func (e Encoding) decode(text string) ([]byte, error) {
	if e == Base64 {
		return base64.StdEncoding.Strict().DecodeString(text)
	}
	return hex.DecodeString(text)
}

// Layout is a signature as one API lays it out. Both sides of it are the methods [Layout.Authorize] and
// [Layout.Verifier]. The zero value is not usable: Key, Text and Headers are required.
type Layout struct {
	_ struct{}
	// Key signs and verifies: see [HMAC], [HMACFunc], [PrivateKey] and [PublicKey].
	Key Key
	// Text is what is signed. In it
	//
	//	{method}     is the method
	//	{authority}  the host in lower case, with its port unless that is the scheme's own
	//	{path}       the path as it is sent, "/" at least
	//	{query}      the query as it is sent, without its question mark
	//	{target}     path and query as they are sent, with the question mark between
	//	{timestamp}  the time of the attempt in the unit of Unit, since 1970
	//	{nonce}      32 hexadecimal digits, of 128 random bits made for the attempt
	//	{key}        the idempotency key, byte for byte as it is sent; empty where there is none
	//	{body}       the body
	//	{digest}     SHA-256 of the body, spelled as Digest says
	//
	// It must hold {timestamp}, one of {body} and {digest}, and {key} unless KeyElsewhere says otherwise. Separate them,
	// best by line feeds, which only the body can hold: without a separator two different requests can have one text.
	Text string
	// Headers are set on each attempt, by name. In their values, {timestamp}, {nonce} and {digest} are as in Text, and
	// {signature} is the signature, spelled as Encoding says. {signature} must be in one of them, {timestamp} and {nonce}
	// too if Text has them.
	Headers map[string]string
	// KeyHeader is the header of the idempotency key, as the profile has it. It is never set here. Zero:
	// [DefaultKeyHeader].
	KeyHeader string
	// KeyElsewhere allows a Text without {key}: of APIs whose key is in the body or the query, which Text covers, or
	// whose signature does not cover it. In the latter case who has captured a request can send it under another key.
	KeyElsewhere bool
	// Encoding spells {signature}, Digest spells {digest}. Zero: [Hex].
	Encoding, Digest Encoding
	// Unit is the unit of {timestamp}. Zero: time.Second.
	Unit time.Duration
}

// layout is a Layout that was checked and read.
type layout struct {
	Layout
	text    template
	headers map[string]template
}

// Authorize returns what signs a request: it sets the headers of the Layout and changes nothing else. It is safe for
// concurrent use. An error names the field of the Layout that is wrong.
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

// Verifier returns what checks the signatures of the Layout. Text must hold {nonce}, since without one an honest retry
// cannot be told from a request that is played again. An error names the field that is wrong.
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

// read checks the fields, fills in the defaults, and reads the templates.
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

// signed is the text that is signed for a request. values has timestamp and nonce, and gets the rest.
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

// check holds the signature of a request that has arrived to its text, and returns nonce and time.
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
	if err != nil || stamp < 0 || stamp > (1<<62)/int64(l.Unit) {
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
