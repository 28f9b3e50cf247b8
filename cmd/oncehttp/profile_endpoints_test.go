package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// endpointOf is the path of the n-th endpoint of a built-in profile to which a POST goes; one of the mock's own where the profile
// has none.
func endpointOf(t *testing.T, name string, n int) string {
	t.Helper()
	p, ok := profile.ByName(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	for _, e := range p.Endpoints {
		if e.Method != "POST" || e.Keyless || strings.Contains(e.Path, "{") && n > 0 {
			continue
		}
		if n--; n < 0 {
			return strings.NewReplacer("{", "x-", "}", "").Replace(e.Path)
		}
	}
	return []string{"/payments", "/refunds"}[max(n, 0)]
}

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
				{endpointOf(t, name, 0), nil, exitOK, 2, false},
				{"/elsewhere/7", nil, exitUnknown, 1, true},
				{"/elsewhere/7", []string{"--key-honoured", "POST /elsewhere/{id}"}, exitOK, 2, false},
				{"/gw" + endpointOf(t, name, 0), nil, exitUnknown, 1, true},
				{"/gw" + endpointOf(t, name, 0), []string{"--base-path", "/gw"}, exitOK, 2, false},
			} {
				m := startMock(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
				args := append([]string{"send", "POST", m.URL() + r.path, "--profile", name, "--journal", filepath.Join(t.TempDir(), "j.db"), "--min-delay", "1ms", "--max-delay", "1ms", "--max-elapsed", "5m"}, r.flags...)
				if p.MinDelay > 0 {
					args = append(args, "--attempt-timeout", "1s", "--max-attempts", "1")
					if r.exit == exitOK {
						r.exit, r.sends = exitUnknown, 1
					}
				}
				got := run(t, append(args, withKey(p, key)...)...).want(t, r.exit)
				if n := m.Ledger().Snapshot().Sends; n != r.sends {
					t.Errorf("%v %v: %d sends, want %d", r.path, r.flags, n, r.sends)
				}
				if warned := strings.Count(got.err, "oncehttp: warning: profile "); warned != map[bool]int{true: 1}[r.warned] {
					t.Errorf("%v %v: warned %d times: %s", r.path, r.flags, warned, got.err)
				}
			}
		})
	}
	if tested < 20 {
		t.Errorf("%d profiles have endpoints", tested)
	}
}
