package journal_test

import (
	"os"
	"os/user"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// Whoever looks later sees who settled an operation, where, when and why.
func TestSettleSaysWho(t *testing.T) {
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	t.Setenv("SUDO_USER", "")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	show := func(key string) string {
		return commandtest.Run(t, "journal", "show", key, "--journal", j).Want(t, terminal.ExitOK).Out
	}
	commandtest.Run(t, "journal", "settle", "idemp:o:a", "--happened", "--reason", "seen at the bank", "--journal", j).Want(t, terminal.ExitOK)
	by := "by " + me.Username + "@" + host
	if got := show("idemp:o:a"); !strings.Contains(got, "note      seen at the bank ("+by+")\n") || !strings.Contains(got, "finished  2") {
		t.Errorf("settled:\n%s", got)
	}
	t.Setenv("SUDO_USER", "ann")
	commandtest.Run(t, "journal", "abandon", "idemp:o:b", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	if got := show("idemp:o:b"); !strings.Contains(got, "note      by ann@"+host+"\n") {
		t.Errorf("abandoned:\n%s", got)
	}
}
