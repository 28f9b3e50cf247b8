package session

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/sign"
)

const signFileBytesMax = 1 << 16

// signUsage is the help of --sign.
const signUsage = "a JSON file that says how each attempt is signed; see help signing"

// signFile is the file of --sign.
type signFile struct {
	Algorithm sign.Algorithm `json:"algorithm"`
	// KeyFile holds the secret, or a key as PEM. It is relative to the file's folder.
	KeyFile string       `json:"key_file"`
	Layout  *signLayout  `json:"layout"`
	Message *signMessage `json:"message"`
	WeChat  *signWeChat  `json:"wechat_pay"`
}

// signLayout is a sign.Layout.
type signLayout struct {
	Text     string            `json:"text"`
	Headers  map[string]string `json:"headers"`
	Encoding string            `json:"encoding"`
	Digest   string            `json:"digest"`
	Unit     string            `json:"unit"`
	// Elsewhere: the signature need not cover the key.
	Elsewhere bool `json:"key_elsewhere"`
}

// signMessage is a sign.Message.
type signMessage struct {
	KeyID      string   `json:"key_id"`
	Components []string `json:"components"`
	Label      string   `json:"label"`
	Tag        string   `json:"tag"`
	Lifetime   string   `json:"lifetime"`
}

// signWeChat are the arguments of sign.WeChatPay.
type signWeChat struct {
	Merchant string `json:"merchant"`
	Serial   string `json:"serial"`
}

// signature makes and checks signatures: a sign.Layout or a sign.Message.
type signature interface {
	Authorize() (func(*http.Request) error, error)
	Verifier(sign.Freshness) (sign.Verify, error)
}

// ReadSignature reads the file of --sign, which says how requests are signed, for an API of this profile. No error repeats anything of a key.
func ReadSignature(name string, p *profile.Profile) (signature, error) {
	fail := func(err error) (signature, error) {
		return nil, SignError(name, err)
	}
	text, err := terminal.ReadBounded(name, signFileBytesMax)
	if err != nil {
		return nil, fmt.Errorf("--sign: %w", err)
	}
	var f signFile
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return fail(errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "Go struct field signFile.", ""), "json: ")))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fail(errors.New("want one JSON object, and nothing behind it"))
	}
	key, err := f.key(filepath.Dir(name))
	if err != nil {
		return fail(err)
	}
	s, err := f.signature(key, p)
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// SignError returns an error about the file name of --sign. In its text the Go names of package sign are replaced by the names of the file's members, which the user
// knows.
func SignError(name string, err error) error {
	text := strings.NewReplacer(
		"Layout.Text", "layout: text", "Layout.Headers", "layout: headers", "Layout.Key", "the key of key_file", "Message.Key", "the key of key_file",
		"Message.Components", "message: components", "Message.Label", "message: label", "Message.Lifetime", "message: lifetime", "set KeyElsewhere", "say \"key_elsewhere\": true",
	).Replace(strings.TrimPrefix(err.Error(), "sign: "))
	return &terminal.SaidError{Text: "--sign " + name + ": " + text, Err: err}
}

// key reads the secret or the key in the file key_file, which lies in dir unless its path is absolute. A private key signs; a public one is enough for the mock server,
// which only verifies.
func (f *signFile) key(dir string) (sign.Key, error) {
	algorithms := []sign.Algorithm{sign.HMACSHA256, sign.Ed25519, sign.ECDSAP256SHA256, sign.RSAPSSSHA512, sign.RSAPKCS1SHA256}
	if !slices.Contains(algorithms, f.Algorithm) {
		return sign.Key{}, fmt.Errorf("algorithm: %q, want one of %v", words.Clip(string(f.Algorithm)), algorithms)
	}
	if f.KeyFile == "" {
		return sign.Key{}, errors.New("key_file: it is missing; name the file with the secret or the private key")
	}
	name := f.KeyFile
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	text, err := terminal.ReadBounded(name, signFileBytesMax)
	if err != nil {
		return sign.Key{}, fmt.Errorf("key_file: %w", err)
	}
	if f.Algorithm == sign.HMACSHA256 {
		if text = bytes.TrimRight(text, "\r\n"); len(text) == 0 {
			return sign.Key{}, fmt.Errorf("key_file: %s: is empty", name)
		}
		return sign.HMAC(text), nil
	}
	private, public, err := parsePEM(text)
	if err != nil {
		return sign.Key{}, fmt.Errorf("key_file: %s: %w", name, err)
	}
	if private != nil {
		return sign.PrivateKey(f.Algorithm, private)
	}
	return sign.PublicKey(f.Algorithm, public)
}

