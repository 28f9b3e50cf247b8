package send_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// The second send of an operation whose answer was too large to keep says what the first one said: the attempts of the operation, and the doubt.
func TestLargeAnswerAgain(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"pad":"`+strings.Repeat("a", 2<<20)+`"}`)
	})
	j := t.TempDir() + "/j.db"
	for _, source := range []string{"wire", "journal"} {
		got := commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--json", "--journal", j, "--key", "k").Want(t, terminal.ExitOK)
		l := got.Only(t)
		if l.Source != source || l.Attempts != 1 || l.Sends != 1 || !strings.Contains(l.Doubt, "no words were looked for in it") {
			t.Errorf("%s: %+v", source, l)
		}
		if !strings.Contains(got.Err, "no words were looked for in it; look whether it took effect") {
			t.Errorf("%s: stderr %q", source, got.Err)
		}
	}
}

// A --declined that was not looked for in a large answer is said on stderr, by the first send and by the next ones, with the way out.
func TestLargeAnswerDeclined(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"pad":"`+strings.Repeat("a", 2<<20)+`"}`)
	})
	j := t.TempDir() + "/j.db"
	for try := range 2 {
		got := commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--journal", j, "--key", "k", "--declined", "/status=refused").Want(t, terminal.ExitUnknown)
		for _, want := range []string{"so that --declined was not looked for in it", "next: nothing more is sent: ask the API what came of it; oncehttp journal declined --forget VALUE --journal " + j} {
			if !strings.Contains(got.Err, want) {
				t.Errorf("send %d: stderr %q, want %q in it", try+1, got.Err, want)
			}
		}
	}
	if n := s.Sends.Load(); n != 1 {
		t.Errorf("%d sends", n)
	}
}
