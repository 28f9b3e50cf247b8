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

// Message is an HTTP Message Signature (RFC 9421) on requests. Both sides of it are the methods [Message.Authorize] and
// [Message.Verifier]. The zero value is not usable: Key is required.
//
// Whatever Components says, the signature covers the header of the idempotency key where there is one, and, where there
// is a body, Content-Digest (RFC 9530, SHA-256) and the Content-Type that it has. Its parameters are created, nonce and alg, with keyid, tag
// and expires where the fields below ask for them.
type Message struct {
	_ struct{}
	// Key signs and verifies: see [HMAC], [HMACFunc], [PrivateKey] and [PublicKey].
	Key Key
	// KeyID names the key to the other side (keyid). A verifier refuses another one. Zero: there is none, and a verifier
	// does not look at it.
	KeyID string
	// Components are what is covered besides: names of headers in lower case, and of @method, @target-uri, @authority,
	// @scheme, @request-target, @path and @query. They take no parameters. A verifier wants all of them. A header that a
	// request lacks is an error. Zero: @method, @authority, @path and @query.
	Components []string
	// KeyHeader is the header of the idempotency key, as the profile has it. It is never set here. Zero:
	// [DefaultKeyHeader].
	KeyHeader string
	// KeyElsewhere allows a POST or PATCH without KeyHeader: of APIs whose key is in the body or the query. One that has
	// the header is covered all the same.
	KeyElsewhere bool
	// Label is the signature's name in the fields Signature-Input and Signature. Zero: "sig1".
	Label string
	// Tag names the application (tag). A verifier refuses another one. Zero: there is none, and a verifier does not look
	// at it.
	Tag string
	// Lifetime is the time from created to expires, in whole seconds. Zero: there is no expires.
	Lifetime time.Duration
}

// Authorize returns what signs a request: it sets Content-Digest where there is a body, Signature-Input and Signature,
// and changes nothing else. It is safe for concurrent use. An error names the field of the Message that is wrong.
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

// Verifier returns what checks such signatures, under the same label. It wants created and nonce, and refuses whatever
// of the request has to be covered and is not. A URL without a scheme, as in a request that a server of net/http has
// received, has that of the connection: behind a proxy that ends TLS, set URL.Scheme before, or @target-uri and @scheme
// will not match. An error names the field of the Message that is wrong.
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

// fill puts in the defaults and says what is wrong.
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

// covered is what the signature of a request has to cover: Components, then the body's digest and the key.
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
			add("content-type") // says what the body's bytes mean
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

// input is what Signature-Input says of a signature: what it covers, and its parameters.
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

// field is a dictionary of one member.
func field(label string, member httpsfv.Member) (string, error) {
	d := httpsfv.NewDictionary()
	d.Add(label, member)
	return httpsfv.Marshal(d)
}
