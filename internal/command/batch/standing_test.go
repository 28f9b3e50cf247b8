package batch_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestBatchSaysHowRowsStand: a row that its record keeps from being sent has the attempts and the sends of the record. A held one names the reason and the next
// step; one that a person settled as absent was sent, and does not say otherwise.
func TestBatchSaysHowRowsStand(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>welcome</html>")
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--done", "/status=paid"}
	first := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown).Only(t)
	held := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
	l, journal := held.Only(t), file+".oncehttp.db"
	if l.Result != results.Held || l.Attempts != first.Attempts || l.Sends != first.Sends || l.Sends == 0 || l.Source != "journal" {
		t.Errorf("held: %+v, the first run had %+v", l, first)
	}
	seen := commandtest.SeenAs(t, journal, "idemp:o:1")
	for _, text := range []string{"last attempt: ", "; look at the server, and say what happened: oncehttp journal settle " + seen + " --happened --journal " + journal, "settle " + seen + " --absent --journal " + journal} {
		if !strings.Contains(l.Why(), text) {
			t.Errorf("held: %q, want %q", l.Why(), text)
		}
	}
	commandtest.Run(t, "journal", "settle", seen, "--absent", "--journal", journal, "--yes").Want(t, terminal.ExitOK)
	settled := commandtest.Run(t, batch...).Want(t, terminal.ExitRefused).Only(t)
	if settled.Result != results.Rejected || settled.Outcome != "absent" || settled.Attempts != first.Attempts || settled.Sends != first.Sends {
		t.Errorf("settled as absent: %+v, the first run had %+v", settled, first)
	}
	if int64(first.Sends) != s.Sends.Load() {
		t.Errorf("%d sends, and the first run had %d", s.Sends.Load(), first.Sends)
	}
}
