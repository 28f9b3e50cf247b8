package batch_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestBatchNamesDoubts: a success whose answer has words against it stays done, and the summary names the words and the flag for them. A rerun,
// which sends nothing, does not.
func TestBatchNamesDoubts(t *testing.T) {
	t.Parallel()
	answers := map[string][3]string{ // a content type, an answer, and what is said of it
		"declined":   {"application/json", `{"id":1,"status":"declined"}`, "1 of the done: the answer has /status=declined; if that is no success, say so: --declined /status=declined"},
		"nested":     {"application/json", `{"data":{"payment_state":"PROCESSING"}}`, "the answer has /data/payment_state=PROCESSING"},
		"graphql":    {"application/json", `{"errors":[{"message":"no"}],"data":{"pay":null}}`, "the answer has /errors; look whether these took effect"},
		"false":      {"application/json", `{"success":false}`, "--declined /success=false"},
		"empty":      {"application/json", ``, "the answer has no content, although it is called application/json"},
		"good":       {"application/json", `{"id":"p1","status":"succeeded","errors":[]}`, ""},
		"other word": {"application/json", `{"note":"not pending any more","status":"paid"}`, ""},
		"plain":      {"text/plain", ``, ""},
	}
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", a[0])
				_, _ = io.WriteString(w, a[1])
			})
			file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
			batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
			got := commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
			if a[2] == "" && strings.Contains(got.Err, "of the done") || !strings.Contains(got.Err, a[2]) {
				t.Errorf("it says %q, want %q", got.Err, a[2])
			}
			if again := commandtest.Run(t, batch...).Want(t, terminal.ExitOK); strings.Contains(again.Err, "of the done") {
				t.Errorf("once more: %q", again.Err)
			}
		})
	}
}
