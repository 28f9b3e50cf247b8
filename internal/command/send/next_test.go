package send_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestNextStep: an end without an answer names the next step, and a success with words against it names these.
func TestNextStep(t *testing.T) {
	t.Parallel()
	const again = "; next: run the same command again"
	for name, c := range map[string]struct {
		status         int
		header, answer string // header: Name: value
		key            string // "": a generated one
		exit           int
		want           string
	}{
		"a redirect":        {303, "Location: https://login.example.com/?token=secret", "", "k", terminal.ExitUnknown, "answered 303, which leads to https://login.example.com:443; next: look at the server, and say what happened: oncehttp journal settle k@"},
		"a redirect beside": {302, "Location: /elsewhere", "", "k", terminal.ExitUnknown, "answered 302, which leads to another place of the same origin; next: look"},
		"an error":          {500, "", "{}", "k", terminal.ExitUnknown, again + ", which goes on"},
		"without --key":     {500, "", "{}", "", terminal.ExitUnknown, again + " with --key "},
		"credentials":       {401, "", `{"error":"bad token"}`, "k", terminal.ExitRefused, "; next: check the credentials (-H), then run the same command again"},
		"a page":            {404, "Content-Type: text/html", "<html>no</html>", "k", terminal.ExitUnknown, "mend that, then run the same command again"},
		"a long wait":       {429, "Retry-After: 7200", "{}", "k", terminal.ExitUnknown, " run the same command again, or now with a longer --max-retry-after, which waits"},
		"a short wait":      {429, "", "{}", "k", terminal.ExitUnknown, again + "\n"},
		"words against it":  {200, "Content-Type: application/json", `{"status":"failed"}`, "k", terminal.ExitOK, "the answer has /status=failed; if that is no success, say so: --declined /status=failed"},
		"a wait in doubt":   {429, "Retry-After: 7200", "{}", "lost", terminal.ExitUnknown, "; next: after "},
		"without content":   {200, "", "", "k", terminal.ExitOK, "the answer has no content: only its status says"},
		"a success":         {200, "", `{"status":"paid"}`, "k", terminal.ExitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.key == "lost" && calls.Add(1) == 1 {
					panic(http.ErrAbortHandler)
				}
				if name, value, ok := strings.Cut(c.header, ": "); ok {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			})
			args := []string{"send", "POST", s.URL, "-d", "{}", "--journal", filepath.Join(t.TempDir(), "j.db"), "--max-attempts", map[bool]string{true: "2", false: "1"}[c.key == "lost"]}
			if c.key != "" {
				args = append(args, "--key", c.key)
			}
			got := commandtest.Run(t, args...).Want(t, c.exit)
			if !strings.Contains(got.Err, c.want) || c.want == "" && got.Err != "" || strings.Contains(got.Err, "secret") {
				t.Errorf("stderr %q, want %q", got.Err, c.want)
			}
			if silent := commandtest.Run(t, append(args, "--silent")...); strings.Contains(silent.Err, "next:") || strings.Contains(silent.Err, "the answer has") {
				t.Errorf("with --silent: %q", silent.Err)
			}
		})
	}
}

// TestSettleStepIsWhole: both commands of the step for a held operation can be pasted as they are, also with an account.
func TestSettleStepIsWhole(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	for i, want := range []string{"settled as happened: k\n", "settled as absent: k\n"} {
		j := filepath.Join(t.TempDir(), "j.db")
		got := commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--journal", j, "--key", "k", "--account", "shop").Want(t, terminal.ExitUnknown)
		_, step, _ := strings.Cut(strings.TrimSpace(got.Err), "say what happened: ")
		lines := strings.Split(step, "; or, if it took no effect: ")
		if len(lines) != 2 {
			t.Fatalf("stderr %q", got.Err)
		}
		words := strings.Fields(lines[i])
		if words[0] != "oncehttp" {
			t.Fatalf("no command: %q", lines[i])
		}
		if out := commandtest.Run(t, append(words[1:], "--yes")...).Want(t, terminal.ExitOK).Out; out != want { // nobody can be asked here
			t.Errorf("%q: %q, want %q", lines[i], out, want)
		}
	}
}
