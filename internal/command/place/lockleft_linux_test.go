package place_test

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestLockLeftByAProcess: the process that locked the journal has ended, and another one has its descriptor. The system names the first, which nobody can wait for.
func TestLockLeftByAProcess(t *testing.T) {
	t.Parallel()
	j := commandtest.JournalIn(t)
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j).Want(t, terminal.ExitOK)
	file, err := os.OpenFile(j, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	pid, err := syscall.ForkExec("/usr/bin/flock", []string{"flock", "3"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2, file.Fd()}})
	if err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.ExitStatus() != 0 {
		t.Fatal(status, err)
	}
	got := commandtest.Run(t, "journal", "abandon", "k", "--yes", "--journal", j).Want(t, terminal.ExitLocked)
	if strings.Contains(got.Err, "0001-01-01") || strings.Count(got.Err, "\n") != 1 {
		t.Errorf("stderr %q", got.Err)
	}
}
