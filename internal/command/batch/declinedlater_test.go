package batch_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestDeclinedLater: a --declined that makes declines of rows told as done says so, and no generation sends these without --yes, whichever run gave it. Rows that
// were declined from the start are sent.
func TestDeclinedLater(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"status":"ok"}`)
	})
	batch := func(file string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--new-journal"}, more...)
	}
	wants := func(got commandtest.Ran, sends int64, want ...string) {
		t.Helper()
		for _, text := range want {
			if !strings.Contains(got.Err, text) {
				t.Errorf("it says %q, want %q", got.Err, text)
			}
		}
		if n := s.Sends.Load(); n != sends {
			t.Errorf("%d sends, want %d", n, sends)
		}
	}
	const of = "declined"
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
	commandtest.Run(t, batch(file)...).Want(t, terminal.ExitOK)
	const was = "done (201) before this --declined: look at their answers; --generation 2 sends them once more, and only with --yes"
	wants(commandtest.Run(t, batch(file, "--declined", "/status=ok", "--dry-run")...).Want(t, terminal.ExitOK), 2, "2 of the declined were done, or accepted, before this --declined: look at their answers, and ask the API what came of those accepted; --generation 2 sends")
	for _, more := range [][]string{{"--declined", "/status=ok"}, nil} {
		wants(commandtest.Run(t, batch(file, more...)...).Want(t, terminal.ExitRefused), 2, "2 "+of+" (201): they were "+was)
	}
	wants(commandtest.Run(t, batch(file, "--generation", "2", "--dry-run")...).Want(t, terminal.ExitOK), 2, "2 "+of+"; 0 would be sent", "generation 1 was done (201) before a --declined made a decline of it")
	got := commandtest.Run(t, batch(file, "--generation", "2")...).Want(t, terminal.ExitRefused)
	wants(got, 2, "2 "+of+" (201): generation 1 of them was done (201) before a --declined made a decline of it: look at their answers; --yes sends them once more")
	for _, l := range got.Lines(t) {
		if l.Result != results.Declined || !strings.Contains(l.Why(), "--yes sends the row once more") {
			t.Errorf("line %+v", l)
		}
	}
	wants(commandtest.Run(t, batch(file, "--generation", "2", "--yes")...), 4)

	file = commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
	wants(commandtest.Run(t, batch(file, "--declined", "/status=ok")...), 6, "2 "+of+" (201): --generation 2 tries anew")
	wants(commandtest.Run(t, batch(file, "--generation", "2")...), 8)
}

// TestGenerationOfRejected: a row whose first generation was sent, rejected and forgotten is not called unsent.
func TestGenerationOfRejected(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":"slow down"}`)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	batch := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "6"}, more...)...)...)
	}
	batch()
	const want = "generation 1 was rejected after 6 sends: run the command without --generation 2"
	got := batch("--generation", "2").Want(t, terminal.ExitUnknown)
	if l := got.Only(t); l.Why() != want || l.Outcome != "refused" || l.Sends != 6 || l.Result != results.Rejected {
		t.Errorf("line %+v", l)
	}
	if dry := batch("--generation", "2", "--dry-run"); !strings.Contains(dry.Err, want) || !strings.Contains(dry.Err, "1 row: 1 rejected; 0 would be sent") {
		t.Errorf("--dry-run: %q", dry.Err)
	}
	if n := s.Sends.Load(); n != 6 {
		t.Errorf("%d sends, want 6", n)
	}
}

