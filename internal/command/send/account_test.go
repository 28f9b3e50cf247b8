package send_test

import (
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// A send whose --account was forgotten sends nothing once more; an empty one that is said is meant, and so is another request under the key.
func TestForgottenAccount(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	journal := t.TempDir() + "/j.db"
	send := func(data string, more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"send", "POST", s.URL, "-d", data, "--key", "k", "--profile", "none", "--journal", journal}, more...)...)
	}
	send("{}", "--account", "shop a").Want(t, terminal.ExitOK)
	send("{}").Usage(t, `oncehttp: "k" was sent for the account "shop a"; say --account 'shop a', which goes on there, or --account '' if it is to be sent for the unnamed one, too; nothing was sent`)
	send("{}", "--account", "shop a").Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 1 {
		t.Errorf("%d sends", n)
	}
	send("{}", "--account", "").Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 2 {
		t.Errorf("%d sends, want two", n)
	}
}
