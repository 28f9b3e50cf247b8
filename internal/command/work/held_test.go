package work_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestOnHeld: the program gets a held operation on its stdin, again after a failure, and again at the next start. Then the operation is settled by
// what it was told.
func TestOnHeld(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
		dir := t.TempDir()
		heard := filepath.Join(dir, "heard")
		program := commandtest.WriteFile(t, filepath.Join(dir, "told.sh"), `cat >> "$1"; if [ ! -e "$1.once" ]; then touch "$1.once"; echo "no pager" >&2; exit 7; fi`)
		onHeld := "sh " + program + " " + heard
		commandtest.EnqueueOne(t, journal, s.URL, "o:1", "{}")
		w := commandtest.StartWork(t, "--journal", journal, "--on-held", onHeld)
		w.Errs.Await(t, `(--on-held: o:1: exit status 7: no pager; it is run again)`)
		lines := func(n int) []string {
			t.Helper()
			for start := time.Now(); ; time.Sleep(time.Millisecond) {
				text, _ := os.ReadFile(heard)
				if all := strings.Split(strings.TrimSpace(string(text)), "\n"); len(all) >= n && all[0] != "" {
					return all
				}
				if time.Since(start) > 40*time.Second {
					t.Fatalf("%d lines are not there: %s", n, text)
				}
			}
		}
		lines(2)
		if status := w.Stop(t, syscall.SIGTERM); status != terminal.ExitOK {
			t.Errorf("status %d", status)
		}
		again := commandtest.StartWork(t, "--journal", journal, "--on-held", onHeld)
		all := lines(3)
		var told struct{ Key, Seen, State, Why, Result string }
		if err := json.Unmarshal([]byte(all[len(all)-1]), &told); err != nil || len(all) != 3 || told.Key != "o:1" || told.State != "held" || told.Why == "" || told.Result != "held" {
			t.Errorf("%d lines, %+v, %v", len(all), told, err)
		}
		if all[0] != all[1] || all[1] != all[2] {
			t.Errorf("it was told otherwise each time:\n%s", strings.Join(all, "\n"))
		}
		again.Stop(t, syscall.SIGTERM)
		commandtest.Run(t, "journal", "settle", told.Seen, "--happened", "--journal", journal).Want(t, terminal.ExitOK)
	})
}

// A program that is not there is told before anything is sent.
func TestOnHeldProgram(t *testing.T) {
	t.Parallel()
	journal := commandtest.DoubtJournal(t)
	commandtest.Run(t, "work", "--journal", journal, "--on-held", "no-such-program-here -x").Usage(t, "oncehttp: --on-held: there is no program no-such-program-here")
}
