package batch_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestProfileNoneLater: rows in doubt that were begun under a profile with keys are not sent again by a run that says that the API takes none, neither by batch nor by send; the
// dry run says so, and nothing is left of it once a person has said what happened.
func TestProfileNoneLater(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	dir := t.TempDir()
	file, journal := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\na\nb\n"), filepath.Join(dir, "send.db")
	batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1")
	send := commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", journal, "--json", "--max-attempts", "1")
	commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, send...).Want(t, terminal.ExitUnknown)
	const why = "it may have been sent, under the profile draft-07, by which the API knows its key; by this run's it does not, so that nothing is sent again"
	if got := commandtest.Run(t, append(batch, "--profile", "none", "--dry-run")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, why) || !strings.Contains(got.Err, "2 pending; 0 would be sent") {
		t.Errorf("--dry-run: %q", got.Err)
	}
	got := commandtest.Run(t, append(batch, "--profile", "none")...).Want(t, terminal.ExitUnknown)
	for _, l := range append(got.Lines(t), commandtest.Run(t, append(send, "--profile", "none")...).Want(t, terminal.ExitUnknown).Only(t)) {
		if l.Result != results.Unknown || l.Error.Code != "key_not_trusted" || l.Sends != 1 || !strings.HasPrefix(l.Why(), why+"; look at the server, and say what happened: oncehttp journal settle ") {
			t.Errorf("%+v", l)
		}
	}
	if !strings.Contains(got.Err, "2 unknown (key not trusted): they were begun under a profile by which the API knows their keys") {
		t.Errorf("stderr %q", got.Err)
	}
	commandtest.WriteFile(t, file, "id\na\nb\nc\n")
	if got := commandtest.Run(t, append(batch, "--profile", "none", "--max-errors", "1")...).Want(t, terminal.ExitUnknown); strings.Contains(got.Err, "stopped") || len(got.Lines(t)) != 3 {
		t.Errorf("with a new row behind them: %q", got.Err)
	}
	commandtest.Run(t, "journal", "settle", "o:c", "--happened", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
	commandtest.WriteFile(t, file, "id\na\nb\n")
	if n := s.Sends.Load(); n != 4 {
		t.Errorf("%d sends, want four", n)
	}
	for _, key := range []string{"o:a", "o:b"} {
		commandtest.Run(t, "journal", "settle", key, "--happened", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
	}
	commandtest.Run(t, append(batch, "--profile", "none")...).Want(t, terminal.ExitOK)
}

// TestForgottenProfile: a batch that forgets the --profile or --already-done of the journal's operations at the server is refused, since an API that takes no keys would
// carry out again what is sent again; with that flag, or with --profile, it goes on.
func TestForgottenProfile(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"--profile none": {"--profile", "none"}, "--profile draft-07 and --already-done": {"--already-done", "409"}} {
		s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })
		file := commandtest.WriteFile(t, "in.csv", "id\na\n")
		batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}")
		commandtest.Run(t, append(batch, flags...)...).Want(t, terminal.ExitOK)
		commandtest.WriteFile(t, file, "id\na\nb\n")
		for _, also := range [][]string{nil, {"--dry-run"}} {
			got := commandtest.Run(t, append(batch, also...)...).Want(t, terminal.ExitUsage)
			if !strings.Contains(got.Err, "an earlier run for this --url and --key had "+name+", by which the API treats keys otherwise") {
				t.Errorf("%s %v: %q", name, also, got.Err)
			}
		}
		if n := s.Sends.Load(); n != 1 {
			t.Errorf("%s: %d sends, want 1", name, n)
		}
		commandtest.Run(t, append(batch, flags...)...).Want(t, terminal.ExitOK)
		commandtest.WriteFile(t, file, "id\na\nb\nc\n")
		commandtest.Run(t, append(batch, "--profile", "draft-07")...).Want(t, terminal.ExitOK)
		if commandtest.Run(t, batch...).Want(t, terminal.ExitOK); s.Sends.Load() != 3 {
			t.Errorf("%s: %d sends, want 3", name, s.Sends.Load())
		}
	}
}

