package journal_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestResumeTellsWhatIsLeft: without --account the summary and the exit status tell of what is held under any account, and with KEY the summary tells
// of the others.
func TestResumeTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	j := filepath.Join(t.TempDir(), "j.db")
	send := func(key string, args ...string) {
		t.Helper()
		commandtest.Run(t, commandtest.Fast(append([]string{"send", "POST", s.URL + "/p", "-d", "{}", "--key", key, "--journal", j}, args...)...)...).Want(t, terminal.ExitUnknown)
	}
	send("h:1", "--account", "shop")
	send("h:2", "--account", "shop")
	send("h:3", "--account", "other")
	commandtest.Run(t, "journal", "settle", "h:3", "--happened", "--journal", j).Want(t, terminal.ExitOK)
	for name, c := range map[string]struct {
		args   []string
		status int
		left   string
	}{
		"all":           {nil, terminal.ExitUnknown, "; left: 0 pending, 2 held\n"},
		"an account":    {[]string{"--account", "shop"}, terminal.ExitUnknown, "; left: 0 pending, 2 held\n"},
		"a settled one": {[]string{"--account", "other"}, terminal.ExitOK, "; left: 0 pending, 0 held\n"},
		"a key":         {[]string{"h:1"}, terminal.ExitUnknown, "; left: 0 pending, 1 held; of other keys: 0 pending, 1 held\n"},
		"a key done":    {[]string{"h:3"}, terminal.ExitOK, "; left: 0 pending, 0 held; of other keys: 0 pending, 2 held\n"},
	} {
		got := commandtest.Run(t, commandtest.Fast(append([]string{"journal", "resume", "--journal", j}, c.args...)...)...).Want(t, c.status)
		if !strings.HasSuffix(got.Err, c.left) {
			t.Errorf("%s: %q, want %q", name, got.Err, c.left)
		}
	}
}
