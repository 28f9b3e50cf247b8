package sign

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// Message describes HTTP Message Signatures (RFC 9421) of requests; [Message.Authorize] and [Message.Verifier] are its two
// sides. The zero value is not usable: Key is required.
//
// In addition to Components, the signature covers the header of the idempotency key, if there is one, and with a body
// Content-Digest (RFC 9530, SHA-256) and the Content-Type, if there is one. Its parameters are created, nonce and alg, and
// keyid, tag and expires by the fields below.
type Message struct {
	_ struct{}
	// Key signs and verifies: see [HMAC], [HMACFunc], [PrivateKey] and [PublicKey].
	Key Key
	// KeyID names the key to the other side (keyid). A verifier refuses another one. Zero: none, and a verifier ignores it.
	KeyID string
	// Components are the covered components: names of headers in lower case, and of @method, @target-uri, @authority,
	// @scheme, @request-target, @path and @query, without parameters. A verifier requires all of them. A header missing in
	// a request is an error. Nil: @method, @authority, @path and @query.
	Components []string
	// KeyHeader is the header of the idempotency key, that of the profile. It is only read here. Zero:
	// [DefaultKeyHeader].
	KeyHeader string
	// KeyElsewhere allows a POST or PATCH without KeyHeader: for APIs with the key in the body or the query. If the request
	// has the header, it is covered all the same.
	KeyElsewhere bool
	// Label is the signature's name in the fields Signature-Input and Signature. Zero: "sig1".
	Label string
	// Tag names the application (tag). A verifier refuses another one. Zero: none, and a verifier ignores it.
	Tag string
	// Lifetime is the time from created to expires, in whole seconds. Zero: no expires.
	Lifetime time.Duration
}

// Authorize returns a function that signs a request: it sets Signature-Input, Signature, and with a body Content-Digest, and
// changes nothing else. The function is safe for concurrent use. An error names the wrong field of the Message.
func (m Message) Authorize() (func(*http.Request) error, error) {
	if m.Key.sign == nil {
		return nil, errors.New("sign: Message.Key cannot sign: it is empty or public")
	}
	own, err := m.fill()
	if err != nil {
		return nil, err
	}
	return func(req *http.Request) error {
		if err := own.authorize(req); err != nil {
			return fmt.Errorf("sign: %w", err)
		}
		return nil
	}, nil
}

// Verifier returns the check of such signatures, under the same label. It requires created and nonce, and the coverage of all
// components that Authorize covers. The scheme of a URL without one, as in a request received by net/http, is that of the
// connection: behind a proxy that ends TLS, set URL.Scheme before, or @target-uri and @scheme will not match. An error
// names the wrong field of the Message.
func (m Message) Verifier(f Freshness) (Verify, error) {
	if m.Key.verify == nil {
		return nil, errors.New("sign: Message.Key cannot verify: it is empty")
	}
	own, err := m.fill()
	if err != nil {
		return nil, err
	}
	seen, err := newNonces(f)
	if err != nil {
		return nil, err
	}
	return func(req *http.Request, body []byte) error {
		p, err := own.check(req, body)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSignature, err)
		}
		if p.expires != nil && time.Now().After(time.Unix(*p.expires, 0)) {
			return fmt.Errorf("%w: it has expired", ErrTime)
		}
		return seen.accept(p.nonce, time.Unix(*p.created, 0))
	}, nil
}

