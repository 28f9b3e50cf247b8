package journal_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// What was rejected is no operation, and does not vanish: show, list, stuck and stats know what was tried. It stands in nobody's way.
func TestRejectedIsKept(t *testing.T) {
	t.Parallel()
	var well atomic.Bool
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !well.Load() {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.WriteString(w, `{"card":"4242-4242"}`)
	})
	dir := t.TempDir()
	journal := filepath.Join(dir, "j.db")
	batch := func(rows string, status int) {
		t.Helper()
		file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id,amount\n"+rows)
		commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL+"/pay?q=secret", "--key", "o:{id}", "--journal", journal)...).Want(t, status)
	}
	run := func(args ...string) string {
		t.Helper()
		return commandtest.Run(t, append(append([]string{"journal"}, args...), "--journal", journal)...).Want(t, terminal.ExitOK).Out
	}
	batch("a,1\nb,1\n", terminal.ExitUnknown)

	show := run("show", "o:a")
	for _, want := range []string{"idemp:o:a\n", ": nothing happened, and the journal forgot it; its key is free\n", "POST " + s.URL + "/pay, profile draft-07\n", "6 attempts, 6 sends\n"} {
		if !strings.Contains(show, want) {
			t.Errorf("show: no %q in\n%s", want, show)
		}
	}
	if n := strings.Count(show, "429"); n != 6 {
		t.Errorf("show: %d attempts are drawn with their 429, want 6\n%s", n, show)
	}
	if got := run("show", "a"); got != show {
		t.Errorf("by the end of its key: %s", got)
	}
	var line struct {
		Result, Key, State string
		Sends, Status      int
	}
	if err := json.Unmarshal([]byte(run("show", "o:a", "--json")), &line); err != nil || line.Result != "rejected" || line.State != "" || line.Sends != 6 || line.Status != 429 {
		t.Errorf("show --json: %+v, %v", line, err)
	}
	list := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK)
	if strings.Contains(list.Out, "o:a") || !strings.Contains(list.Err, "beside these: 2 operations without effect, forgotten, and not done since; the latest, idemp:o:") {
		t.Errorf("list: %q, stderr %q", list.Out, list.Err)
	}
	for _, command := range []string{"list", "stuck"} {
		if got := run(command, "--rejected"); strings.Count(got, "\n") != 3 || strings.Count(got, "429") != 2 {
			t.Errorf("%s --rejected:\n%s", command, got)
		}
		if got := run(command, "o:a", "--rejected"); strings.Count(got, "\n") != 2 || !strings.Contains(got, "idemp:o:a ") {
			t.Errorf("%s o:a --rejected:\n%s", command, got)
		}
		if got := run(command, "--rejected", "--account", "other"); strings.Count(got, "\n") != 1 {
			t.Errorf("%s --rejected of another account:\n%s", command, got)
		}
	}
	if got := run("stats"); !strings.HasPrefix(got, "0 operations") || !strings.HasSuffix(got, "forgotten     2 operations rejected without effect, in no number above, and not done since: oncehttp journal stuck --rejected --journal "+journal+"\n") {
		t.Errorf("stats:\n%s", got)
	}
	if got := run("stats", "--json"); !strings.Contains(got, `"operations":0,`) || !strings.Contains(got, `"rejected_forgotten":2`) || strings.Contains(got, `"results":{"`) {
		t.Errorf("stats --json:\n%s", got)
	}
	commandtest.Run(t, "journal", "settle", "o:a", "--happened", "--journal", journal).Want(t, terminal.ExitUsage)

	batch("a,1\nb,1\n", terminal.ExitUnknown) // once more in vain
	for command, rows := range map[string]int{"list": 5, "stuck": 3} {
		if got := run(command, "--rejected"); strings.Count(got, "\n") != rows {
			t.Errorf("%s --rejected, after a second run in vain:\n%s", command, got)
		}
	}
	beside := func(want string) {
		t.Helper()
		for _, command := range []string{"list", "stuck"} {
			got := commandtest.Run(t, "journal", command, "--journal", journal).Want(t, terminal.ExitOK)
			if !strings.Contains(got.Err, "beside these: "+want+" without effect, forgotten, and not done since; ") {
				t.Errorf("%s: want %s; stderr %q", command, want, got.Err)
			}
		}
	}
	beside("2 operations")
	well.Store(true)
	batch("a,2\n", terminal.ExitOK) // other content under the key
	beside("1 operation")
	if got := run("stuck", "--rejected"); strings.Count(got, "\n") != 2 || !strings.Contains(got, "idemp:o:b ") {
		t.Errorf("stuck --rejected, after one was done:\n%s", got)
	}
	if got := run("show", "o:a"); !strings.HasPrefix(got, "idemp:o:a\n  state     confirmed") || !strings.Contains(got, ": nothing happened, and the journal forgot it; its key was free then, and stands in the journal again now\n") || strings.Contains(got, "is free") {
		t.Errorf("show of what was done since:\n%s", got)
	}
	text, err := os.ReadFile(journal + ".forgotten")
	if err != nil || strings.Contains(string(text), "secret") || strings.Contains(string(text), "4242-4242") || strings.Contains(string(text), "amount") {
		t.Errorf("%v; the log has a query string, a body or an answer:\n%s", err, text)
	}
}

