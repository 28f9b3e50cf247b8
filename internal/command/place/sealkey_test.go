package place_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// sealKeys writes a file of keys, each of one letter, and returns the value of
// --seal-key.
func sealKeys(t *testing.T, ids string) string {
	t.Helper()
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(string(id) + ":" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(id)}, 32)) + "\n")
	}
	return "@" + commandtest.WriteFile(t, "seal.keys", text.String())
}

// holds reports whether the file has the text somewhere.
func holds(t *testing.T, name, text string) bool {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(b, []byte(text))
}

// A batch with --seal-key leaves nothing of its rows in the journal, and its rerun, with the key behind a new one, sends
// nothing.
func TestSealKeyBatch(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	dir := t.TempDir()
	in, journal := commandtest.WriteFile(t, filepath.Join(dir, "orders.csv"), "order_id,card\no1,secret-card-1\no2,secret-card-2\n"), filepath.Join(dir, "j.db")
	batch := func(keys string) commandtest.Ran {
		return commandtest.Run(t, commandtest.Fast("batch", in, "--url", m.URL()+"/payments?via=secret-query", "--key", "order:{order_id}", "--journal", journal, "--quiet", "--seal-key", keys)...)
	}
	first := batch(sealKeys(t, "a")).Want(t, terminal.ExitOK).Lines(t)
	for _, secret := range []string{"secret-card", "secret-query", "/payments", "application/json"} {
		if holds(t, journal, secret) {
			t.Errorf("the journal holds %q", secret)
		}
	}
	again := batch(sealKeys(t, "ba")).Want(t, terminal.ExitOK).Lines(t)
	if effects := m.Ledger().Effects("idemp:order:o1"); len(first) != 2 || len(again) != 2 || again[0].Source != "journal" || effects != 1 {
		t.Errorf("%d lines, then %d, the first from %s; %d effects", len(first), len(again), again[0].Source, effects)
	}

	show := []string{"journal", "show", "idemp:order:o1", "--journal", journal}
	if got := commandtest.Run(t, append(show, "--seal-key", sealKeys(t, "ab"))...).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "/payments") {
		t.Errorf("show says %s", got.Out)
	}
	for name, c := range map[string]struct{ keys, want string }{
		"no key":      {"", `sealed with the key "a": give --seal-key @FILE`},
		"another key": {sealKeys(t, "b"), `the key "a", which was not given`},
		"its id":      {"@" + commandtest.WriteFile(t, "k", "a:"+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 32))), `another key "a"`},
	} {
		for _, args := range [][]string{show, {"journal", "list", "--journal", journal}, {"journal", "resume", "--journal", journal}, {"journal", "prune", "--journal", journal},
			{"journal", "compact", "--journal", journal}, {"batch", in, "--url", m.URL(), "--key", "order:{order_id}", "--journal", journal},
			{"send", "POST", m.URL(), "--key", "k", "--journal", journal}, {"work", "--journal", journal}} {
			if c.keys != "" {
				args = append(args, "--seal-key", c.keys)
			}
			got := commandtest.Run(t, args...).Want(t, terminal.ExitUsage)
			if line := got.Err[strings.LastIndex(strings.TrimSpace(got.Err), "\n")+1:]; got.Out != "" || !strings.Contains(line, c.want) || !strings.Contains(line, journal) {
				t.Errorf("%s: %v: stdout %q, stderr %q; want %q", name, args[:2], got.Out, got.Err, c.want)
			}
		}
	}
}

// What --seal-key takes, and what it says of the rest. No key is shown, and nothing is opened.
func TestSealKeyUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := "a:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("s"), 32))
	open := commandtest.WriteFile(t, filepath.Join(dir, "open.keys"), secret)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ value, want string }{
		"a key":       {secret, "want @FILE"},
		"a file name": {open, "want @FILE"},
		"no file":     {"@" + filepath.Join(dir, "none"), "none: no such file"},
		"no key":      {"@" + commandtest.WriteFile(t, filepath.Join(dir, "empty"), "# none\n"), "holds no key"},
		"a bad line":  {"@" + commandtest.WriteFile(t, filepath.Join(dir, "bad"), secret+"\n"+secret[4:]), "line 2"},
		"twice":       {"@" + commandtest.WriteFile(t, filepath.Join(dir, "twice"), secret+"\n"+secret), `two keys "a"`},
		"for others":  {"@" + open, "chmod 600"},
	} {
		if name == "for others" && runtime.GOOS == "windows" {
			continue
		}
		journal := filepath.Join(dir, "never.db")
		got := commandtest.Run(t, "send", "POST", "http://127.0.0.1:1", "--key", "k", "--journal", journal, "--seal-key", c.value).Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, "--seal-key") || !strings.Contains(got.Err, c.want) || strings.Contains(got.Err, secret[4:20]) {
			t.Errorf("%s: %s; want %q", name, got.Err, c.want)
		}
		if _, err := os.Stat(journal); err == nil {
			t.Errorf("%s: a journal was made", name)
		}
	}
}

