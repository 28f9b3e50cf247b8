package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	signedLayout = `{"algorithm": "hmac-sha256", "key_file": "key", "layout": {
		"text": "{timestamp}\n{nonce}\n{method}\n{target}\n{key}\n{body}", "encoding": "base64", "unit": "ms",
		"headers": {"X-Timestamp": "{timestamp}", "X-Nonce": "{nonce}", "X-Signature": "{signature}"}}}`
	signedMessage = `{"algorithm": "ed25519", "key_file": "key", "message": {"key_id": "shop-2026", "lifetime": "60s"}}`
)

// signing is a file for --sign with its key beside it.
func signing(t *testing.T, text, key string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "key"), key)
	return writeFile(t, filepath.Join(dir, "sign.json"), text)
}

// pemKey is a new private key, and its public one.
func pemKey(t *testing.T) (private, public string) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one, err := x509.MarshalPKCS8PrivateKey(priv)
	other, err2 := x509.MarshalPKIXPublicKey(pub)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: one})), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: other}))
}

// Each attempt is signed anew, also those of another run and of send: the mock, which takes no nonce twice, answers none of
// them 401, and each order has one effect. Without the flag, and under another secret, nothing takes effect.
func TestSign(t *testing.T) {
	t.Parallel()
	private, public := pemKey(t)
	for name, c := range map[string]struct{ ours, theirs, wrong string }{
		"layout":  {signing(t, signedLayout, "s3cret\n"), signing(t, signedLayout, "s3cret"), signing(t, signedLayout, "other")},
		"message": {signing(t, signedMessage, private), signing(t, signedMessage, public), signing(t, strings.Replace(signedMessage, "2026", "2027", 1), private)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "access")
			m := startCommand(t, "--sign", c.theirs, "--faults", "drop-after=0.4,503=0.2", "--seed", "3", "--access-log", log)
			file := writeFile(t, "in.csv", orders(8))
			args := fast("batch", file, "--url", m.url+"/payments", "--key", "o:{user}:{order_id}", "--workers", "2")
			for _, refused := range [][]string{append(args, "--max-errors", "0"), append(args, "--sign", c.wrong, "--max-errors", "0")} {
				for _, l := range run(t, refused...).want(t, exitUnknown).lines(t) {
					if l.Status != 401 && l.Status != 503 {
						t.Errorf("unsigned, or signed by another: %+v", l)
					}
				}
			}
			run(t, append(args, "--sign", c.ours, "--max-attempts", "2")...)
			for range 4 {
				if r := run(t, append(args, "--sign", c.ours, "--max-attempts", "20")...); r.status == exitOK {
					break
				}
			}
			run(t, append(args, "--sign", c.ours)...).want(t, exitOK)
			run(t, fast("send", "POST", m.url+"/payments", "-d", "{}", "--sign", c.ours, "--journal", journalIn(t), "--max-attempts", "20")...).want(t, exitOK)
			if got := m.stop(); !strings.Contains(got.err, " 9 effects, 9 keys") {
				t.Errorf("stderr %q, want 9 effects", got.err)
			}
		})
	}
}

// What is wrong with the file of --sign is said before anything is sent, and nothing of a key is repeated.
func TestGoldenSignMessages(t *testing.T) {
	t.Parallel()
	s := refusing(t)
	in := writeFile(t, "in.csv", orders(1))
	private, public := pemKey(t)
	var all strings.Builder
	for _, c := range []struct{ text, key string }{
		{`{`, ""}, {`{"algorithm": "hmac-sha256", "secret": "s3cret"}`, ""}, {`{} {}`, ""}, {`{"algorithm": "hmac-sha256"}`, ""}, {signedLayout, "\n"},
		{strings.Replace(signedLayout, `"key"`, `"keys"`, 1), "s3cret"}, {strings.Replace(signedLayout, "hmac-sha256", "md5", 1), "s3cret"},
		{`{"algorithm": "hmac-sha256", "key_file": "key"}`, "s3cret"}, {strings.Replace(signedLayout, "{key}", "{keys}", 1), "s3cret"},
		{strings.Replace(signedLayout, `\n{key}`, ``, 1), "s3cret"}, {strings.Replace(signedLayout, "base64", "base32", 1), "s3cret"},
		{strings.Replace(signedLayout, `"ms"`, `"m"`, 1), "s3cret"}, {signedMessage, "s3cret"}, {signedMessage, public},
		{strings.Replace(signedMessage, "ed25519", "rsa-pss-sha512", 1), private}, {strings.Replace(signedMessage, "60s", "soon", 1), private},
		{`{"algorithm": "ed25519", "key_file": "key", "wechat_pay": {"merchant": "1", "serial": "2"}}`, private},
	} {
		name := signing(t, c.text, c.key)
		got := run(t, "batch", in, "--url", s.url, "--key", "o:{order_id}", "--sign", name).want(t, exitUsage)
		if strings.Contains(got.err, "s3cret") {
			t.Errorf("a secret is shown: %s", got.err)
		}
		fmt.Fprintf(&all, "%s\n%s\n", strings.Join(strings.Fields(c.text), " "), strings.ReplaceAll(got.err, filepath.Dir(name)+string(os.PathSeparator), ""))
	}
	golden(t, "sign-messages", all.String())
}
