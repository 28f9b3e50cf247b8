package journal_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestErase: the command says until when an operation may not be erased, erases it afterwards, and says so once more. What is shown has nothing of the request.
func TestErase(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "j.db")
	writeEnded(t, at)
	run := func(args ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"journal", args[0], "--journal", at}, args[1:]...)...)
	}
	if got := run("erase", "idemp:new", "--yes"); got.Status == terminal.ExitOK || !strings.Contains(got.Err, "until") {
		t.Errorf("in its window: %d, %s", got.Status, got.Err)
	}
	if got := run("show", "idemp:new").Want(t, terminal.ExitOK); strings.Contains(got.Out, "erased") {
		t.Error("it was erased in its window")
	}
	run("erase", "idemp:old").Usage(t, "oncehttp: what is erased cannot be had again: neither answer nor request; to go ahead all the same: --yes")
	if got := run("erase", "idemp:old", "--yes").Want(t, terminal.ExitOK); got.Out != "erased: idemp:old\n" {
		t.Errorf("%q", got.Out)
	}
	if got := run("erase", "idemp:old", "--yes").Want(t, terminal.ExitOK); got.Out != "erased already: idemp:old\n" {
		t.Errorf("once more: %q", got.Out)
	}
	if got := run("show", "--json", "idemp:old").Want(t, terminal.ExitOK); strings.Contains(got.Out, "canary") || !strings.Contains(got.Out, `"erased":true`) && !strings.Contains(got.Out, `"erased": true`) {
		t.Errorf("%s", got.Out)
	}
	if got := run("verify"); strings.Contains(got.Out, "idemp:old") {
		t.Errorf("%s", got.Out)
	}
}

// writeEnded makes a journal of two ended operations: the window of one is over.
func writeEnded(t *testing.T, at string) {
	t.Helper()
	j, err := bolt.Open(at, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, sent := range map[string]time.Time{"idemp:old": time.Now().Add(-48 * time.Hour), "idemp:new": time.Now().Add(-time.Hour)} {
		rec := persist.Record{
			ID: persist.ID{Key: key}, Origin: "http://api.example:80", Method: "POST", Target: "/canary", Body: []byte("canary"), Carrier: "header", CarrierName: "Idempotency-Key",
			WireKey: key, Profile: "draft-07", ProfileVersion: "1", Recipe: "1", Window: 24 * time.Hour, KeepAnswer: 24 * time.Hour, Fingerprint: make([]byte, 32),
			Created: sent, MaybeSent: true, FirstSent: sent, Sends: 1,
		}
		rec, _, err := j.Begin(t.Context(), rec)
		if err != nil {
			t.Fatal(err)
		}
		rec.State, rec.Finished, rec.Answer = persist.StateConfirmed, sent, &persist.Answer{Status: 201, Body: []byte("canary")}
		if err := j.Finish(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestEraseCompact: a compact takes the digests of an erased operation along, with a key of a seal, too, so that its key still finds it. It does not make hashes of a key that is
// gone: it refuses the file. Every other command takes the form.
func TestEraseCompact(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "j.db")
	writeEnded(t, at)
	run := func(args ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"journal", args[0], "--journal", at}, args[1:]...)...)
	}
	run("erase", "idemp:old", "--yes").Want(t, terminal.ExitOK)
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {"export"}, {"stats"}, {"who"}, {"verify"}, {"rejected", "--in", at}, {"sweep"}, {"report"}} {
		if got := run(args...); strings.Contains(got.Out, "idemp:old") || strings.Contains(got.Out, "canary") && args[0] != "export" && args[0] != "list" {
			t.Errorf("%s: %d, %s, %s", args, got.Status, got.Out, got.Err)
		}
	}
	keys, hashed := filepath.Join(t.TempDir(), "keys"), filepath.Join(t.TempDir(), "hashed")
	for name, id := range map[string]string{keys: "", hashed: "hash-keys:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)) + "\n"} {
		if err := os.WriteFile(name, []byte("k1:"+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32))+"\n"+id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := run("compact", "--seal-key", "@"+hashed); got.Status == terminal.ExitOK || !strings.Contains(got.Err, "hash-keys") {
		t.Errorf("compact to hashes of keys: %d, %s", got.Status, got.Err)
	}
	for _, sealed := range [][]string{nil, {"--seal-key", "@" + keys}} {
		run(append([]string{"compact"}, sealed...)...).Want(t, terminal.ExitOK)
		if got := run(append([]string{"show", "idemp:old"}, sealed...)...).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "digests") {
			t.Errorf("%s", got.Out)
		}
		if text, err := os.ReadFile(at); err != nil || bytes.Contains(text, []byte("idemp:old")) || !bytes.Contains(text, []byte("idemp:new")) {
			t.Errorf("the key of the erased operation is in the file, or that of the other one is not; %v", err)
		}
	}
}