// A journal in clear is refused with a key, and sealed by compact, which brings it under the current key later on.
func TestSealKeyCompact(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	dir := t.TempDir()
	journal := filepath.Join(dir, "j.db")
	send := func(key string, more ...string) commandtest.Ran {
		return commandtest.Run(t, append(commandtest.Fast("send", "POST", m.URL()+"/payments", "-d", `{"card":"secret-card"}`, "--key", key, "--journal", journal), more...)...)
	}
	send("one").Want(t, terminal.ExitOK)
	if !holds(t, journal, "secret-card") {
		t.Fatal("a journal in clear does not hold the request: the test shows nothing")
	}
	if got := send("one", "--seal-key", sealKeys(t, "a")).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "is not sealed") || !strings.Contains(got.Err, "journal compact --seal-key @FILE") {
		t.Errorf("a key for a journal in clear: %s", got.Err)
	}
	for i, keys := range []string{"a", "ba", "b"} {
		commandtest.Run(t, "journal", "compact", "--journal", journal, "--seal-key", sealKeys(t, keys)).Want(t, terminal.ExitOK)
		if holds(t, journal, "secret-card") {
			t.Errorf("compact %d: the journal holds the request", i)
		}
		send("one", "--seal-key", sealKeys(t, keys)).Want(t, terminal.ExitOK)
		send("two", "--seal-key", sealKeys(t, keys)).Want(t, terminal.ExitOK)
	}
	if one, two := m.Ledger().Effects("one"), m.Ledger().Effects("two"); one != 1 || two != 1 || m.Ledger().Sends("one") != 1 {
		t.Errorf("%d and %d effects", one, two)
	}
	file, err := bolt.Open(journal, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for rec, err := range file.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil || rec.CarrierName != "b" {
			t.Errorf("%q is sealed with %q: %v", rec.Key, rec.CarrierName, err)
		}
	}
}

// A reader of a journal that another process holds unseals for itself: without the keys it sees nothing.
func TestSealKeyHeld(t *testing.T) {
	t.Parallel()
	journal, keys := filepath.Join(t.TempDir(), "j.db"), sealKeys(t, "a")
	list := []string{"journal", "export", "--journal", journal}
	server := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		got := commandtest.Run(t, list...)
		if got.Status != terminal.ExitUsage || !strings.Contains(got.Err, "--seal-key @FILE") || got.Out != "" {
			t.Errorf("without keys: %d, %q, %q", got.Status, got.Out, got.Err)
		}
		got = commandtest.Run(t, append(list, "--seal-key", keys)...)
		if got.Status != terminal.ExitOK || !strings.Contains(got.Out, "/secret-path") {
			t.Errorf("with keys: %d, %q, %q", got.Status, got.Out, got.Err)
		}
	})
	in := commandtest.WriteFile(t, "orders.csv", "order_id\no1\n")
	commandtest.Run(t, commandtest.Fast("batch", in, "--url", server.URL+"/secret-path", "--key", "order:{order_id}", "--journal", journal, "--quiet", "--seal-key", keys)...).Want(t, terminal.ExitOK)
	if server.Sends.Load() != 1 {
		t.Errorf("%d sends", server.Sends.Load())
	}
}

// TestSealedAdvice: commands that are printed for a sealed journal have its --seal-key, and so can be pasted.
func TestSealedAdvice(t *testing.T) {
	t.Parallel()
	keys := sealKeys(t, "a")
	server := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	in := commandtest.WriteFile(t, "orders.csv", "order_id\no1\n")
	got := commandtest.Run(t, commandtest.Fast("batch", in, "--url", server.URL, "--profile", "none", "--key", "order:{order_id}", "--max-attempts", "1", "--seal-key", keys)...).Want(t, terminal.ExitUnknown)
	journal := in + ".oncehttp.db"
	for name, text := range map[string]string{
		"batch": got.Out + got.Err,
		"stuck": commandtest.Run(t, "journal", "stuck", "--journal", journal, "--seal-key", keys).Want(t, terminal.ExitOK).Err,
	} {
		if n := strings.Count(text, "--journal "); n == 0 || strings.Count(text, "--seal-key "+words.ShellQuote(keys)) != n {
			t.Errorf("%s says %s", name, text)
		}
	}
}
