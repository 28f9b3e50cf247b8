package mock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/mock"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/referee"
)

const refereeScript = `{"quiet": "50ms", "operation_pointer": "/reference",
 "scenarios": [{"name": "the answer is lost", "sends": ["drop-after"]}, {"name": "nothing goes wrong", "sends": []}]}`

// The batch command is a client that the referee passes.
func TestReferee(t *testing.T) {
	t.Parallel()
	out := t.TempDir() + "/report.xml"
	m := commandtest.StartCommand(t, "--referee", "--script", commandtest.WriteFile(t, "script.json", refereeScript), "--format", "junit", "--out", out)
	file := commandtest.WriteFile(t, "in.csv", "reference\na\nb\n")
	commandtest.Run(t, "batch", file, "--url", m.URL+"/payments", "--key", "o:{reference}", "--min-delay", "10ms").Want(t, terminal.ExitOK)
	got := m.Wait().Want(t, terminal.ExitOK) // both operations were seen, and it has been quiet
	if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), "<testsuites") {
		t.Errorf("report %s, %v", text, err)
	}
	if !strings.HasPrefix(got.Err, "3 sends, 2 effects, 2 keys") {
		t.Errorf("stderr %q", got.Err)
	}
}

// A client that makes a new key for each attempt pays twice, and fails.
func TestRefereeCatches(t *testing.T) {
	t.Parallel()
	m := commandtest.StartCommand(t, "--referee", "--script", commandtest.WriteFile(t, "script.json", refereeScript), "--expect", "9")
	for _, key := range []string{"k1", "k2"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL+"/payments", strings.NewReader(`{"reference":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", key)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	resp, err := http.Post(m.URL+"/_finish", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	verdict, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	var public referee.Report
	parsed, err := report.Parse(bytes.NewReader(verdict))
	if err != nil || json.Unmarshal(verdict, &public) != nil {
		t.Fatalf("POST /_finish: %v in %s", err, verdict)
	}
	// The converter loses nothing of what the server says itself.
	if converted := mock.RefereeReport(&public); !reflect.DeepEqual(converted, parsed) {
		t.Errorf("converted\n%+v\nwant\n%+v", converted, parsed)
	}
	got := m.Wait().Want(t, terminal.ExitRefused)
	if !strings.Contains(got.Out, "key/one-per-operation") || !strings.Contains(got.Out, "FAIL") {
		t.Errorf("stdout %s", got.Out)
	}
}

func TestRefereeUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := commandtest.WriteFile(t, dir+"/bad.json", `{"scenarios":[{"sends":["sulk"]}]}`)
	known := commandtest.WriteFile(t, dir+"/known", "key/present\nno such id\n")
	strange := commandtest.WriteFile(t, dir+"/strange", "key/present\nno/such-rule\n")
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--expect", "3"}, "add --referee"},
		{[]string{"--format", "json"}, "add --referee"},
		{[]string{"--referee", "--format", "pdf"}, `--format: format "pdf" is not one of`},
		{[]string{"--referee", "--script", dir + "/none"}, "--script " + dir + "/none: no such file or directory"},
		{[]string{"--referee", "--script", bad}, "--script " + bad + ": scenario 1, send 1: "},
		{[]string{"--referee", "--expect", "-1"}, "cannot be negative"},
		{[]string{"--referee", "--out", dir}, "--out " + dir + ": is a directory"},
		{[]string{"--referee", "--out", dir + "/no/x"}, "--out " + dir + "/no/x: no such file or directory"},
		{[]string{"--referee", "--known-failing", dir + "/none"}, "--known-failing " + dir + "/none: no such file or directory"},
		{[]string{"--referee", "--known-failing", known}, "--known-failing " + known + ": line 2: "},
		{[]string{"--referee", "--known-failing", strange}, "--known-failing " + strange + ": no/such-rule is not there to fail"},
	}
	for _, tt := range tests {
		got := commandtest.Run(t, append([]string{"mock"}, tt.args...)...).Want(t, terminal.ExitUsage)
		if strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, tt.want) || got.Out != "" {
			t.Errorf("%q: stdout %q, stderr %q; want %q", tt.args, got.Out, got.Err, tt.want)
		}
	}
}

// A batch that is killed in the moment in which an answer has been written sends
// that operation again when it is run again, and the referee does not blame it.
func TestRefereePassesAKilledBatch(t *testing.T) {
	t.Parallel()
	script := referee.Script{Expect: 60, OperationPointer: "/reference", Scenarios: []referee.Scenario{{Name: "nothing goes wrong"}}}
	judge := referee.New(script)
	server := mockserver.New(mockserver.Config{Referee: judge})
	kill, left := make(chan struct{}), 0
	var mu sync.Mutex
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r)
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			close(kill)
		}
	}))
	var rows strings.Builder
	rows.WriteString("reference\n")
	for i := range script.Expect {
		fmt.Fprintf(&rows, "order-%03d\n", i)
	}
	file := commandtest.WriteFile(t, "in.csv", rows.String())
	args := []string{"batch", file, "--url", front.URL + "/payments", "--key", "o:{reference}", "--workers", "4"}
	for _, n := range []int{7, 11, 13} {
		mu.Lock()
		kill, left = make(chan struct{}), n
		at := kill
		mu.Unlock()
		if status, _, stderr := commandtest.Command(t, at, args...); status != -1 {
			t.Fatalf("exit %d before it was killed: %s", status, stderr)
		}
	}
	if status, _, stderr := commandtest.Command(t, nil, args...); status != terminal.ExitOK {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	front.Close()
	if err := errors.Join(server.Err(), server.Close()); err != nil {
		t.Error(err)
	}
	report := judge.Report()
	for _, c := range report.Cases {
		if c.Verdict == referee.Fail || c.Verdict == referee.Warn {
			t.Errorf("%s: %s", c.ID, c.Actual)
		}
	}
	if report.Requests <= script.Expect {
		t.Errorf("%d sends of %d operations: nothing was sent again", report.Requests, script.Expect)
	}
}
