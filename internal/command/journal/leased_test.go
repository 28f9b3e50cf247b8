package journal_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestResumeOfLeased: just after a process was killed, its operations are still leased to it. Resume sends none, and says why, until when, and
// what to do.
func TestResumeOfLeased(t *testing.T) {
	t.Parallel()
	says := regexp.MustCompile(`left: 1 pending, 0 held\nanother process has 1 of them, or had when it died; free in [0-9]+s; say the same again then\n$`)
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		url, arrived, release := commandtest.Blocking(t)
		defer close(release)
		file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\na\n")
		cmd, _ := commandtest.Child(t, commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--journal", journal)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-arrived
		_ = cmd.Process.Kill()
		commandtest.Status(t, cmd)
		got := commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", journal)...).Want(t, terminal.ExitUnknown)
		if !says.MatchString(got.Err) {
			t.Errorf("stderr %s", got.Err)
		}
		commandtest.EndLeases(t, journal)
		if got := commandtest.Run(t, "journal", "resume", "--dry-run", "--journal", journal).Want(t, terminal.ExitOK); !strings.Contains(got.Out, " send ") {
			t.Errorf("once it is free: %s", got.Out)
		}
	})
}
