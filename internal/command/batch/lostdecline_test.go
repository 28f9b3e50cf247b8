package batch_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestDeclineAfterALostAnswer: a --declined that matches the 2xx to a second send proves nothing about the first, which an API may have taken before it looked at its
// balance. No generation is sent beside it without --yes. One that matches the answer to the only send, or a marked replay, is tried anew.
func TestDeclineAfterALostAnswer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	effects, sends := map[string]int{}, map[string]int{}
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		id, key := string(body), r.Header.Get("Idempotency-Key")
		sends[key]++
		lost := !strings.Contains(id, "sure") && sends[key] == 1
		if lost && strings.Contains(id, "paid") || strings.HasSuffix(key, ":gen=2") {
			effects[id]++
		}
		if lost {
			panic(http.ErrAbortHandler)
		}
		if strings.Contains(id, "replay") {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"resultCode":"Refused"}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "id\npaid-1\npaid-2\nsure\nreplay\n")
	run := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, append(commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--declined", "/resultCode=Refused"), more...)...).Want(t, terminal.ExitRefused)
	}
	want := func(got commandtest.Ran, effect int, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(got.Err, text) {
				t.Errorf("it says %q, want %q", got.Err, text)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for id, n := range effects {
			if strings.Contains(id, "paid") && n != effect {
				t.Errorf("%s took effect %d times, want %d", id, n, effect)
			}
		}
		if len(effects) < 2 {
			t.Errorf("effects %v, want those of the paid rows", effects)
		}
	}
	const look = "an earlier send may have taken effect: ask the API about them; --generation 2 sends them once more, and only with --yes"
	want(run(), 1, "2 declined (200): each was sent more than once, and "+look, "2 declined (200): --generation 2 tries anew")
	want(run(), 1, look) // from the journal
	want(run("--generation", "2"), 1, "after more than one send, and an earlier one may have taken effect: ask the API about them; --yes sends them once more")
	if got := run("--generation", "2", "--yes"); !strings.Contains(got.Out, `gen=2`) { // each of them is lost, sent again, and takes effect
		t.Errorf("--yes sent nothing: %s", got.Out)
	}
}

// TestDryRunOfDeclineAfterALostAnswer: a dry run counts such rows, and says that no generation sends them without --yes.
func TestDryRunOfDeclineAfterALostAnswer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	known := map[string]bool{}
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		if key := r.Header.Get("Idempotency-Key"); !known[key] {
			known[key] = true
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"resultCode":"Refused"}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n2\n")
	args := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--declined", "/resultCode=Refused")
	commandtest.Run(t, args...).Want(t, terminal.ExitRefused)
	got := commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, "2 of the declined were sent more than once") {
		t.Errorf("it says %q", got.Err)
	}
	got = commandtest.Run(t, append(args, "--dry-run", "--generation", "2")...).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, "0 would be sent") || !strings.Contains(got.Err, "after more than one send") {
		t.Errorf("it says %q", got.Err)
	}
}