// parsePEM reads a key in PEM: private is set for a private key (PKCS #8), else public for a public one.
func parsePEM(text []byte) (private crypto.Signer, public crypto.PublicKey, err error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, errors.New("holds no PEM; want a PRIVATE KEY (openssl genpkey), or for the mock a PUBLIC KEY")
	}
	if public, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		return nil, public, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	signer, signs := key.(crypto.Signer)
	if err != nil || !signs {
		return nil, nil, fmt.Errorf("a PEM %s that cannot be read; want a PRIVATE KEY in PKCS #8, without a passphrase", words.Clip(block.Type))
	}
	return signer, nil, nil
}

// signature returns the signature that the file describes: by a layout of the API's own, by HTTP message signatures, or for WeChat Pay. The profile says where the
// idempotency key travels, which must be signed, too.
func (f *signFile) signature(key sign.Key, p *profile.Profile) (signature, error) {
	header, elsewhere := "", p.Carrier.Place != profile.Header
	if !elsewhere {
		header = p.Carrier.Name
	}
	said := 0
	for _, is := range []bool{f.Layout != nil, f.Message != nil, f.WeChat != nil} {
		if is {
			said++
		}
	}
	switch {
	case said != 1:
		return nil, errors.New("want one of layout, message and wechat_pay")
	case f.WeChat != nil:
		return sign.WeChatPay(f.WeChat.Merchant, f.WeChat.Serial, key)
	case f.Message != nil:
		m := sign.Message{Key: key, KeyID: f.Message.KeyID, Components: f.Message.Components, KeyHeader: header, KeyElsewhere: elsewhere, Label: f.Message.Label, Tag: f.Message.Tag}
		var err error
		if f.Message.Lifetime != "" {
			m.Lifetime, err = time.ParseDuration(f.Message.Lifetime)
		}
		if err != nil {
			return nil, fmt.Errorf("message: lifetime: %q, want a time such as 60s", words.Clip(f.Message.Lifetime))
		}
		return m, nil
	}
	l := sign.Layout{Key: key, Text: f.Layout.Text, Headers: f.Layout.Headers, KeyHeader: header, KeyElsewhere: elsewhere || f.Layout.Elsewhere}
	for _, e := range []struct {
		name, said string
		to         *sign.Encoding
	}{{"encoding", f.Layout.Encoding, &l.Encoding}, {"digest", f.Layout.Digest, &l.Digest}} {
		known := map[string]sign.Encoding{"": sign.Hex, "hex": sign.Hex, "base64": sign.Base64}
		encoding, is := known[e.said]
		if !is {
			return nil, fmt.Errorf("layout: %s: %q, want hex or base64", e.name, words.Clip(e.said))
		}
		*e.to = encoding
	}
	units := map[string]time.Duration{"": time.Second, "s": time.Second, "ms": time.Millisecond}
	var known bool
	if l.Unit, known = units[f.Layout.Unit]; !known {
		return nil, fmt.Errorf("layout: unit: %q, want s or ms", words.Clip(f.Layout.Unit))
	}
	return l, nil
}

// signer returns the function that signs each request by the file of --sign, called name, just before it is sent; nil without the flag.
func signer(name string, p *profile.Profile) (func(*http.Request) error, error) {
	if name == "" {
		return nil, nil
	}
	s, err := ReadSignature(name, p)
	if err != nil {
		return nil, err
	}
	authorize, err := s.Authorize()
	if err != nil {
		return nil, SignError(name, err)
	}
	return authorize, nil
}

// InTurn returns a function that calls first, then second, and ends at the first error. If one of them is nil, it returns the other.
func InTurn(first, second func(*http.Request) error) func(*http.Request) error {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(req *http.Request) error {
		if err := first(req); err != nil {
			return err
		}
		return second(req)
	}
}