// TestAlertOfRejected: an on-call check tells of rejected operations until they are done, and a listing names them beside those of the journal.
func TestAlertOfRejected(t *testing.T) {
	t.Parallel()
	var well atomic.Bool
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !well.Load() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{}`)
		}
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\na\nb\n")
	journal := file + ".oncehttp.db"
	batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}")
	run := func(status int, args ...string) commandtest.Ran {
		t.Helper()
		return commandtest.Run(t, append(append([]string{"journal"}, args...), "--journal", journal)...).Want(t, status)
	}
	for range 2 { // twice in vain: each is counted once
		commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
	}
	lists := "; oncehttp journal stuck --rejected --journal " + journal + " lists them\n"
	for _, c := range []struct {
		args  []string
		found string
	}{
		{[]string{"stuck", "--fail-over", "0s"}, "2 were rejected and not done since, begun more than 0s ago" + lists},
		{[]string{"stuck", "--rejected", "--fail-over", "0s"}, "2 were rejected and not done since, begun more than 0s ago" + lists},
		{[]string{"stats", "--fail-over", "0s"}, "2 were rejected and not done since, begun more than 0s ago" + lists},
		{[]string{"stats", "--fail-rejected", "1"}, "2 were rejected and not done since, and --fail-rejected is 1" + lists},
		{[]string{"stats", "--fail-rejected", "2"}, ""},
		{[]string{"stats", "--fail-over", "1h"}, ""},
		{[]string{"stuck", "--fail-over", "1h"}, ""},
		{[]string{"stats", "--fail-rejected", "0", "--state", "held"}, ""},
		{[]string{"stats", "--fail-rejected", "0", "--origin", "https://elsewhere:443"}, ""},
		{[]string{"stats", "--fail-held", "0"}, ""},
	} {
		status, want := terminal.ExitOK, ""
		if c.found != "" {
			status, want = terminal.ExitFindings, "oncehttp: journal "+journal+": "+c.found
		}
		if got := run(status, append(c.args, "--quiet")...); got.Err != want || got.Out != "" {
			t.Errorf("%q: stdout %q, stderr %q; want %q", c.args, got.Out, got.Err, want)
		}
		if got := run(status, c.args...); !strings.HasSuffix(got.Err, want) {
			t.Errorf("%q: stderr %q, want %q at its end", c.args, got.Err, want)
		}
	}
	if got := run(terminal.ExitOK, "stuck"); !strings.Contains(got.Err, "beside these: 2 operations without effect, forgotten, and not done since; ") {
		t.Errorf("stuck: stderr %q", got.Err)
	}
	prom := filepath.Join(filepath.Dir(file), "x.prom")
	run(terminal.ExitOK, "stats", "--quiet", "--prometheus", prom)
	if text, err := os.ReadFile(prom); err != nil || !strings.Contains(string(text), "oncehttp_journal_rejected{journal=\"in.csv.oncehttp.db\"} 2\n") {
		t.Errorf("%v\n%s", err, text)
	}
	well.Store(true)
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	for _, command := range []string{"stuck", "stats"} {
		if got := run(terminal.ExitOK, command, "--fail-over", "0s"); strings.Contains(got.Err+got.Out, "rejected") || strings.Contains(got.Err, "beside") {
			t.Errorf("%s once they are done: %s%s", command, got.Out, got.Err)
		}
	}
}

// send keeps what was tried as batch does, also what was never sent.
func TestRejectedOfSend(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	commandtest.Run(t, commandtest.Fast("send", "POST", "http://127.0.0.1:1/", "-d", "{}", "--key", "k1", "--journal", journal)...).Want(t, terminal.ExitUnknown)
	got := commandtest.Run(t, "journal", "show", "k1", "--journal", journal).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Out, "6 attempts, 0 sends\n") || strings.Count(got.Out, "nothing listens at 127.0.0.1:1") != 6 {
		t.Errorf("%s", got.Out)
	}
}

// Of a sealed journal the log is sealed, and shown with its keys.
func TestRejectedSealed(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	dir := t.TempDir()
	journal := filepath.Join(dir, "j.db")
	keys := commandtest.WriteFile(t, filepath.Join(dir, "keys"), "k1:"+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))+"\n")
	args := commandtest.Fast("send", "POST", s.URL+"/pay-out", "-d", "{}", "--key", "k1", "--journal", journal, "--seal-key", "@"+keys)
	commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	text, err := os.ReadFile(journal + ".forgotten")
	if err != nil || strings.Contains(string(text), "pay-out") || strings.Contains(string(text), "429") {
		t.Errorf("%v; in clear:\n%s", err, text)
	}
	got := commandtest.Run(t, "journal", "list", "--rejected", "--journal", journal, "--seal-key", "@"+keys).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Out, "k1 ") || !strings.Contains(got.Out, "429") || !strings.Contains(got.Out, "/pay-out") {
		t.Errorf("%s", got.Out)
	}
	other := commandtest.WriteFile(t, filepath.Join(dir, "other"), "k2:"+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("t", 32)))+"\n")
	got = commandtest.Run(t, "journal", "list", "--rejected", "--journal", journal, "--seal-key", "@"+other)
	if strings.Contains(got.Out, "pay-out") || !strings.Contains(got.Err, "1 forgotten operation without effect, sealed with other keys; not shown") {
		t.Errorf("%s%s", got.Out, got.Err)
	}
}

// Of a journal on a server the log is of the user and machine. All journals of the servers have one of their own.
func TestRejectedOnServers(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		file := commandtest.WriteFile(t, "in.csv", "id\na\n")
		commandtest.Run(t, commandtest.Fast("batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}", "--journal", journal)...).Want(t, terminal.ExitUnknown)
		got := commandtest.Run(t, "journal", "stuck", "--rejected", "--json", "--journal", journal).Want(t, terminal.ExitOK)
		if strings.Count(got.Out, "\n") != 1 || !strings.Contains(got.Out, `"key":"idemp:o:a"`) {
			t.Errorf("stuck --rejected: %s", got.Out)
		}
	})
}

// TestFailRefused: what the server refused for good in the last hour, or since --since, is counted, and no other end.
func TestFailRefused(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(string(body), `"good"`) {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\ngood\na\nb\n")
	journal := file + ".oncehttp.db"
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}")...)
	for _, c := range []struct {
		args  []string
		found string
	}{
		{[]string{"--fail-refused", "1"}, "2 were refused by the server in the last 1h, and --fail-refused is 1\n"},
		{[]string{"--fail-refused", "0", "--since", "2d"}, "2 were refused by the server in the last 2d, and --fail-refused is 0\n"},
		{[]string{"--fail-refused", "2"}, ""},
		{[]string{"--fail-refused", "0", "--since", "2099-01-01"}, ""},
		{[]string{"--fail-refused", "0", "--origin", "https://elsewhere:443"}, ""},
		{[]string{"--fail-held", "0", "--fail-pending", "0", "--fail-rejected", "0"}, ""},
	} {
		status := terminal.ExitOK
		if c.found != "" {
			status = terminal.ExitFindings
		}
		got := commandtest.Run(t, append([]string{"journal", "stats", "--quiet", "--journal", journal}, c.args...)...).Want(t, status)
		if got.Out != "" || !strings.HasSuffix(got.Err, c.found) || (got.Err == "") != (c.found == "") {
			t.Errorf("%v: stdout %q, stderr %q; want %q", c.args, got.Out, got.Err, c.found)
		}
	}
}

// TestFailUnknown: what has ended and may be a decline, since its answer was too large for --declined, is counted, until the value of --declined is taken back.
func TestFailUnknown(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"pad":"`+strings.Repeat("a", 2<<20)+`"}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
	journal := file + ".oncehttp.db"
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--declined", "/status=failed")...).Want(t, terminal.ExitUnknown)
	stats := func(most string) commandtest.Ran {
		return commandtest.Run(t, "journal", "stats", "--quiet", "--journal", journal, "--fail-unknown", most)
	}
	if got := stats("1").Want(t, terminal.ExitFindings); !strings.Contains(got.Err, "2 were unknown after their end, and --fail-unknown is 1; oncehttp journal list --result unknown --journal "+journal+" lists them") {
		t.Errorf("stderr %q", got.Err)
	}
	stats("2").Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "declined", "--forget", "/status=failed", "--journal", journal).Want(t, terminal.ExitOK)
	stats("0").Want(t, terminal.ExitOK)
}
