package send_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestDoubtNamesTheKey: the advice about a doubtful answer of a request without --key names its key, and what it advises sends nothing.
func TestDoubtNamesTheKey(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"failed"}`)
	})
	send := []string{"send", "POST", s.URL, "-d", "{}", "--json", "--journal", t.TempDir() + "/j.db"}
	got := commandtest.Run(t, send...).Want(t, terminal.ExitOK)
	key := got.Only(t).Key
	if !strings.Contains(got.Err, "say so: --declined /status=failed with the same command and --key "+key+" counts it as declined, and sends nothing") {
		t.Fatalf("stderr %q", got.Err)
	}
	again := commandtest.Run(t, append(send, "--declined", "/status=failed", "--key", key)...).Want(t, terminal.ExitRefused)
	if l := again.Only(t); l.Result != results.Declined || s.Sends.Load() != 1 {
		t.Errorf("%d sends; %+v", s.Sends.Load(), l)
	}
	// The message about that value names a command which can be pasted.
	_, text, _ := strings.Cut(commandtest.Run(t, append(send, "--key", "other")...).Err, "(oncehttp ")
	command, _, found := strings.Cut(text, " takes one back)")
	commandtest.Run(t, strings.Fields(strings.ReplaceAll(command, "VALUE", "/status=failed"))...).Want(t, terminal.ExitOK)
	if !found {
		t.Errorf("no command in %q", text)
	}
}
