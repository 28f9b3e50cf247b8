package batch_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// forgetful serves answers too large to keep, and forgets every key at once: each request takes effect.
func forgetful(t *testing.T) (url string, effects *atomic.Int32) {
	t.Helper()
	effects = new(atomic.Int32)
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		effects.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"status":"failed","text":%q}`, strings.Repeat("x", results.AnswerBytesMax))
	})
	return s.URL, effects
}

// A file that is run again sends nothing that is confirmed, also where an answer was too large to keep: the API may have forgotten the key.
func TestLargeAnswerIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	url, effects := forgetful(t)
	file := commandtest.WriteFile(t, filepath.Join(commandtest.ShortDir(t), "in.csv"), "id\na\nb\n")
	args := commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}")
	first := commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	dry := commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitOK)
	again := commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	if effects.Load() != 2 || !strings.Contains(dry.Err, "2 done; 0 would be sent") {
		t.Errorf("%d effects, want two; dry run: %s", effects.Load(), dry.Err)
	}
	for _, got := range []commandtest.Ran{first, again} {
		if n := strings.Count(got.Out, `"result":"done"`); n != 2 || strings.Count(got.Out, `"body_dropped":true`) != 2 {
			t.Errorf("%d rows done:\n%s\n%s", n, got.Out, got.Err)
		}
	}
	j := filepath.Join(filepath.Dir(file), "send.db")
	send := []string{"send", "POST", url, "-d", "{}", "--key", "k", "--journal", j}
	commandtest.Run(t, send...).Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, send...).Want(t, terminal.ExitOK); effects.Load() != 3 || !strings.Contains(got.Err, "answer") {
		t.Errorf("send: %d effects, want three in all; stderr %q", effects.Load(), got.Err)
	}
}

// A decline in an answer too large to keep is not seen: the row is unknown, in every run, and not done.
func TestLargeAnswerMayHideADecline(t *testing.T) {
	t.Parallel()
	url, effects := forgetful(t)
	file := commandtest.WriteFile(t, filepath.Join(commandtest.ShortDir(t), "in.csv"), "id\na\n")
	for range 2 {
		got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--declined", "/status=failed")...).Want(t, terminal.ExitUnknown)
		if effects.Load() != 1 || !strings.Contains(got.Out, `"result":"unknown"`) || !strings.Contains(got.Out, `"answer_unread"`) {
			t.Errorf("%d effects:\n%s\n%s", effects.Load(), got.Out, got.Err)
		}
	}
	j := filepath.Join(filepath.Dir(file), "send.db")
	for range 2 {
		commandtest.Run(t, "send", "POST", url, "-d", "{}", "--key", "k", "--journal", j, "--declined", "/status=failed").Want(t, terminal.ExitUnknown)
	}
}
