package batch_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestSummaryCountsOwnRequests: the summary has the requests of this run, as many as the server has seen, and not those of earlier runs.
func TestSummaryCountsOwnRequests(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n3\n")
	before := int64(0)
	for _, status := range []int{terminal.ExitUnknown, terminal.ExitUnknown, terminal.ExitOK, terminal.ExitOK} {
		got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "2", "--workers", "1")...).Want(t, status)
		seen := s.Sends.Load() - before
		before += seen
		if want := fmt.Sprintf("; %d requests sent\n", seen); !strings.Contains(got.Err, want) {
			t.Errorf("want %q in %q", want, got.Err)
		}
		up.Store(status == terminal.ExitOK || before >= 12)
	}
}
