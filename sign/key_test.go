package sign_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/sign"
)

// TestKeysOfAnotherKind: an algorithm takes its own kind of key and no other.
func TestKeysOfAnotherKind(t *testing.T) {
	t.Parallel()
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	fatal(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	fatal(t, err)
	for _, c := range []struct {
		algorithm sign.Algorithm
		signer    crypto.Signer
	}{
		{sign.RSAPSSSHA512, edKey}, {sign.HMACSHA256, edKey}, {"", edKey}, {sign.ECDSAP256SHA256, p384}, {sign.Ed25519, nil},
	} {
		if _, err := sign.PrivateKey(c.algorithm, c.signer); err == nil {
			t.Errorf("%s takes %T", c.algorithm, c.signer)
		}
	}
	for _, public := range []crypto.PublicKey{nil, (*rsa.PublicKey)(nil), (*ecdsa.PublicKey)(nil), ed25519.PublicKey("short"), "text"} {
		for _, algorithm := range []sign.Algorithm{sign.Ed25519, sign.ECDSAP256SHA256, sign.RSAPSSSHA512, sign.RSAPKCS1SHA256} {
			if _, err := sign.PublicKey(algorithm, public); err == nil {
				t.Errorf("%s takes %T", algorithm, public)
			}
		}
	}
}

// TestSecretsAreNotPrinted: nothing that a program prints or logs of a configuration or an error holds the secret.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	key := sign.HMAC(secret)
	failing := sign.HMACFunc(func() ([]byte, error) { return secret, errors.New("the vault is closed") })
	var out bytes.Buffer
	type hidden struct{ key sign.Key } // where fmt cannot call methods
	for _, k := range []sign.Key{key, failing} {
		l, m := hmacLayout, sign.Message{Key: k, KeyID: "k1"}
		l.Key = k
		for _, v := range []any{k, &k, l, &l, m, &m, []sign.Key{k}, map[string]any{"k": k}, hidden{k}, &hidden{k}} {
			fmt.Fprintf(&out, "%v %+v %#v %s %q %x %d\n", v, v, v, v, v, v, v)
			text, _ := json.Marshal(v)
			out.Write(text)
			slog.New(slog.NewTextHandler(&out, nil)).Info("configured", "v", v)
			slog.New(slog.NewJSONHandler(&out, nil)).Info("configured", "v", v)
		}
		authorize, err := l.Authorize()
		fatal(t, err)
		verify, err := l.Verifier(sign.Freshness{})
		fatal(t, err)
		req, err := http.NewRequest("POST", "https://example.com/payments", strings.NewReader(payment))
		fatal(t, err)
		fmt.Fprintln(&out, authorize(req))
		req.Header.Set("Idempotency-Key", "order-7")
		fmt.Fprintln(&out, authorize(req))
		req.Header.Set("X-Timestamp", "1")
		fmt.Fprintln(&out, verify(req, []byte(payment)))
	}
	text := out.String()
	for _, part := range []string{string(secret), hex.EncodeToString(secret), strings.ToUpper(hex.EncodeToString(secret)), base64.StdEncoding.EncodeToString(secret), fmt.Sprint(secret), fmt.Sprintf("%#v", secret)[8:40], payment} {
		if strings.Contains(text, part) {
			t.Errorf("%q is printed", part)
		}
	}
	for _, part := range []string{"sign.Key(hmac-sha256)", "the vault is closed"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not printed", part)
		}
	}
	for _, k := range []sign.Key{sign.HMACFunc(nil), sign.HMACFunc(func() ([]byte, error) { return nil, nil })} {
		l := hmacLayout
		l.Key = k
		authorize, err := l.Authorize()
		if err == nil {
			req, _ := http.NewRequest("GET", "https://example.com/", nil)
			err = authorize(req)
		}
		if err == nil {
			t.Error("an empty secret signs")
		}
	}
}

// TestSecretIsCopied: what becomes of the caller's bytes later changes no signature.
func TestSecretIsCopied(t *testing.T) {
	t.Parallel()
	own, l := bytes.Clone(secret), hmacLayout
	l.Key = sign.HMAC(own)
	authorize, err := l.Authorize()
	fatal(t, err)
	clear(own)
	req, err := http.NewRequest("GET", "https://example.com/", nil)
	fatal(t, err)
	fatal(t, authorize(req))
	verify, err := hmacLayout.Verifier(sign.Freshness{})
	fatal(t, err)
	fatal(t, verify(req, nil))
}
