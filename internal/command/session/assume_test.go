package session_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAssume: a value of --assume is the one that send goes by: on the wire, in the record, and in the number of its sends.
func TestAssume(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		assume []string
		sends  int64
		key    string // on the wire
		window string
	}{
		"nothing":                {nil, 3, "k", `"window_seconds":3600,`}, // three equal 500s end the run
		"errors are not kept":    {[]string{"stored.server_error=no"}, 5, "k", `"window_seconds":3600,`},
		"a window":               {[]string{"window=12h"}, 3, "k", `"window_seconds":43200,`},
		"quoted keys and a time": {[]string{"encoding=sf-string", "window=90s"}, 3, `"k"`, `"window_seconds":90,`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			keys := map[string]bool{}
			s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				keys[r.Header.Get("X-Our-Key")] = true
				mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, `{"error":1}`)
			})
			journal := filepath.Join(t.TempDir(), "j.db")
			args := []string{"send", "POST", s.URL, "-d", "{}", "--profile", commandtest.WriteProfile(t, "mine"), "--key", "k", "--journal", journal, "--max-attempts", "5"}
			for _, a := range c.assume {
				args = append(args, "--assume", a)
			}
			commandtest.Run(t, commandtest.Fast(args...)...).Want(t, terminal.ExitUnknown)
			if n := s.Sends.Load(); n != c.sends || !keys[c.key] || len(keys) != 1 {
				t.Errorf("%d sends with the keys %v, want %d with %s", n, keys, c.sends, c.key)
			}
			if got := commandtest.Run(t, "journal", "show", "k", "--json", "--journal", journal).Want(t, terminal.ExitOK); !strings.Contains(got.Out, c.window) {
				t.Errorf("%s, want %s", got.Out, c.window)
			}
		})
	}
}

// TestAssumeSaid: -v names the assumptions in one line, with the window as it is used; nothing is sent by a value that is refused.
func TestAssumeSaid(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	send := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", filepath.Join(t.TempDir(), "j.db")}, more...)...)
	}
	const line = "profile gocardless assumes key, window=2h, "
	if got := send("--profile", "gocardless", "-v", "--assume", "window=2h").Want(t, terminal.ExitOK); strings.Count(got.Err, line) != 1 {
		t.Errorf("%s, want a line %q", got.Err, line)
	}
	if got := send("--profile", "gocardless").Want(t, terminal.ExitOK); strings.Contains(got.Err, "assumes") {
		t.Errorf("without -v: %s", got.Err)
	}
	sends := s.Sends.Load()
	for assume, want := range map[string]string{
		"window":     `--assume "window": want NAME=VALUE, such as window=24h`,
		"window=25h": "--assume window=25h: floor: 25h that nobody promises, want at most 24h",
		"carrier=X":  `--assume "carrier": profile "gocardless" assumes no such thing; it assumes key, window, in_progress, stored.server_error`,
	} {
		send("--profile", "gocardless", "--assume", assume).Want(t, terminal.ExitUsage).WantErr(t, want)
	}
	if s.Sends.Load() != sends {
		t.Error("something was sent by a value that is refused")
	}
}
