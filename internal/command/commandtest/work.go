package commandtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	osexec "os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/work"
)

// Enqueue writes n pending POSTs to target to a journal, under the keys w:0 to w:n-1, and closes the journal. Nothing is sent. Each request has the headers of
// these names, with the value "not kept". The client has an Authorize that adds nothing, as one with credentials kept by no journal.
func Enqueue(t *testing.T, journal, target string, n int, header ...string) {
	t.Helper()
	at, err := place.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	// No origins: this client may send nowhere, and only writes.
	ses, err := session.CreateSession(at, oncehttp.Config{Origins: []string{}, Authorize: func(*http.Request) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		req, err := http.NewRequest(http.MethodPost, target, strings.NewReader(fmt.Sprintf(`{"n":%d}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range header {
			req.Header.Set(name, "not kept")
		}
		if err := ses.Client.Enqueue(req, oncehttp.Key(fmt.Sprintf("w:%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := ses.Close(); err != nil {
		t.Fatal(err)
	}
}

// working is work in a process of its own.
type working struct {
	Cmd    *osexec.Cmd
	health string // the URL of /healthz
	lines  *bufio.Reader
	Errs   *lockedText
}

// lockedText is the text written by a process so far.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer, also for several goroutines. It appends p to the text.
func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Await waits until the written text matches a regular expression, and returns its last submatch. It fails the test after a time.
func (l *lockedText) Await(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if m := re.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("nothing that matches %s in:\n%s", pattern, text)
		}
	}
}

// ToTestServers lets work send to the servers of tests. For a journal on a database, work needs these arguments.
var ToTestServers = []string{"--origin", "http://127.0.0.1:*"}

// StartWork starts the command work in a process of its own, with these arguments, and waits until it works. Without --origin, --auth and --auth-command it sends
// to the servers of tests (ToTestServers).
func StartWork(t *testing.T, args ...string) *working {
	t.Helper()
	if !slices.Contains(args, "--origin") && !slices.Contains(args, "--auth") && !slices.Contains(args, "--auth-command") {
		args = append(ToTestServers, args...)
	}
	w := &working{Errs: &lockedText{}}
	w.Cmd, _ = Child(t, append([]string{"work", "--listen", "127.0.0.1:0", "--lines"}, args...)...)
	w.Cmd.Stderr = w.Errs
	out, err := w.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.lines = bufio.NewReader(out)
	if err := w.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Cmd.Process.Kill() }) // it may have ended
	w.health = w.Errs.Await(t, `working on .*(http://.*/healthz)`)
	return w
}

// Next returns the next result line that the command work has printed; false at the end of its output.
func (w *working) Next(t *testing.T) (results.Line, bool) {
	t.Helper()
	text, err := w.lines.ReadString('\n')
	if err != nil {
		return results.Line{}, false
	}
	return Ran{Out: text}.Only(t), true
}

// Ask asks the running command work for its health, at /healthz, and returns the status and the counts of the answer.
func (w *working) Ask(t *testing.T) (status int, now work.Counts) {
	t.Helper()
	resp, err := http.Get(w.health)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&now); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, now
}

// Scrape returns the metrics of the running command work, which it asks for at /metrics.
func (w *working) Scrape(t *testing.T) string {
	t.Helper()
	resp, err := http.Get(strings.TrimSuffix(w.health, "healthz") + "metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %d, %v", resp.StatusCode, err)
	}
	return string(text)
}

// Stop sends the signal, reads the rest of the output, and returns the exit status.
func (w *working) Stop(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := w.Cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, w.lines)
	return Status(t, w.Cmd)
}

// EndLeases ends the leases of a killed process (its claims to operations, which else last for a time), so that another process goes on with them at once. It
// returns their number; for a file it returns zero, since a file has none.
func EndLeases(t *testing.T, journal string) (n int) {
	t.Helper()
	if !strings.Contains(journal, "://") {
		return 0
	}
	db, table := Records(t, journal)
	if err := db.QueryRow("SELECT count(*) FROM " + table + " WHERE state = 0 AND lease_until > 1").Scan(&n); err != nil {
		t.Fatal(err)
	}
	MustExec(t, db, "UPDATE "+table+" SET lease_until = 1 WHERE state = 0") // state 0 is pending; 1 is a time long past
	return n
}
