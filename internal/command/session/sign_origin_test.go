package session_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestSignOrigin: work and journal resume sign only for the servers that the call names. Without a name they send nothing; what somebody has put into
// the journal for another host stays there.
func TestSignOrigin(t *testing.T) {
	t.Parallel()
	signature := signing(t, signedLayout, "s3cret")
	accept := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
	ours, foreign := commandtest.Serve(t, accept), commandtest.Serve(t, accept)
	j := filepath.Join(t.TempDir(), "j.db")
	commandtest.EnqueueOne(t, j, ours.URL, "ours", "{}")
	commandtest.EnqueueOne(t, j, foreign.URL, "foreign", "{}")
	for _, args := range [][]string{{"journal", "resume"}, {"work"}} {
		got := commandtest.Run(t, append(args, "--journal", j, "--sign", signature)...).Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, "--sign: say") || !strings.Contains(got.Err, "--origin") {
			t.Errorf("%v: %s", args, got.Err)
		}
	}
	if ours.Sends.Load()+foreign.Sends.Load() != 0 {
		t.Fatalf("%d and %d sends without a name", ours.Sends.Load(), foreign.Sends.Load())
	}
	commandtest.Run(t, "journal", "resume", "--journal", j, "--sign", signature, "--origin", ours.URL)
	if ours.Sends.Load() != 1 || foreign.Sends.Load() != 0 {
		t.Errorf("resume: %d sends, and %d to the other host", ours.Sends.Load(), foreign.Sends.Load())
	}
	commandtest.EnqueueOne(t, j, ours.URL, "again", `{"n":2}`)
	w := commandtest.StartWork(t, "--journal", j, "--sign", signature, "--origin", ours.URL)
	w.Errs.Await(t, "does not send to")
	for ours.Sends.Load() < 2 {
		w.Ask(t)
	}
	if foreign.Sends.Load() != 0 {
		t.Errorf("work: %d sends to the other host", foreign.Sends.Load())
	}
}
