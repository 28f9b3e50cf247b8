package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver/bugs"
)

// mocked is a mock command that runs until stop.
type mocked struct {
	url  string
	wait func() ran // until it ends by itself
	stop func() ran
}

// startCommand runs "oncehttp mock" and waits for its first line.
func startCommand(t *testing.T, args ...string) mocked {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	outR, outW := io.Pipe()
	var errs strings.Builder
	status := make(chan int, 1)
	go func() {
		status <- exec(ctx, append([]string{"mock"}, args...), strings.NewReader(""), outW, &errs)
		_ = outW.Close()
	}()
	out := bufio.NewReader(outR)
	first, err := out.ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(first), "listening on ")
	if err != nil || !found {
		t.Fatalf("first line %q, %v", first, err)
	}
	t.Cleanup(interrupt)
	m := mocked{url: url, wait: func() ran {
		rest, _ := io.ReadAll(out)
		return ran{<-status, string(rest), errs.String()}
	}}
	m.stop = func() ran {
		interrupt()
		return m.wait()
	}
	return m
}

func TestMock(t *testing.T) {
	t.Parallel()
	m := startCommand(t, "--faults", "503=1", "--seed", "3", "--window", "1h")
	resp, err := http.Post(m.url+"/payments", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 503 || !strings.HasPrefix(m.url, "http://127.0.0.1:") {
		t.Errorf("status %d from %s", resp.StatusCode, m.url)
	}
	resp, err = http.Get(m.url + "/_ledger")
	if err != nil {
		t.Fatal(err)
	}
	ledger, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.Contains(string(ledger), `"sends":1,"effects":0`) {
		t.Errorf("ledger %s", ledger)
	}
	got := m.stop().want(t, exitOK)
	if !strings.HasPrefix(got.err, "1 send, 0 effects, 0 keys, ") {
		t.Errorf("stderr %q", got.err)
	}
}

// The key may travel in a header that the profile does not know, and then only
// there.
func TestMockKeyHeader(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"draft-07", "stripe"} {
		m := startCommand(t, "--profile", name, "--key-header", "X-Request-ID")
		for _, header := range []string{"x-request-id", "x-request-id", "Idempotency-Key", "Idempotency-Key"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+"/payments", strings.NewReader("a=1"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", typeForm)
			req.Header.Set(header, "k")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		got := m.stop().want(t, exitOK)
		if !strings.HasPrefix(got.err, "4 sends, 3 effects, 1 key, ") {
			t.Errorf("%s: stderr %q, want one effect for two sends with the key, and one for each of the others", name, got.err)
		}
	}
}

func TestMockUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--faults", "sulk=1"}, `oncehttp: --faults: fault "sulk": unknown name; known are `},
		{[]string{"--faults", "503"}, `oncehttp: --faults: fault "503" is not NAME=PROBABILITY`},
		{[]string{"--window", "-1s"}, "--window is negative"},
		{[]string{"--profile", "acme"}, `--profile "acme" is not known`},
		{[]string{"--addr", "nowhere"}, "--addr nowhere: want HOST:PORT"},
		{[]string{"--addr", "256.0.0.1:http-"}, "oncehttp: --addr: listen tcp: "},
		{[]string{"--bug", "moody"}, "oncehttp: --bug moody: no such bug; --bug list names them"},
		{[]string{"--bug", "moody", "--faults", "503", "--profile", "acme"}, "oncehttp: --bug moody: no such bug; --bug list names them"},
		{[]string{"--operation-pointer", "reference"}, "oncehttp: --operation-pointer reference: want a JSON pointer, which starts with a slash, such as /reference"},
		{[]string{"--seed", "-1"}, `oncehttp: --seed "-1": want a whole number that is not negative; see oncehttp mock --help`},
		{[]string{"--window", "1 day"}, `oncehttp: --window "1 day": want a duration such as 30s or 5m; see oncehttp mock --help`},
		{[]string{"--require-key=maybe"}, `oncehttp: --require-key "maybe": want true or false; see oncehttp mock --help`},
		{[]string{"--key-header", "X Request"}, "--key-header X Request: not the name of a header"},
		{[]string{"now"}, `"now" is too much`},
	}
	for _, tt := range tests {
		got := run(t, append([]string{"mock"}, tt.args...)...).want(t, exitUsage)
		if strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, tt.want) || got.out != "" || strings.Contains(got.err, "mockserver: ") {
			t.Errorf("%q: stdout %q, stderr %q", tt.args, got.out, got.err)
		}
	}
}

func TestMockBugs(t *testing.T) {
	t.Parallel()
	got := run(t, "mock", "--bug", "list").want(t, exitOK)
	if n := strings.Count(got.out, "\n"); n != len(bugs.All()) || n == 0 {
		t.Errorf("%d lines:\n%s", n, got.out)
	}
	name := bugs.All()[0].Name
	startCommand(t, "--bug", name).stop().want(t, exitOK)
}
