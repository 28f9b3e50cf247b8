package session_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestVerdicts: the result and the exit status of an operation whose outcome stands in its 200, when it is sent, answered by the
// journal, and listed after its answer is gone.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		exit   int
		result string
	}{
		"succeeded": {`{"result":{"id":1}}`, terminal.ExitOK, "done"},
		"refused":   {`{"error":{"code":-32602}}`, terminal.ExitRefused, "declined"},
		"unclear":   {`{}`, terminal.ExitUnknown, "held"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, c.body) }))
			defer s.Close()
			path := commandtest.WriteProfile(t, "hiding")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Replace(string(text), `"verdicts": null`, `"verdicts": {"value": [{"pointer": "/result", "proves": "succeeded"}, {"pointer": "/error/code", "proves": "refused"}], "source": "us"}`, 1)
			if err := os.WriteFile(path, []byte(said), 0o600); err != nil {
				t.Fatal(err)
			}
			journal := filepath.Join(t.TempDir(), "j.db")
			for range 2 {
				got := commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--profile", path, "--key", "k", "--journal", journal, "--json").Want(t, c.exit)
				if !strings.Contains(got.Out, `"result":"`+c.result+`"`) {
					t.Errorf("%s, want %s", got.Out, c.result)
				}
			}
			commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--profile", path, "--key", "k", "--journal", journal).Want(t, c.exit)
			if got := commandtest.Run(t, "journal", "list", "--journal", journal, "--json", "--result", c.result).Want(t, terminal.ExitOK); !strings.Contains(got.Out, `"k"`) {
				t.Errorf("not listed as %s: %s", c.result, got.Out)
			}
		})
	}
}
