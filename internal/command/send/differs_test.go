package send_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestWhatDiffers: the error of a key that belongs to another request names what differs, and no value, and the next step.
func TestWhatDiffers(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	other := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	at := filepath.Join(t.TempDir(), "j.db")
	send := func(method, url, body string, more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"send", method, url, "-d", body, "--key", "k", "--journal", at}, more...)...)
	}
	send("POST", s.URL+"/pay", `{"amount":101,"to":{"iban":"canary-1"}}`).Want(t, terminal.ExitOK)
	for name, c := range map[string]struct{ method, url, body, want string }{
		"an amount": {"POST", s.URL + "/pay", `{"amount":202,"to":{"iban":"canary-1"}}`, "what differs: amount"},
		"a member":  {"POST", s.URL + "/pay", `{"amount":101,"to":{"iban":"canary-2"}}`, "what differs: /to/iban"},
		"the path":  {"POST", s.URL + "/canary-2", `{"amount":101,"to":{"iban":"canary-1"}}`, "what differs: the path or query"},
		"method":    {"PUT", s.URL + "/pay", `{"amount":101,"to":{"iban":"canary-1"}}`, "what differs: the method"},
		"server":    {"POST", other.URL + "/pay", `{"amount":202,"to":{"iban":"canary-1"}}`, "what differs: the server, amount"},
	} {
		got := send(c.method, c.url, c.body).Want(t, terminal.ExitRefused)
		if !strings.Contains(got.Err, c.want+"; next: if this is another operation, say another --key; else send the request as it was\n") || strings.Contains(got.Err, "canary") {
			t.Errorf("%s: %q, want %q", name, got.Err, c.want)
		}
		if got := send(c.method, c.url, c.body, "--json").Want(t, terminal.ExitRefused); !strings.Contains(got.Out, c.want+`"`) {
			t.Errorf("%s: %q, want %q", name, got.Out, c.want)
		}
	}
	if s.Sends.Load() != 1 || other.Sends.Load() != 0 {
		t.Errorf("%d and %d sends", s.Sends.Load(), other.Sends.Load())
	}
}
