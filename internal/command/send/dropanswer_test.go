package send_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestSendDropsAnswer: --drop-answer keeps a member out of the file. The call that got the answer shows it whole, and a wrong pointer names the flag.
func TestSendDropsAnswer(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":"answer-canary","client_secret":"secret-canary"}`))
	})
	for name, drop := range map[string][]string{"dropped": {"--drop-answer", "/client_secret", "--drop-answer", "/other"}, "kept": nil} {
		at := filepath.Join(t.TempDir(), "j.db")
		args := append([]string{"send", "POST", s.URL + "/x", "--journal", at, "--key", "k", "-d", "{}"}, drop...)
		if got := commandtest.Run(t, args...).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "secret-canary") {
			t.Errorf("%s: the first call shows %s", name, got.Out)
		}
		if got := commandtest.Run(t, args...).Want(t, terminal.ExitOK); strings.Contains(got.Out, "secret-canary") != (drop == nil) || !strings.Contains(got.Out, "answer-canary") {
			t.Errorf("%s: the replay shows %s", name, got.Out)
		}
		if text, err := os.ReadFile(at); err != nil || bytes.Contains(text, []byte("secret-canary")) != (drop == nil) {
			t.Errorf("%s: the member is in the file: %t, %v", name, drop != nil, err)
		}
	}
	got := commandtest.Run(t, "send", "POST", s.URL+"/x", "--journal", filepath.Join(t.TempDir(), "j.db"), "-d", "{}", "--drop-answer", "secret")
	if got.Status == terminal.ExitOK || !strings.Contains(got.Err, "--drop-answer") {
		t.Errorf("a pointer without a slash: %d, %s", got.Status, got.Err)
	}
}
