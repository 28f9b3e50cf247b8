package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestSignOrigin: work and journal resume sign only for the servers that the call names. Without a name they send nothing; what somebody has put into
// the journal for another host stays there.
func TestSignOrigin(t *testing.T) {
	t.Parallel()
	signature := signing(t, signedLayout, "s3cret")
	accept := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
	ours, foreign := serve(t, accept), serve(t, accept)
	j := filepath.Join(t.TempDir(), "j.db")
	enqueueOne(t, j, ours.url, "ours", "{}")
	enqueueOne(t, j, foreign.url, "foreign", "{}")
	for _, args := range [][]string{{"journal", "resume"}, {"work"}} {
		got := run(t, append(args, "--journal", j, "--sign", signature)...).want(t, exitUsage)
		if !strings.Contains(got.err, "--sign: say") || !strings.Contains(got.err, "--origin") {
			t.Errorf("%v: %s", args, got.err)
		}
	}
	if ours.sends.Load()+foreign.sends.Load() != 0 {
		t.Fatalf("%d and %d sends without a name", ours.sends.Load(), foreign.sends.Load())
	}
	run(t, "journal", "resume", "--journal", j, "--sign", signature, "--origin", ours.url)
	if ours.sends.Load() != 1 || foreign.sends.Load() != 0 {
		t.Errorf("resume: %d sends, and %d to the other host", ours.sends.Load(), foreign.sends.Load())
	}
	enqueueOne(t, j, ours.url, "again", `{"n":2}`)
	w := startWork(t, "--journal", j, "--sign", signature, "--origin", ours.url)
	w.errs.await(t, "does not send to")
	for ours.sends.Load() < 2 {
		w.ask(t)
	}
	if foreign.sends.Load() != 0 {
		t.Errorf("work: %d sends to the other host", foreign.sends.Load())
	}
}
