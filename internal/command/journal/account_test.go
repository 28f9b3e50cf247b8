package journal_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// TestUnknownAccount: stuck and stats of an account that no operation has say so: its name may be mistyped, and a watch would see nothing for ever.
func TestUnknownAccount(t *testing.T) {
	t.Parallel()
	url := commandtest.StartMock(t, mockserver.Config{}).URL() + "/payments"
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	commandtest.Run(t, "batch", file, "--url", url, "--key", "o:{id}", "--account", "shop").Want(t, terminal.ExitOK)
	for _, command := range []string{"stuck", "stats"} {
		for account, unknown := range map[string]bool{"shop": false, "shpo": true, "": true} {
			got := commandtest.Run(t, "journal", command, "--journal", file+".oncehttp.db", "--account", account, "--quiet").Want(t, terminal.ExitOK)
			if said := strings.Contains(got.Err, "no operation of the journal is of --account "); said != unknown {
				t.Errorf("%s --account %q says %q", command, account, got.Err)
			}
		}
		if got := commandtest.Run(t, "journal", command, "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK); strings.Contains(got.Err, "--account") {
			t.Errorf("%s says %q", command, got.Err)
		}
	}
}

// TestUnknownKey: a listing of keys says which of them no operation has, and nothing of one that is done.
func TestUnknownKey(t *testing.T) {
	t.Parallel()
	url := commandtest.StartMock(t, mockserver.Config{}).URL() + "/payments"
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	commandtest.Run(t, "batch", file, "--url", url, "--key", "o:{id}").Want(t, terminal.ExitOK)
	for _, command := range []string{"list", "stuck"} {
		for key, known := range map[string]bool{"idemp:o:1": true, "o:1": true, "o:*": true, "o:12": false, "0:*": false, "redis": false} {
			got := commandtest.Run(t, "journal", command, key, "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
			if said := strings.Contains(got.Err, `.oncehttp.db has the key "`+key+`"`); said == known {
				t.Errorf("%s %s says %q", command, key, got.Err)
			}
		}
	}
}
