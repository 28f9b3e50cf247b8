package sign_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/sign"
)

// TestStandardWebhooksVector: a layout of Standard Webhooks (id, timestamp and body between full stops, the id as the
// key) gives the signature of that specification's own example
// (https://github.com/standard-webhooks/standard-webhooks, the reference libraries' tests; also in the documentation of
// Svix).
func TestStandardWebhooksVector(t *testing.T) {
	t.Parallel()
	secret, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	fatal(t, err)
	authorize, err := sign.Layout{
		Key: sign.HMAC(secret), Text: "{key}.{timestamp}.{body}", KeyHeader: "webhook-id", Encoding: sign.Base64,
		Headers: map[string]string{"webhook-timestamp": "{timestamp}", "webhook-signature": "v1,{signature}"},
	}.Authorize()
	fatal(t, err)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(1614265330, 0)))
		req, err := http.NewRequest("POST", "https://example.com/hook", strings.NewReader(`{"test": 2432232314}`))
		fatal(t, err)
		req.Header.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
		fatal(t, authorize(req))
		const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
		if got := req.Header.Get("webhook-signature"); got != want || req.Header.Get("webhook-timestamp") != "1614265330" {
			t.Errorf("%s at %s, want %s", got, req.Header.Get("webhook-timestamp"), want)
		}
	})
}

// TestWeChatPayHeader: the header and the signed text are as the provider's page and SDK write them (see
// [sign.WeChatPay]), checked by the standard library alone.
func TestWeChatPayHeader(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	fatal(t, err)
	key, err := sign.PrivateKey(sign.RSAPKCS1SHA256, private)
	fatal(t, err)
	layout, err := sign.WeChatPay("1900009191", "1DDE55AD", key)
	fatal(t, err)
	authorize, err := layout.Authorize()
	fatal(t, err)
	for _, body := range []string{`{"out_trade_no":"1217752501201407033233368018"}`, ""} {
		req, err := http.NewRequest("POST", "https://api.mch.weixin.qq.com/v3/pay/transactions/jsapi?a=1", strings.NewReader(body))
		fatal(t, err)
		fatal(t, authorize(req))
		form := regexp.MustCompile(`^WECHATPAY2-SHA256-RSA2048 mchid="1900009191",nonce_str="([0-9a-f]{32})",timestamp="([0-9]+)",serial_no="1DDE55AD",signature="([^"]+)"$`)
		found := form.FindStringSubmatch(req.Header.Get("Authorization"))
		if found == nil {
			t.Fatalf("the header is %s", req.Header.Get("Authorization"))
		}
		signature, err := base64.StdEncoding.DecodeString(found[3])
		fatal(t, err)
		sum := sha256.Sum256([]byte("POST\n/v3/pay/transactions/jsapi?a=1\n" + found[2] + "\n" + found[1] + "\n" + body + "\n"))
		if err := rsa.VerifyPKCS1v15(&private.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
			t.Errorf("body %q: %v", body, err)
		}
	}
	for _, c := range []struct{ merchant, serial string }{{"", "1"}, {"1", ""}, {`1"`, "1"}, {"{nonce}", "1"}, {"1", "1\n"}} {
		if _, err := sign.WeChatPay(c.merchant, c.serial, key); err == nil {
			t.Errorf("%q, %q: no error", c.merchant, c.serial)
		}
	}
	if _, err := sign.WeChatPay("1", "1", sign.HMAC([]byte("x"))); err == nil {
		t.Error("a shared secret is taken for WeChat Pay")
	}
}

