package batch_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestMismatchOfOpenOnes: a row that was corrected while its first request is pending or held names that in its next step, and ends with 3; after a success it ends with 1.
func TestMismatchOfOpenOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile, step string
		status        int
		lost          bool
	}{
		"pending": {"draft-07", "which is pending, and with which this command does not go on: oncehttp journal resume ", terminal.ExitUnknown, true},
		"held":    {"none", "which is held: oncehttp journal stuck ", terminal.ExitUnknown, true},
		"done":    {"none", "the key stands for another request; oncehttp journal show KEY ", terminal.ExitRefused, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.lost {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(http.StatusCreated)
			})
			file := commandtest.WriteFile(t, "in.csv", "id,amount\na,1\n")
			args := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", c.profile, "--max-attempts", "1", "--new-journal")
			commandtest.Run(t, args...)
			commandtest.WriteFile(t, file, "id,amount\na,2\n")
			for _, more := range [][]string{nil, {"--generation", "2"}} {
				got := commandtest.Run(t, append(args, more...)...)
				if l := got.Only(t); l.Result != results.Mismatch || got.Status != c.status && more == nil || more == nil && !strings.Contains(got.Err, c.step) {
					t.Errorf("%q: status %d, %+v; stderr %q", more, got.Status, l, got.Err)
				}
				if c.lost && got.Status != terminal.ExitUnknown {
					t.Errorf("%q: status %d, want 3", more, got.Status)
				}
			}
			if n := s.Sends.Load(); n != 1 {
				t.Errorf("%d sends", n)
			}
		})
	}
}
