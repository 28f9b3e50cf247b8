package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
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
	file := writeFile(t, "access.ndjson", "{\"earlier\":true}\n")
	m := startCommand(t, "--access-log", file, "--faults", "drop-after=1")
	if post(t, m.url, "k1") {
		t.Error("answered, want the connection cut")
	}
	m.stop().want(t, exitOK)
	m = startCommand(t, "--access-log", file)
	post(t, m.url, "k1")
	post(t, m.url, "k1")
	m.stop().want(t, exitOK)
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "secret") {
		t.Fatalf("%v\n%s", err, text)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 4 || lines[0] != `{"earlier":true}` {
		t.Fatalf("lines\n%s", text)
	}
	for i, want := range []accessLine{
		{Method: "POST", Path: "/payments", Key: "k1", Fault: "drop-after"},
		{Method: "POST", Path: "/payments", Key: "k1", Status: 201, Bytes: 49},
		{Method: "POST", Path: "/payments", Key: "k1", Status: 201, Bytes: 49, Replay: true},
	} {
		var got accessLine
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
		exec(ctx, []string{"mock", "--access-log", "-"}, strings.NewReader(""), outW, io.Discard)
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
	var l accessLine
	if err := dec.Decode(&l); err != nil || l.Key != "k" || l.Status != 201 {
		t.Errorf("%+v, %v", l, err)
	}
	interrupt()
	_, _ = io.Copy(io.Discard, outR)
}

// Each line as it is written: the golden file has every kind of fault and what a
// client could try to break a line with.
func TestGoldenAccessLog(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 23, 59, 59, 123_456_789, time.FixedZone("", 3600))
	var all bytes.Buffer
	for _, a := range []mockserver.Access{
		{Method: "POST", Path: "/payments", Key: "idemp:order:u1:o1", Status: 201, Bytes: 61, Took: 1_234_567},
		{Method: "POST", Path: "/payments", Key: "idemp:order:u1:o1", Status: 201, Bytes: 61, Took: 999, Replay: true},
		{Method: "GET", Path: "/payments/<x>&%0A", Status: 404, Bytes: 80, Took: time.Second},
		{Method: "M\"\n{", Path: "/\xff\"\\\r\n", Key: "k\"\n{\"status\":200}", Took: 1},
		{Method: "POST", Path: "/" + strings.Repeat("é", 600), Key: strings.Repeat("k", 1001)},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.Answer}, Status: 503},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.Answer, Status: 429, RetryAfter: "2"}, Status: 429},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.AnswerAfter, Status: 500}, Status: 500},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.Hang}},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.Duplicate}, Status: 201},
	} {
		a.Begun = at
		text := accessText(a)
		if bytes.Count(text, []byte("\n")) != 1 || !json.Valid(text) || len(text) > 4*accessTextMax {
			t.Errorf("%d bytes: %s", len(text), text)
		}
		all.Write(text)
	}
	golden(t, "access-log", all.String())
}

// fullDisk counts, and fails from the second call on.
type fullDisk struct{ calls, bytes int }

// Write fails from the second call on.
func (w *fullDisk) Write(b []byte) (int, error) {
	if w.calls++; w.calls > 1 {
		return 0, errors.New("no space left")
	}
	w.bytes += len(b)
	return len(b), nil
}

// A log that is full, or that cannot be written, says so once, and the mock goes on.
func TestAccessLogStops(t *testing.T) {
	t.Parallel()
	line := accessText(mockserver.Access{})
	for _, tt := range []struct {
		left  int64
		calls int
		want  string
	}{
		{2*int64(len(line)) - 1, 1, "the access log is full (1073741824 bytes); nothing more is written to it\n"},
		{3 * int64(len(line)), 2, "the access log: no space left; nothing more is written to it\n"},
	} {
		var w fullDisk
		var errs strings.Builder
		l := &accessLog{w: &w, left: tt.left, stderr: &errs}
		for range 5 {
			l.add(mockserver.Access{})
		}
		if w.calls != tt.calls || w.bytes != len(line) || errs.String() != tt.want {
			t.Errorf("%d calls, %d bytes, stderr %q; want %d, %d, %q", w.calls, w.bytes, errs.String(), tt.calls, len(line), tt.want)
		}
	}
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
		run(t, append([]string{"mock"}, tt.args...)...).usage(t, "oncehttp: "+tt.want)
	}
}
