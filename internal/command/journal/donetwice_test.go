package journal_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestDoneInTwoGenerations: after declined --forget, the rows of which an earlier and a later generation count as done are named by declined, list,
// show and audit, and are a finding of audit. Before it, and for other rows, nothing is said.
func TestDoneInTwoGenerations(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"1"`) && !strings.Contains(r.Header.Get("Idempotency-Key"), ":gen=") {
			_, _ = io.WriteString(w, `{"status":"pending"}`)
			return
		}
		_, _ = io.WriteString(w, `{"status":"ok"}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "order,amount\n1,1.00\n2,1.00\n")
	j := file + ".oncehttp.db"
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{order}", "--declined", "/status=pending"}
	commandtest.Run(t, args...).Want(t, terminal.ExitRefused)
	commandtest.Run(t, append(args, "--generation", "2")...).Want(t, terminal.ExitOK)
	export := commandtest.WriteFile(t, "export.csv", "key\nidemp:o:1:gen=2\nidemp:o:2\n")
	const said = "done in two generations: idemp:o:1 and idemp:o:1:gen=2\n"
	looks := [][]string{{"journal", "list"}, {"journal", "show", "o:1"}, {"journal", "show", "o:1:gen=2"}}
	audit := []string{"audit", "--against", export, "--match", "key", "--all-rows", "--journal", j}
	for _, look := range looks {
		if got := commandtest.Run(t, append(look, "--journal", j)...).Want(t, terminal.ExitOK); strings.Contains(got.Out+got.Err, "two generations") {
			t.Errorf("%s, before: %s%s", look, got.Out, got.Err)
		}
	}
	commandtest.Run(t, audit...).Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, "journal", "declined", "--forget", "/status=pending", "--journal", j).Want(t, terminal.ExitOK); got.Err != said {
		t.Errorf("declined: %q, want %q", got.Err, said)
	}
	for _, look := range looks {
		if got := commandtest.Run(t, append(look, "--journal", j)...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, said) || strings.Count(got.Err, "two generations") != 1 {
			t.Errorf("%s: %q, want %q", look, got.Err, said)
		}
	}
	got := commandtest.Run(t, audit...).Want(t, terminal.ExitFindings)
	if !strings.Contains(got.Out, "generations   idemp:o:1:gen=2  done  idemp:o:1 is done here, too  ask the provider whether both took effect") || !strings.Contains(got.Err, "1 generations") {
		t.Errorf("audit: %s%s", got.Out, got.Err)
	}
}
