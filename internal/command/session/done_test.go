package session_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// statusServer answers 200 with the status wanted by the body. It gives no answer to "drop", nor to the first "late".
func statusServer(t *testing.T) string {
	t.Helper()
	var late atomic.Int32
	wanted := regexp.MustCompile(`"want":"([a-z]+)"`)
	return commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		found := wanted.FindSubmatch(body)
		if found == nil || string(found[1]) == "drop" || string(found[1]) == "late" && late.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":1,"status":%q}`, found[1])
	}).URL
}

// outcomeFlags are the flags of an API with the outcome in the status of its 200.
var outcomeFlags = []string{"--done", "/status=succeeded", "--done", "/status=paid", "--declined", "/status=failed", "--unknown", "/status=processing"}

// TestDone: with --done the body of a 2xx decides: of send and batch, again from the journal, and for a resume with the same flags.
func TestDone(t *testing.T) {
	t.Parallel()
	url := statusServer(t)
	for want, c := range map[string]struct {
		exit   int
		result results.Result
	}{
		"succeeded": {terminal.ExitOK, results.Done}, "paid": {terminal.ExitOK, results.Done}, "failed": {terminal.ExitRefused, results.Declined},
		"processing": {terminal.ExitUnknown, results.Held}, "other": {terminal.ExitUnknown, results.Held},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			j := commandtest.JournalIn(t)
			send := append([]string{"send", "POST", url, "-d", `{"want":"` + want + `"}`, "--key", "k", "--journal", j}, outcomeFlags...)
			for range 2 {
				commandtest.Run(t, send...).Want(t, c.exit)
				if l := commandtest.Run(t, append(send, "--json")...).Want(t, c.exit).Only(t); l.Result != c.result {
					t.Errorf("%s, want %s", l.Result, c.result)
				}
			}
			if got := commandtest.Run(t, "journal", "list", "--json", "--result", string(c.result), "--journal", j).Want(t, terminal.ExitOK); !strings.Contains(got.Out, `"k"`) {
				t.Errorf("not listed as %s: %s", c.result, got.Out)
			}
		})
	}
}

// TestDoneInBatch: an operation begun with --done is not sent without it, and a resume with other values settles nothing by a 2xx.
func TestDoneInBatch(t *testing.T) {
	t.Parallel()
	url := statusServer(t)
	file := commandtest.WriteFile(t, "in.csv", "id,want\n1,succeeded\n2,failed\n3,drop\n4,late\n")
	batch := commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--workers", "1", "--max-attempts", "1")
	got := commandtest.Run(t, append(batch, outcomeFlags...)...).Want(t, terminal.ExitUnknown)
	if !strings.Contains(got.Err, "1 done (200), 1 declined (200), 2 pending (no answer)") {
		t.Errorf("stderr %s", got.Err)
	}
	j := file + ".oncehttp.db"
	if l := commandtest.Run(t, "journal", "resume", "idemp:o:3", "--journal", j).Want(t, terminal.ExitUnknown).Only(t); l.Sends != 1 || !strings.Contains(l.Error.Message, "it was begun with --done; say that, --declined and --unknown again") {
		t.Errorf("resumed without: %+v %+v", l, l.Error)
	}
	resume := commandtest.Fast("journal", "resume", "idemp:o:3", "--journal", j, "--max-attempts", "1")
	if l := commandtest.Run(t, append(resume, outcomeFlags...)...).Want(t, terminal.ExitUnknown).Only(t); l.Sends != 2 { // of both runs
		t.Errorf("resumed with: %+v", l)
	}
	other := commandtest.Fast("journal", "resume", "idemp:o:4", "--journal", j, "--max-attempts", "1", "--done", "/status=late")
	if l := commandtest.Run(t, other...).Want(t, terminal.ExitUnknown).Only(t); l.Sends != 2 || l.Result == results.Done {
		t.Errorf("resumed with other values: %+v", l)
	}
}

// TestDoneUsage: a wrong value is one line, and nothing is sent.
func TestDoneUsage(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	for _, c := range []struct{ args, want string }{
		{"--unknown /a=b", "--unknown: say with --done which answer is a success; without it every other 2xx is one"},
		{"--done status=succeeded", `--done "status=succeeded": want a JSON pointer, = and a text, such as /status=succeeded`},
		{"--done /status", `--done "/status": want a JSON pointer, = and a text, such as /status=succeeded`},
		{"--done /a=b --unknown /a=", `--unknown "/a=": want a JSON pointer, = and a text, such as /status=succeeded`},
		{"--done /a=b --declined /~a=b", `--declined "/~a=b": want a JSON pointer, = and a text, such as /status=succeeded`},
	} {
		args := append([]string{"send", "POST", s.URL, "--key", "k", "--journal", commandtest.JournalIn(t)}, strings.Fields(c.args)...)
		commandtest.Run(t, args...).Usage(t, "oncehttp: "+c.want)
	}
}
