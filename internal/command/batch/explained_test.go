package batch_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// The line of a 2xx held for --done names the missing member of its answer, as after a typo in the flag.
func TestHeldForDoneSaysWhy(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"succeeded"}`)
	})
	for want, more := range map[string][]string{
		"; it lacks /status=SUCCEEDED, which --done asks for": {"--done", "/status=SUCCEEDED"},
		"; it is one of those that --unknown holds":           {"--done", "/status=paid", "--unknown", "/status=succeeded"},
	} {
		file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
		args := append(commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1"), more...)
		if l := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown).Only(t); l.Result != results.Held || !strings.Contains(l.Why(), want) {
			t.Errorf("%q: %+v: %q", more, l, l.Why())
		}
	}
}

// A row that means another request than the refused one of its key, as after a wrong --url, is told which generation sends it.
func TestMismatchNamesTheGeneration(t *testing.T) {
	t.Parallel()
	status := http.StatusNotFound
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	args := func(url string) []string {
		return commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--max-attempts", "1")
	}
	commandtest.Run(t, args(s.URL+"/wrnog")...).Want(t, terminal.ExitRefused)
	status = http.StatusCreated
	const want = "that one was refused for certain: --generation 2 sends this one under a new key"
	if l := commandtest.Run(t, args(s.URL+"/pay")...).Want(t, terminal.ExitRefused).Only(t); l.Result != results.Mismatch || !strings.Contains(l.Why(), want) {
		t.Errorf("%+v: %q", l, l.Why())
	}
	commandtest.Run(t, append(args(s.URL+"/pay"), "--generation", "2")...).Want(t, terminal.ExitOK)
	if l := commandtest.Run(t, args(s.URL+"/other")...).Want(t, terminal.ExitRefused).Only(t); l.Result != results.Mismatch {
		t.Errorf("%+v", l)
	}
}