// fill returns a copy with the defaults filled in, or the error of the first wrong field. It spells the parameters of one signature, so that a Label, KeyID or Tag
// that cannot be spelled is found now. It does not check Key.
func (m Message) fill() (*Message, error) {
	if m.KeyHeader == "" {
		m.KeyHeader = DefaultKeyHeader
	}
	if m.Label == "" {
		m.Label = "sig1"
	}
	if m.Components == nil {
		m.Components = []string{"@method", "@authority", "@path", "@query"}
	}
	m.Components = slices.Clone(m.Components)
	for i, name := range m.Components {
		if err := knownComponent(name); err != nil {
			return nil, fmt.Errorf("sign: Message.Components: %w", err)
		}
		if slices.Contains(m.Components[:i], name) {
			return nil, fmt.Errorf("sign: Message.Components: %q is there twice", name)
		}
	}
	if !usableName(m.KeyHeader) {
		return nil, fmt.Errorf("sign: Message.KeyHeader: %q is no name of a header", m.KeyHeader)
	}
	if m.Lifetime < 0 || m.Lifetime%time.Second != 0 {
		return nil, fmt.Errorf("sign: Message.Lifetime: %v is negative, or no whole number of seconds", m.Lifetime)
	}
	input, err := m.input(m.Components, time.Now(), newNonce())
	if err == nil {
		_, err = field(m.Label, input)
	}
	if err != nil {
		return nil, fmt.Errorf("sign: Message.Label, KeyID or Tag cannot be spelled: %w", err)
	}
	return &m, nil
}

// covered returns the components that the signature of a request must cover: Components, then the body's digest and type, and the key. With KeyElsewhere the
// header of the key may be missing. An error: the key is missing, empty or there twice.
func (m *Message) covered(req *http.Request, hasBody bool) ([]string, error) {
	all := slices.Clone(m.Components)
	add := func(name string) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if hasBody {
		add("content-digest")
		if len(req.Header.Values("Content-Type")) > 0 {
			add("content-type") // gives the body's bytes their meaning
		}
	}
	if m.KeyElsewhere && len(req.Header.Values(m.KeyHeader)) == 0 {
		return all, nil
	}
	key, err := keyOf(req, m.KeyHeader)
	if key != "" {
		add(strings.ToLower(m.KeyHeader))
	}
	return all, err
}

// input returns the value of Signature-Input: the covered components and the parameters. An error means that one of them cannot be written there.
func (m *Message) input(covered []string, created time.Time, nonce string) (httpsfv.InnerList, error) {
	list := httpsfv.InnerList{Params: httpsfv.NewParams()}
	for _, name := range covered {
		list.Items = append(list.Items, httpsfv.NewItem(name))
	}
	list.Params.Add("created", created.Unix())
	if m.Lifetime > 0 {
		list.Params.Add("expires", created.Add(m.Lifetime).Unix())
	}
	list.Params.Add("nonce", nonce)
	list.Params.Add("alg", string(m.Key.algorithm))
	if m.KeyID != "" {
		list.Params.Add("keyid", m.KeyID)
	}
	if m.Tag != "" {
		list.Params.Add("tag", m.Tag)
	}
	_, err := httpsfv.Marshal(list)
	return list, err
}

// authorize signs a request with the present time and a new nonce, and sets the headers. After an error Content-Digest may be
// set.
func (m *Message) authorize(req *http.Request) error {
	body, err := bodyOf(req)
	if err != nil {
		return err
	}
	if req.Header == nil {
		req.Header = http.Header{}
	}
	covered, err := m.covered(req, len(body) > 0)
	if err != nil {
		return err
	}
	if slices.Contains(covered, "content-digest") {
		req.Header.Set("Content-Digest", contentDigest(body))
	}
	input, err := m.input(covered, time.Now(), newNonce())
	if err != nil {
		return err
	}
	base, err := signatureBase(req, input)
	if err != nil {
		return err
	}
	signature, err := m.Key.sign([]byte(base))
	if err != nil {
		return err
	}
	inputField, err := field(m.Label, input)
	if err != nil {
		return err
	}
	signatureField, err := field(m.Label, httpsfv.NewItem(signature))
	if err != nil {
		return err
	}
	req.Header.Set("Signature-Input", inputField)
	req.Header.Set("Signature", signatureField)
	return nil
}

// field returns the text of a header that is a dictionary (RFC 9651) with one member.
func field(label string, member httpsfv.Member) (string, error) {
	d := httpsfv.NewDictionary()
	d.Add(label, member)
	return httpsfv.Marshal(d)
}
