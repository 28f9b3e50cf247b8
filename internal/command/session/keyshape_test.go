package session_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// TestKeysOfAShape: send and batch send, record and print the key that is made of the one that is spelled, and the error of a key that does not
// fit names the flags that make one.
func TestKeysOfAShape(t *testing.T) {
	t.Parallel()
	const key = oncehttp.Key("idemp:order:o1")
	for name, c := range map[string]struct {
		profile string
		flags   []string
		want    oncehttp.Key // empty: it is refused
		says    string
	}{
		"short":           {"draft-07", []string{"--key-short", "32"}, key.Short(32), ""},
		"version 5":       {"draft-07", []string{"--key-uuid"}, key.UUID(), ""},
		"version 4":       {"datatrans", []string{"--key-uuid4"}, key.UUIDv4(), ""},
		"a UUID, not":     {"datatrans", nil, key, ""},
		"too short":       {"draft-07", []string{"--key-short", "15"}, "", "--key-short 15: want 16 to 52 characters"},
		"two":             {"draft-07", []string{"--key-short", "16", "--key-uuid"}, "", "say one"},
		"two of UUIDs":    {"draft-07", []string{"--key-uuid4", "--key-uuid"}, "", "say one"},
		"no colon, short": {"amazon-pay", []string{"--key-short", "32"}, key.Short(32), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := profile.ByName(c.profile)
			m := commandtest.StartMock(t, mockserver.Config{Profile: p})
			sent := commandtest.Run(t, append([]string{"send", "POST", m.URL() + "/payments", "-d", `{"id":"o1"}`, "--key", string(key), "--profile", c.profile, "--json", "--journal", filepath.Join(t.TempDir(), "s.db")}, c.flags...)...)
			batched := commandtest.Run(t, append([]string{"batch", commandtest.WriteFile(t, "in.csv", "id\no1\n"), "--url", m.URL() + "/payments", "--key", "order:{id}", "--profile", c.profile, "--generation", "1"}, c.flags...)...)
			for _, got := range []commandtest.Ran{sent, batched} {
				if c.want == "" {
					got.Want(t, terminal.ExitUsage).WantErr(t, c.says)
					continue
				}
				if got.Want(t, terminal.ExitOK); !strings.Contains(got.Out, `"key":"`+string(c.want)+`"`) {
					t.Errorf("%s, want the key %s", got.Out, c.want)
				}
			}
			if c.want != "" && (m.Ledger().Snapshot().Keys[string(c.want)].Sends != 2 || c.flags != nil && !strings.Contains(sent.Err, "key: "+string(c.want)+"\n")) {
				t.Errorf("%+v, %s", m.Ledger().Snapshot(), sent.Err)
			}
		})
	}
	for name, want := range map[string]string{
		"razorpay-payouts": "a key that fits: --key-short 36, or --key-uuid",
		"amazon-pay":       "a key that fits: --key-short 32",
		"coinbase":         "a key that fits: a random one beside each row, or --key-uuid4",
	} {
		commandtest.Run(t, "send", "POST", "http://127.0.0.1:1/x", "-d", "{}", "--key", string(key)+strings.Repeat("x", 30), "--profile", name, "--journal", filepath.Join(t.TempDir(), "j.db")).Want(t, terminal.ExitUsage).WantErr(t, want)
	}
	commandtest.Run(t, "send", "POST", "http://127.0.0.1:1/x", "-d", "{}", "--key-short", "16").Want(t, terminal.ExitUsage).WantErr(t, "make a key of that of --key")
}
