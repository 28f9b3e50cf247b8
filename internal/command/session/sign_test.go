package session_test

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

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/golden"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
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
	commandtest.WriteFile(t, filepath.Join(dir, "key"), key)
	return commandtest.WriteFile(t, filepath.Join(dir, "sign.json"), text)
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
			m := commandtest.StartCommand(t, "--sign", c.theirs, "--faults", "drop-after=0.4,503=0.2", "--seed", "3", "--access-log", log)
			file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(8))
			args := commandtest.Fast("batch", file, "--url", m.URL+"/payments", "--key", "o:{user}:{order_id}", "--workers", "2")
			for _, refused := range [][]string{append(args, "--max-errors", "0"), append(args, "--sign", c.wrong, "--max-errors", "0")} {
				for _, l := range commandtest.Run(t, refused...).Want(t, terminal.ExitUnknown).Lines(t) {
					if l.Status != 401 && l.Status != 503 {
						t.Errorf("unsigned, or signed by another: %+v", l)
					}
				}
			}
			commandtest.Run(t, append(args, "--sign", c.ours, "--max-attempts", "2")...)
			for range 4 {
				if r := commandtest.Run(t, append(args, "--sign", c.ours, "--max-attempts", "20")...); r.Status == terminal.ExitOK {
					break
				}
			}
			commandtest.Run(t, append(args, "--sign", c.ours)...).Want(t, terminal.ExitOK)
			commandtest.Run(t, commandtest.Fast("send", "POST", m.URL+"/payments", "-d", "{}", "--sign", c.ours, "--journal", commandtest.JournalIn(t), "--max-attempts", "20")...).Want(t, terminal.ExitOK)
			if got := m.Stop(); !strings.Contains(got.Err, " 9 effects, 9 keys") {
				t.Errorf("stderr %q, want 9 effects", got.Err)
			}
		})
	}
}

// What is wrong with the file of --sign is said before anything is sent, and nothing of a key is repeated.
func TestGoldenSignMessages(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	in := commandtest.WriteFile(t, "in.csv", commandtest.Orders(1))
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
		got := commandtest.Run(t, "batch", in, "--url", s.URL, "--key", "o:{order_id}", "--sign", name).Want(t, terminal.ExitUsage)
		if strings.Contains(got.Err, "s3cret") {
			t.Errorf("a secret is shown: %s", got.Err)
		}
		fmt.Fprintf(&all, "%s\n%s\n", strings.Join(strings.Fields(c.text), " "), strings.ReplaceAll(got.Err, filepath.Dir(name)+string(os.PathSeparator), ""))
	}
	golden.Compare(t, "sign-messages", all.String())
}
