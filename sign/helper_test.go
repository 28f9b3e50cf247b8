package sign_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/sign"
)

const payment = `{"reference":"r1","amount":4200}`

// both is the two sides of one scheme.
type both struct {
	authorize func(*http.Request) error
	verify    sign.Verify
}

// testKeys are private keys, made once: RSA's take a while.
var testKeys = sync.OnceValues(func() (map[sign.Algorithm]crypto.Signer, error) {
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	return map[sign.Algorithm]crypto.Signer{
		sign.Ed25519: edKey, sign.ECDSAP256SHA256: ecKey, sign.RSAPSSSHA512: rsaKey, sign.RSAPKCS1SHA256: rsaKey,
	}, err
})

// privateKey is one of testKeys.
func privateKey(t *testing.T, algorithm sign.Algorithm) sign.Key {
	t.Helper()
	keys, err := testKeys()
	fatal(t, err)
	key, err := sign.PrivateKey(algorithm, keys[algorithm])
	fatal(t, err)
	return key
}

// schemes is one of each kind, with a verifier of its own.
func schemes(t *testing.T) map[string]both {
	t.Helper()
	pkcs1 := privateKey(t, sign.RSAPKCS1SHA256)
	weChat, err := sign.WeChatPay("1900009191", "1DDE55AD98ED71D6EDD4A4A16996DE7B47773A8C", pkcs1)
	fatal(t, err)
	all := map[string]both{}
	for name, layout := range map[string]sign.Layout{
		"hmac over the body":   hmacLayout,
		"hmac over its digest": {Key: sign.HMAC(secret), Encoding: sign.Base64, Unit: time.Millisecond, Text: "{digest}.{timestamp}.{nonce}.{method}.{authority}{path}?{query}.{key}", Headers: map[string]string{"X-Auth": "t={timestamp},n={nonce},d={digest},v1={signature}"}},
		"WeChat Pay":           weChat,
	} {
		authorize, err := layout.Authorize()
		fatal(t, err)
		verify, err := layout.Verifier(sign.Freshness{})
		fatal(t, err)
		all[name] = both{authorize, verify}
	}
	for name, message := range map[string]sign.Message{
		"RFC 9421, hmac-sha256":       {Key: sign.HMAC(secret), KeyID: "k1", Tag: "shop", Lifetime: time.Minute},
		"RFC 9421, ed25519":           {Key: privateKey(t, sign.Ed25519), KeyID: "k1", Components: []string{"@method", "@target-uri", "content-length"}},
		"RFC 9421, ecdsa-p256-sha256": {Key: privateKey(t, sign.ECDSAP256SHA256), Label: "shop", Components: []string{"@method", "@scheme", "@request-target"}},
		"RFC 9421, rsa-pss-sha512":    {Key: privateKey(t, sign.RSAPSSSHA512)},
		"RFC 9421, rsa-v1_5-sha256":   {Key: pkcs1},
	} {
		authorize, err := message.Authorize()
		fatal(t, err)
		verify, err := message.Verifier(sign.Freshness{})
		fatal(t, err)
		all[name] = both{authorize, verify}
	}
	return all
}

var secret = []byte("a secret that nobody may see")

var hmacLayout = sign.Layout{
	Key:     sign.HMAC(secret),
	Text:    "{timestamp}\n{nonce}\n{method}\n{target}\n{key}\n{body}",
	Headers: map[string]string{"X-Timestamp": "{timestamp}", "X-Nonce": "{nonce}", "X-Signature": "{signature}"},
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wiretap is a transport that keeps what it sends.
type wiretap struct {
	next http.RoundTripper

	mu   sync.Mutex
	sent []captured
}

// captured is a request as it was on the wire.
type captured struct {
	method, url string
	header      http.Header
	body        []byte
	replayable  bool // net/http can send it again by itself
}

func (w *wiretap) RoundTrip(req *http.Request) (*http.Response, error) {
	seen := captured{method: req.Method, url: req.URL.String(), header: req.Header.Clone(), replayable: req.GetBody != nil}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		seen.body = body
		copied := *req
		copied.Body = io.NopCloser(bytes.NewReader(body))
		req = &copied
	}
	w.mu.Lock()
	w.sent = append(w.sent, seen)
	w.mu.Unlock()
	return w.next.RoundTrip(req)
}

// again sends a captured request once more, with one header changed if a name is given, and returns the status.
func (c captured) again(t *testing.T, transport http.RoundTripper, name, value string) int {
	t.Helper()
	req, err := http.NewRequest(c.method, c.url, bytes.NewReader(c.body))
	fatal(t, err)
	req.Header = c.header.Clone()
	if name != "" {
		req.Header.Set(name, value)
	}
	resp, err := transport.RoundTrip(req)
	fatal(t, err)
	fatal(t, resp.Body.Close())
	return resp.StatusCode
}

// bubble runs a test in virtual time with a server that verifies, over a pipe whose requests are kept.
func bubble(t *testing.T, cfg mockserver.Config, run func(t *testing.T, server *mockserver.Server, url string, tap *wiretap)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(cfg)
		pipe := server.Pipe()
		transport := pipe.Transport()
		run(t, server, pipe.URL, &wiretap{next: transport})
		transport.CloseIdleConnections()
		fatal(t, server.Close())
	})
}

// oneCaller stands for what a server reads from the credential that is not signed, such as the merchant's number.
func oneCaller(*http.Request) string { return "shop" }

func newClient(t *testing.T, journal persist.Journal, tap http.RoundTripper, authorize func(*http.Request) error) *oncehttp.Client {
	t.Helper()
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Transport: tap, Origins: []string{"http://127.0.0.1:*", "https://api.example.com", "http://mock.test"}, Authorize: authorize})
	fatal(t, err)
	return client
}

func pay(t *testing.T, ctx context.Context, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/payments?shop=7&x=%2F", strings.NewReader(payment))
	fatal(t, err)
	req.Header.Set("Content-Type", "application/json")
	return req
}