// TestDryRunOfForgottenDone: pending rows that were begun with --done are not sent by a run without it, and --dry-run says so.
func TestDryRunOfForgottenDone(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
	batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1")
	commandtest.Run(t, append(batch, "--done", "/status=ok")...).Want(t, terminal.ExitUnknown)
	for sent, flags := range map[string][]string{"0": nil, "2": {"--done", "/status=ok"}} {
		got := commandtest.Run(t, append(append(batch, flags...), "--dry-run")...).Want(t, terminal.ExitOK)
		if !strings.Contains(got.Err, "2 pending; "+sent+" would be sent") || strings.Contains(got.Err, `the key "idemp:o:a" is not sent: it was begun with --done; say that`) != (sent == "0") {
			t.Errorf("%v: %q", flags, got.Err)
		}
	}
}

// TestDraftOfOtherMethods: a PUT or DELETE counts as protected by its key under the default profile, also with --done or --already-done: it is sent again after a lost
// answer, without a warning.
func TestDraftOfOtherMethods(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--done", "/status=ok"}, {"--already-done", "409"}} {
		var sends atomic.Int32
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if sends.Add(1) == 1 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"status":"ok"}`))
		})
		batch := commandtest.Fast("batch", commandtest.WriteFile(t, "in.csv", "id\na\n"), "--url", s.URL, "--method", "PUT", "--key", "o:{id}")
		got := commandtest.Run(t, append(batch, flags...)...).Want(t, terminal.ExitOK)
		if s.Sends.Load() != 2 || strings.Contains(got.Err, "does not list") {
			t.Errorf("%v: %d sends; %s", flags, s.Sends.Load(), got.Err)
		}
	}
}

// TestForgottenProfileBesideOthers: a forgotten --profile is noticed beside another file of the journal at the same server, and beside a line of the configuration file.
func TestForgottenProfileBesideOthers(t *testing.T) {
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	dir := t.TempDir()
	one, other := commandtest.WriteFile(t, filepath.Join(dir, "a.csv"), "id\na\n"), commandtest.WriteFile(t, filepath.Join(dir, "b.csv"), "id\nb\n")
	batch := func(file, key string, more ...string) commandtest.Ran {
		return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL, "--key", key, "--journal", filepath.Join(dir, "j.db")}, more...)...)...)
	}
	batch(one, "a:{id}").Want(t, terminal.ExitOK)
	batch(other, "b:{id}", "--profile", "none").Want(t, terminal.ExitOK)
	commandtest.WriteFile(t, other, "id\nb\nc\n")
	batch(other, "b:{id}").WantErr(t, "an earlier run for this --url and --key had --profile none")
	t.Setenv("ONCEHTTP_CONFIG", commandtest.WriteFile(t, filepath.Join(dir, "config"), "profile = draft-07\n"))
	batch(other, "b:{id}").WantErr(t, "an earlier run for this --url and --key had --profile none")
	batch(one, "a:{id}", "--profile", "stripe", "--header", "X: 1", "--method", "PUT").Want(t, terminal.ExitRefused) // all of it stands for other requests, and is noted as none
	batch(one, "a:{id}").Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 2 {
		t.Errorf("%d sends, want 2", n)
	}
}

// TestDryRunWithCredentials: pending rows with credentials are sent by a run with the headers that it has, and --dry-run says so.
func TestDryRunWithCredentials(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
	batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1")
	credentials := []string{"-H", "Authorization: Bearer x"}
	commandtest.Run(t, append(batch, credentials...)...).Want(t, terminal.ExitUnknown)
	for _, flags := range [][]string{nil, credentials} {
		before := s.Sends.Load()
		if got := commandtest.Run(t, append(append(batch, flags...), "--dry-run")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, "2 pending; 2 would be sent") {
			t.Errorf("%v: %q", flags, got.Err)
		}
		commandtest.Run(t, append(batch, flags...)...).Want(t, terminal.ExitUnknown)
		if n := s.Sends.Load() - before; n != 2 {
			t.Errorf("%v: %d sends, want 2", flags, n)
		}
	}
}
