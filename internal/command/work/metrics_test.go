package work_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
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
	commandtest.WantMetrics(t, "oncehttp_work_", text)
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
}