// TestDeclinedAfterAccepted: rows told as accepted were not done: a later --declined says that they may still succeed, and no generation sends them without --yes.
func TestDeclinedAfterAccepted(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"pending"}`)
	})
	batch := []string{"batch", commandtest.WriteFile(t, "in.csv", "id\n1\n2\n"), "--url", s.URL, "--key", "o:{id}"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	got := commandtest.Run(t, append(batch, "--declined", "/status=pending")...).Want(t, terminal.ExitRefused)
	if !strings.Contains(got.Err, "2 declined (202): they were accepted (202) before this --declined, and may still succeed: ask the API what came of them; --generation 2 sends them once more, and only with --yes") {
		t.Errorf("stderr %q", got.Err)
	}
	got = commandtest.Run(t, append(batch, "--generation", "2")...).Want(t, terminal.ExitRefused)
	if !strings.Contains(got.Out, "generation 1 was accepted (202) before a --declined made a decline of it, and may still succeed: ask the API what came of it") || s.Sends.Load() != 2 {
		t.Errorf("%d sends: %s", s.Sends.Load(), got.Out)
	}
}

// TestLaterGenerationInDoubt: a row whose second generation is in doubt is so for a run without --generation, too, and the status is 3; one whose second generation was
// refused is to be tried in a third.
func TestLaterGenerationInDoubt(t *testing.T) {
	t.Parallel()
	for then, c := range map[string]struct {
		result results.Result
		status int
		says   string
		dry    string
	}{
		"lost":    {results.Held, terminal.ExitUnknown, "1 held (generation): generation 2 of them is held: go on with --generation 2", "1 held; 0 would be sent"},
		"refused": {results.Invalid, terminal.ExitRefused, "1 invalid (404): generation 2 of them is invalid, too: --generation 3 tries anew", "1 invalid; 0 would be sent"},
	} {
		var sends atomic.Int32
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if sends.Add(1) > 1 && then == "lost" {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"no such supplier"}`)
		})
		batch := commandtest.Fast("batch", commandtest.WriteFile(t, "in.csv", "id\n1\n"), "--url", s.URL, "--key", "o:{id}", "--profile", "none", "--max-attempts", "1")
		commandtest.Run(t, batch...).Want(t, terminal.ExitRefused)
		commandtest.Run(t, append(batch, "--generation", "2")...).Want(t, c.status)
		got := commandtest.Run(t, batch...).Want(t, c.status)
		if l := got.Only(t); l.Result != c.result || !strings.Contains(got.Err, c.says) {
			t.Errorf("%s: %s; %s", then, l.Result, got.Err)
		}
		if got := commandtest.Run(t, append(batch, "--dry-run")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, c.dry) {
			t.Errorf("%s: --dry-run: %s", then, got.Err)
		}
	}
}

// TestChangedBesideALaterGeneration: a row that is changed after its second generation, begun with other content, is a mismatch: what came of that generation is not its
// own, whether it is in doubt or done, and no second generation is advised once more.
func TestChangedBesideALaterGeneration(t *testing.T) {
	t.Parallel()
	for then, status := range map[string]int{"lost": terminal.ExitUnknown, "done": terminal.ExitOK} {
		var sends atomic.Int32
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			switch {
			case sends.Add(1) == 1:
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"error":"no such supplier"}`)
			case then == "lost":
				panic(http.ErrAbortHandler)
			}
		})
		file := commandtest.WriteFile(t, "in.csv", "id,amount\n1,10\n")
		batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", "none", "--max-attempts", "1", "--sum", "amount")
		commandtest.Run(t, batch...).Want(t, terminal.ExitRefused)
		commandtest.Run(t, append(batch, "--generation", "2")...).Want(t, status)
		commandtest.WriteFile(t, file, "id,amount\n1,999\n")
		got := commandtest.Run(t, batch...).Want(t, terminal.ExitRefused)
		if l := got.Only(t); l.Result != results.Mismatch || strings.Contains(l.Why(), "sends this one under a new key") || strings.Contains(got.Err, " held") && !strings.Contains(got.Err, "generation 2 of them is held") {
			t.Errorf("%s: %+v: %s; %s", then, l, l.Why(), got.Err)
		}
		if got := commandtest.Run(t, append(batch, "--dry-run")...).Want(t, terminal.ExitRefused); !strings.Contains(got.Err, ": 1 changed; 0 would be sent") {
			t.Errorf("%s: --dry-run: %s", then, got.Err)
		}
	}
}
