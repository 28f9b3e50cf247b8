package sign_test

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/sign"
)

// verifierOf is a verifier of m.
func verifierOf(t *testing.T, m sign.Message) sign.Verify {
	t.Helper()
	verify, err := m.Verifier(sign.Freshness{})
	fatal(t, err)
	return verify
}

// TestMessageOfAnother: a verifier refuses what names another key, application, algorithm or label than was agreed upon,
// or covers less.
func TestMessageOfAnother(t *testing.T) {
	t.Parallel()
	m := sign.Message{Key: privateKey(t, sign.RSAPKCS1SHA256), KeyID: "k1", Tag: "shop"}
	change := func(f func(*sign.Message)) sign.Message { other := m; f(&other); return other }
	for what, other := range map[string]sign.Message{
		"":             m,
		"keyid":        change(func(m *sign.Message) { m.KeyID = "k2" }),
		"keyid, none":  change(func(m *sign.Message) { m.KeyID = "" }),
		"tag":          change(func(m *sign.Message) { m.Tag = "other" }),
		"tag, none":    change(func(m *sign.Message) { m.Tag = "" }),
		"alg":          change(func(m *sign.Message) { m.Key = privateKey(t, sign.RSAPSSSHA512) }),
		"label":        change(func(m *sign.Message) { m.Label = "sig2" }),
		"does not":     change(func(m *sign.Message) { m.Components = []string{"@method", "@path"} }),
		"does  not":    change(func(m *sign.Message) { m.Components = []string{} }),
		"does not ":    change(func(m *sign.Message) { m.KeyHeader = "Content-Type" }),
		"more is good": change(func(m *sign.Message) { m.Components = []string{"@query", "@scheme", "@path", "@authority", "@method"} }),
	} {
		authorize, err := other.Authorize()
		fatal(t, err)
		req, err := http.NewRequest("POST", "https://example.com/payments?a=1", strings.NewReader(payment))
		fatal(t, err)
		req.Header.Set("Idempotency-Key", "order-7")
		req.Header.Set("Content-Type", "application/json")
		fatal(t, authorize(req))
		err = verifierOf(t, m)(req, []byte(payment))
		if what == "" || what == "more is good" {
			fatal(t, err)
		} else if word := strings.Trim(strings.SplitN(what, ",", 2)[0], " "); !errors.Is(err, sign.ErrSignature) || !strings.Contains(err.Error(), strings.Fields(word)[0]) {
			t.Errorf("another %s: %v, want ErrSignature that names it", what, err)
		}
	}
}

// TestBothSidesReadTheSame: what the client signs of a request is what a server of net/http makes of its bytes, however
// host, path, query and headers are spelled.
func TestBothSidesReadTheSame(t *testing.T) {
	t.Parallel()
	m := sign.Message{Key: sign.HMAC(secret), Components: []string{"@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query", "content-length", "x-note"}}
	authorize, err := m.Authorize()
	fatal(t, err)
	for _, url := range []string{
		"http://EXAMPLE.com:80", "http://example.com:8080/", "http://example.com/a%2Fb/c d/\u00e9?", "http://example.com?q=%2f&&;x", "http://example.com//double/../dots?a#fragment",
		"http://example.com/(a)!*'~$,:@&=+;b", "http://[::1]:80/x",
	} {
		req, err := http.NewRequest("POST", url, strings.NewReader(payment))
		fatal(t, err)
		req.Header.Set("Idempotency-Key", "order-7")
		req.Header["X-Note"] = []string{"  a\t", "b , c"}
		fatal(t, authorize(req))
		var wire bytes.Buffer
		fatal(t, req.Write(&wire))
		arrived, err := http.ReadRequest(bufio.NewReader(&wire))
		fatal(t, err)
		if err := verifierOf(t, m)(arrived, []byte(payment)); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		arrived.Header.Set("X-Note", "a, b,c")
		if verifierOf(t, m)(arrived, []byte(payment)) == nil {
			t.Errorf("%s: another header is accepted", url)
		}
	}
}