// TestWrongConfiguration: what cannot work, or would leave the key or the body outside the signature, is an error that
// names the field.
func TestWrongConfiguration(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	fatal(t, err)
	public, err := sign.PublicKey(sign.Ed25519, private.Public())
	fatal(t, err)
	const text = "{timestamp}\n{nonce}\n{key}\n{body}"
	headers := func(text string) map[string]string { return map[string]string{"X-Auth": text} }
	key, good := sign.HMAC(secret), headers("{signature} {nonce} {timestamp}")
	for _, c := range []struct {
		layout sign.Layout
		want   string
	}{
		{sign.Layout{Text: text, Headers: good}, "Layout.Key"},
		{sign.Layout{Key: sign.HMAC(nil), Text: text, Headers: good}, "Layout.Key"},
		{sign.Layout{Key: public, Text: text, Headers: good}, "Layout.Key"},
		{sign.Layout{Key: key, Headers: good}, "Layout.Text"},
		{sign.Layout{Key: key, Text: "{timestamp}{nonce}{body}", Headers: good}, "Layout.Text has no {key}"},
		{sign.Layout{Key: key, Text: "{timestamp}{nonce}{key}", Headers: good}, "Layout.Text has neither {body} nor"},
		{sign.Layout{Key: key, Text: "{body}{nonce}{key}", Headers: good}, "Layout.Text has no {timestamp}"},
		{sign.Layout{Key: key, Text: text + "{random}", Headers: good}, "Layout.Text: no placeholder begins with {random"},
		{sign.Layout{Key: key, Text: text + "{key", Headers: good}, "Layout.Text: no placeholder begins with {key"},
		{sign.Layout{Key: key, Text: text, Headers: headers("{nonce} {timestamp}")}, "Layout.Headers: none has {signature}"},
		{sign.Layout{Key: key, Text: text, Headers: headers("{signature} {nonce}")}, "Layout.Headers: none has {timestamp}"},
		{sign.Layout{Key: key, Text: text, Headers: headers("{signature} {timestamp}")}, "Layout.Headers: none has {nonce}"},
		{sign.Layout{Key: key, Text: text, Headers: headers("{signature}{nonce} {timestamp}")}, `Layout.Headers["X-Auth"]: nothing stands between`},
		{sign.Layout{Key: key, Text: text, Headers: headers("{signature} {key}")}, `Layout.Headers["X-Auth"]: no placeholder`},
		{sign.Layout{Key: key, Text: text, Headers: map[string]string{"A B": "{signature}"}}, `"A B" cannot be set`},
		{sign.Layout{Key: key, Text: text, Headers: map[string]string{"idempotency-key": "{signature}"}}, `"idempotency-key" cannot be set`},
		{sign.Layout{Key: key, Text: text, Headers: good, Unit: -1}, "Unit"},
		{sign.Layout{Key: key, Text: text, Headers: good, Encoding: 7}, "Encoding"},
	} {
		if _, err := c.layout.Authorize(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want it to say %s", err, c.want)
		}
	}
	noNonce := sign.Layout{Key: hmacLayout.Key, Text: "{timestamp}\n{key}\n{body}", Headers: map[string]string{"A": "{signature} {timestamp}"}}
	if _, err := noNonce.Verifier(sign.Freshness{}); err == nil || !strings.Contains(err.Error(), "{nonce}") {
		t.Errorf("a verifier without a nonce: %v", err)
	}
	for name, m := range map[string]sign.Message{
		"Key":         {},
		"Components":  {Key: hmacLayout.Key, Components: []string{"@method", "@status"}},
		"Components ": {Key: hmacLayout.Key, Components: []string{"Date"}},
		"Components.": {Key: hmacLayout.Key, Components: []string{"date", "date"}},
		"KeyHeader":   {Key: hmacLayout.Key, KeyHeader: "Order Id"},
		"Label":       {Key: hmacLayout.Key, Label: "Sig 1"},
		"Tag":         {Key: hmacLayout.Key, Tag: "Geschäft"},
		"KeyID":       {Key: hmacLayout.Key, KeyID: "a\nb"},
		"Lifetime":    {Key: hmacLayout.Key, Lifetime: 1500 * time.Millisecond},
	} {
		if _, err := m.Authorize(); err == nil || !strings.Contains(err.Error(), strings.Trim(name, " .")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := hmacLayout.Verifier(sign.Freshness{MaxAge: -1}); err == nil {
		t.Error("a negative MaxAge is taken")
	}
}

// TestBodyIsLeftAlone: signing reads no byte of Body, and a body that cannot be read twice is an error that says so.
func TestBodyIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, scheme := range schemes(t) {
		req, err := http.NewRequest("POST", "https://example.com/payments", strings.NewReader(payment))
		fatal(t, err)
		req.Header.Set("Idempotency-Key", "order-7")
		fatal(t, scheme.authorize(req))
		if body, err := io.ReadAll(req.Body); err != nil || string(body) != payment {
			t.Errorf("%s: the body is %q, %v afterwards", name, body, err)
		}
		req.GetBody = nil
		if err := scheme.authorize(req); err == nil || !strings.Contains(err.Error(), "GetBody") {
			t.Errorf("%s: a body that is read once: %v", name, err)
		}
		req.GetBody = func() (io.ReadCloser, error) { return nil, nil }
		if err := scheme.authorize(req); err == nil {
			t.Errorf("%s: a GetBody that gives nothing is taken", name)
		}
	}
}

// TestKeyIsCovered: a POST or PATCH without the header of the key is an error, so that a wrong KeyHeader is seen; so
// are two keys. Of another method the key is optional, and once signed cannot be added.
func TestKeyIsCovered(t *testing.T) {
	t.Parallel()
	for name, scheme := range schemes(t) {
		if name == "WeChat Pay" {
			continue
		}
		for _, keys := range [][]string{nil, {""}, {"a", "b"}} {
			req, err := http.NewRequest("POST", "https://example.com/payments", strings.NewReader(payment))
			fatal(t, err)
			if keys != nil {
				req.Header["Idempotency-Key"] = keys
			}
			if err := scheme.authorize(req); err == nil {
				t.Errorf("%s: keys %q are signed", name, keys)
			}
		}
		req, err := http.NewRequest("DELETE", "https://example.com/payments/7", nil)
		fatal(t, err)
		fatal(t, scheme.authorize(req))
		req.Header.Set("Idempotency-Key", "order-8")
		if err := scheme.verify(req, nil); !errors.Is(err, sign.ErrSignature) {
			t.Errorf("%s: with a key that was added: %v", name, err)
		}
		req.Header.Del("Idempotency-Key")
		fatal(t, scheme.verify(req, nil))
	}
}

// TestDigestThatIsNotTheBodys: a digest in a header is held to the body, also where the text does not cover it.
func TestDigestThatIsNotTheBodys(t *testing.T) {
	t.Parallel()
	l := hmacLayout
	l.Headers = map[string]string{"X-Auth": "{timestamp} {nonce} {signature}", "X-Digest": "{digest}"}
	authorize, err := l.Authorize()
	fatal(t, err)
	verify, err := l.Verifier(sign.Freshness{})
	fatal(t, err)
	req, err := http.NewRequest("PUT", "https://example.com/payments", strings.NewReader(payment))
	fatal(t, err)
	fatal(t, authorize(req))
	sum := sha256.Sum256([]byte(payment))
	if got := req.Header.Get("X-Digest"); got != hex.EncodeToString(sum[:]) {
		t.Errorf("the digest is %s", got)
	}
	other := req.Clone(t.Context())
	other.Header.Set("X-Digest", strings.Repeat("0", 64))
	if err := verify(other, []byte(payment)); !errors.Is(err, sign.ErrSignature) {
		t.Errorf("another digest: %v, want ErrSignature", err)
	}
	fatal(t, verify(req, []byte(payment)))
}
