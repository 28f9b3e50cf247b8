package mock_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/mock"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// post sends one request with credentials all over it, and says whether it was
// answered.
func post(t *testing.T, url, key string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/payments?token=secret", strings.NewReader(`{"card":"secret"}`))
	if err != nil {
		t.Error(err)
		return false
	}
	req.GetBody = nil // net/http must not send again by itself
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return true
}

// --access-log adds a line for each request to a file, without what is secret.
func TestMockAccessLog(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "access.ndjson", "{\"earlier\":true}\n")
	m := commandtest.StartCommand(t, "--access-log", file, "--faults", "drop-after=1")
	if post(t, m.URL, "k1") {
		t.Error("answered, want the connection cut")
	}
	m.Stop().Want(t, terminal.ExitOK)
	m = commandtest.StartCommand(t, "--access-log", file)
	post(t, m.URL, "k1")
	post(t, m.URL, "k1")
	m.Stop().Want(t, terminal.ExitOK)
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "secret") {
		t.Fatalf("%v\n%s", err, text)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 4 || lines[0] != `{"earlier":true}` {
		t.Fatalf("lines\n%s", text)
	}
	for i, want := range []mock.AccessLine{
		{Method: "POST", Path: "/payments", Key: "k1", Fault: "drop-after"},
		{Method: "POST", Path: "/payments", Key: "k1", Status: 201, Bytes: 49},
		{Method: "POST", Path: "/payments", Key: "k1", Status: 201, Bytes: 49, Replay: true},
	} {
		var got mock.AccessLine
		if err := json.Unmarshal([]byte(lines[i+1]), &got); err != nil || got.MS <= 0 {
			t.Errorf("%v in %s", err, lines[i+1])
		}
		if at, err := time.Parse(time.RFC3339, got.Time); err != nil || time.Since(at) > time.Hour {
			t.Errorf("time %s, %v", got.Time, err)
		}
		got.Time, got.MS = "", 0
		if got != want {
			t.Errorf("line %d: got %+v, want %+v", i+2, got, want)
		}
	}
}

// "-" is stdout, behind the line that says where the mock listens.
func TestMockAccessLogOnStdout(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	outR, outW := io.Pipe()
	go func() {
		command.Run(ctx, []string{"mock", "--access-log", "-"}, strings.NewReader(""), outW, io.Discard)
		_ = outW.Close()
	}()
	dec := json.NewDecoder(outR)
	first := make([]byte, 256)
	n, err := outR.Read(first)
	url, found := strings.CutPrefix(strings.TrimSpace(string(first[:n])), "listening on ")
	if err != nil || !found {
		t.Fatalf("first line %q, %v", first[:n], err)
	}
	var sent sync.WaitGroup
	sent.Go(func() { post(t, url, "k") }) // its answer waits until the line was read
	defer sent.Wait()
	var l mock.AccessLine
	if err := dec.Decode(&l); err != nil || l.Key != "k" || l.Status != 201 {
		t.Errorf("%+v, %v", l, err)
	}
	interrupt()
	_, _ = io.Copy(io.Discard, outR)
}

func TestMockAccessLogUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--access-log", dir}, "--access-log " + dir + ": is a directory"},
		{[]string{"--access-log", dir + "/no/x"}, "--access-log " + dir + "/no/x: no such file or directory"},
		{[]string{"--access-log", "-", "--referee"}, "--access-log -: the referee's report goes to stdout, too; send one of them to a file (--out)"},
		{[]string{"--access-log", dir + "/x", "--referee", "--out", dir + "/./x"}, "--access-log " + dir + "/x is the same file as --out"},
	} {
		commandtest.Run(t, append([]string{"mock"}, tt.args...)...).Usage(t, "oncehttp: "+tt.want)
	}
}
