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

// TestSendDeclinedNeedsTheMember: an answer without the member that --declined reads tells nobody whether it was a refusal: unknown, and not done. One
// call that asks for both is refused.
func TestSendDeclinedNeedsTheMember(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":"p","payment":{"status":"declined"}}`))
	})
	at := filepath.Join(t.TempDir(), "j.db")
	args := []string{"send", "POST", s.URL + "/x", "--journal", at, "--key", "k", "-d", "{}", "--json"}
	declined := []string{"--declined", "/payment/status=declined"}
	for _, drop := range []string{"/payment/status", "/payment"} {
		commandtest.Run(t, append(append(args, declined...), "--drop-answer", drop)...).Usage(t,
			"oncehttp: --declined reads /payment/status, and --drop-answer "+drop+" keeps it out of the journal: a later run could not tell a refusal from a success; leave one of them out")
	}
	if n := s.Sends.Load(); n != 0 {
		t.Fatalf("%d sends", n)
	}
	commandtest.Run(t, append(args, "--drop-answer", "/payment/status")...).Want(t, terminal.ExitOK)
	for _, flags := range [][]string{declined, nil} { // the journal knows it from then on
		got := commandtest.Run(t, append(args, flags...)...).Want(t, terminal.ExitUnknown)
		if !strings.Contains(got.Out, `"result":"unknown"`) || !strings.Contains(got.Out, `"dropped":["/payment/status"]`) || !strings.Contains(got.Out, "keeps the answer without /payment/status") {
			t.Errorf("%v: %s", flags, got.Out)
		}
	}
	if n := s.Sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}
