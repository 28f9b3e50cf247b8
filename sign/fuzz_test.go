package sign_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/sign"
)

// FuzzVerify: whatever stands in the headers, a verifier whose secret nobody used refuses it, and does not panic.
func FuzzVerify(f *testing.F) {
	var all []sign.Verify
	for _, make := range []func(sign.Freshness) (sign.Verify, error){hmacLayout.Verifier, sign.Message{Key: sign.HMAC(secret)}.Verifier} {
		verify, err := make(sign.Freshness{})
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, verify)
	}
	f.Add("946684800", "n", strings.Repeat("0", 64), `sig1=("@method" "@authority" "@path" "@query" "content-digest" "idempotency-key");created=946684800;nonce="n"`, "sig1=:AAAA:",
		"sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:", "{\"hello\": \"world\"}\n")
	f.Add("-1", "", "", `sig1=();created=1;nonce=""`, "sig1", "sha-512", "")
	f.Add("9223372036854775807", "n", "zz", `sig1=1`, "sig1=(:AA==:)", "", "")
	f.Fuzz(func(t *testing.T, timestamp, nonce, signature, input, signatures, digest, body string) {
		req, err := http.NewRequest("POST", "https://example.com/payments?a=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"X-Timestamp": timestamp, "X-Nonce": nonce, "X-Signature": signature, "Signature-Input": input, "Signature": signatures,
			"Content-Digest": digest, "Idempotency-Key": "order-7",
		} {
			req.Header.Set(name, value)
		}
		for _, verify := range all {
			if verify(req, []byte(body)) == nil {
				t.Error("a signature without the secret is accepted")
			}
		}
	})
}

// FuzzLayout: whatever path, key and body are, what is signed is accepted, and with one more byte in the body it is not.
func FuzzLayout(f *testing.F) {
	f.Add("/payments", "a=1&b=%2F", "order-7", payment)
	f.Add("/a b/\u00e9", ";", `"quoted"`, "")
	authorize, err := hmacLayout.Authorize()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path, query, key, body string) {
		req, err := http.NewRequest("POST", "https://example.com/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Path, req.URL.RawQuery = path, query
		req.Header["Idempotency-Key"] = []string{key}
		verify, err := hmacLayout.Verifier(sign.Freshness{})
		if err != nil {
			t.Fatal(err)
		}
		if err := authorize(req); err != nil {
			if key == "" {
				return
			}
			t.Fatal(err)
		}
		if verify(req, []byte(body+"x")) == nil {
			t.Error("another body is accepted")
		}
		if err := verify(req, []byte(body)); err != nil {
			t.Error(err)
		}
	})
}
