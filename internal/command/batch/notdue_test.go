package batch_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestBatchWaitsAsTold: a row whose answer asked for a longer wait than --max-retry-after is not sent again before that
// time, by a later run as little as by a second row with its key. A row that is new to the journal is sent.
func TestBatchWaitsAsTold(t *testing.T) {
	t.Parallel()
	busy := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Idempotency-Key"), "o1") {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	dir := t.TempDir()
	file := commandtest.WriteFile(t, filepath.Join(dir, "orders.csv"), "id\no1\no1\n")
	batch := []string{"batch", file, "--url", busy.URL, "--key", "order:{id}", "--workers", "1"}

	first := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown).Lines(t)
	if busy.Sends.Load() != 1 || len(first) != 2 || first[1].Error == nil || first[1].Error.Code != "not_due" {
		t.Fatalf("%d sends, lines %+v; want one send, and the second row not due", busy.Sends.Load(), first)
	}
	commandtest.WriteFile(t, file, "id\no1\no2\n")
	again := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown).Lines(t)
	if len(again) != 2 || again[0].Error == nil || again[0].Error.Code != "not_due" || again[1].Result != results.Done {
		t.Errorf("once more: lines %+v; want the first not due and the second done", again)
	}
	if busy.Sends.Load() != 2 {
		t.Errorf("%d sends in all, want 2", busy.Sends.Load())
	}
}

// TestBatchSaysOfRecordedRows: a row that an earlier run ended has that run's attempts, also where its answer was pruned; and the summary names
// when the first of the waiting rows is due.
func TestBatchSaysOfRecordedRows(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Idempotency-Key"), "o:2") {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "prune", "--keep-answer", "-1s", "--journal", file+".oncehttp.db", "--yes").Want(t, terminal.ExitOK)
	again := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
	if l := again.Lines(t)[0]; l.Attempts != 1 || l.Sends != 1 || l.Source != "journal" {
		t.Errorf("line %+v, want the attempt of the earlier run", l)
	}
	if !strings.Contains(again.Err, "1 pending (not due): the first is due at 20") || !strings.Contains(again.Err, "--max-retry-after") {
		t.Errorf("it says %q", again.Err)
	}
}
