package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		"succeeded": {`{"result":{"id":1}}`, exitOK, "done"},
		"refused":   {`{"error":{"code":-32602}}`, exitRefused, "declined"},
		"unclear":   {`{}`, exitUnknown, "held"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, c.body) }))
			defer s.Close()
			path := writeProfile(t, "hiding")
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
				got := run(t, "send", "POST", s.URL, "-d", "{}", "--profile", path, "--key", "k", "--journal", journal, "--json").want(t, c.exit)
				if !strings.Contains(got.out, `"result":"`+c.result+`"`) {
					t.Errorf("%s, want %s", got.out, c.result)
				}
			}
			run(t, "send", "POST", s.URL, "-d", "{}", "--profile", path, "--key", "k", "--journal", journal).want(t, c.exit)
			if got := run(t, "journal", "list", "--journal", journal, "--json", "--result", c.result).want(t, exitOK); !strings.Contains(got.out, `"k"`) {
				t.Errorf("not listed as %s: %s", c.result, got.out)
			}
		})
	}
}
