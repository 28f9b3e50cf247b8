package work_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
)

// /metrics tells Prometheus what /healthz tells a person.
func TestWorkMetrics(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	commandtest.Enqueue(t, journal, s.URL, 3)
	w := commandtest.StartWork(t, "--journal", journal)
	for range 3 {
		w.Next(t)
	}
	text := w.Scrape(t)
	for _, line := range []string{
		"# TYPE oncehttp_work_attempts_total counter\noncehttp_work_attempts_total 3\n",
		"# TYPE oncehttp_work_runs_total counter\noncehttp_work_runs_total{outcome=\"confirmed\"} 3\n",
		"# TYPE oncehttp_work_up gauge\noncehttp_work_up 1\n", "\noncehttp_work_workers 8\n", "\noncehttp_work_blocked_total 0\n", "\noncehttp_work_start_time_seconds 1",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	commandtest.WantMetrics(t, text, "oncehttp_work_", "oncehttp_operation_", "oncehttp_result_")
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
}

// /metrics and /healthz tell what is not done in the whole journal, also of other accounts, and without a record.
func TestWorkUnfinished(t *testing.T) {
	t.Parallel()
	onJournals(t, func(t *testing.T, journal string) {
		s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "0") {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
			}
		})
		before := time.Now().Add(-time.Minute) // the clock of the journal may be another
		commandtest.Enqueue(t, journal, s.URL, 2)
		w := commandtest.StartWork(t, "--journal", journal)
		for range 2 {
			w.Next(t)
		}
		_, now := w.Ask(t)
		if u := now.Unfinished; u == nil || u.Pending != 0 || len(u.Held) != 1 || u.Held[persist.HoldRedirected] != 1 || u.Oldest.Before(before) || !u.NextDue.IsZero() {
			t.Errorf("healthz says of the journal: %+v; want one that is held, redirected", u)
		}
		text := w.Scrape(t)
		for _, line := range []string{`state="pending",hold_reason=""} 0`, `state="held",hold_reason="redirected"} 1`, `state="held",hold_reason="no key"} 0`} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
		if key := "w:0"; strings.Contains(text, key) {
			t.Errorf("a key is in\n%s", text)
		}
		w.Stop(t, syscall.SIGTERM)
	})
}
