package profile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// withKey are the arguments of send for a profile, with a key that it takes.
func withKey(p *profile.Profile, key string) []string {
	if p.Key.MaxBytes > 0 && p.Key.MaxBytes < len(key) {
		key = strings.ReplaceAll(key, "-", "")
	}
	data := `{"amount":100}`
	switch {
	case p.Carrier.Place == profile.Body:
		data = `{"amount":100,"` + strings.TrimPrefix(p.Carrier.Name, "/") + `":"` + key + `"}`
	case p.Body.Default() == profile.FormBody:
		data = "amount=100"
	}
	return []string{"-d", data, "--key", key}
}

// TestEndpoints: by the name of each profile that has endpoints, send and mock work together at one of them through a lost answer;
// elsewhere a request is sent once and held, which is said once, and the mock ignores its key. --key-honoured and --base-path say
// otherwise.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	const key = "00000000-0000-4000-8000-00000000000a"
	tested := 0
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		if len(p.Endpoints) == 0 {
			continue
		}
		tested++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []struct {
				path   string
				flags  []string
				exit   int
				sends  int
				warned bool
			}{
				{commandtest.EndpointOf(t, name, 0), nil, terminal.ExitOK, 2, false},
				{"/elsewhere/7", nil, terminal.ExitUnknown, 1, true},
				{"/elsewhere/7", []string{"--key-honoured", "POST /elsewhere/{id}"}, terminal.ExitOK, 2, false},
				{"/gw" + commandtest.EndpointOf(t, name, 0), nil, terminal.ExitUnknown, 1, true},
				{"/gw" + commandtest.EndpointOf(t, name, 0), []string{"--base-path", "/gw"}, terminal.ExitOK, 2, false},
			} {
				m := commandtest.StartMock(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
				args := append([]string{"send", "POST", m.URL() + r.path, "--profile", name, "--journal", filepath.Join(t.TempDir(), "j.db"), "--min-delay", "1ms", "--max-delay", "1ms", "--max-elapsed", "5m"}, r.flags...)
				if p.MinDelay > 0 {
					args = append(args, "--attempt-timeout", "1s", "--max-attempts", "1")
					if r.exit == terminal.ExitOK {
						r.exit, r.sends = terminal.ExitUnknown, 1
					}
				}
				got := commandtest.Run(t, append(args, withKey(p, key)...)...).Want(t, r.exit)
				if n := m.Ledger().Snapshot().Sends; n != r.sends {
					t.Errorf("%v %v: %d sends, want %d", r.path, r.flags, n, r.sends)
				}
				if warned := strings.Count(got.Err, "oncehttp: warning: profile "); warned != map[bool]int{true: 1}[r.warned] {
					t.Errorf("%v %v: warned %d times: %s", r.path, r.flags, warned, got.Err)
				}
			}
		})
	}
	if tested < 20 {
		t.Errorf("%d profiles have endpoints", tested)
	}
}
