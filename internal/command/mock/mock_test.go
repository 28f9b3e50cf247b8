package mock_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver/bugs"
)

func TestMock(t *testing.T) {
	t.Parallel()
	m := commandtest.StartCommand(t, "--faults", "503=1", "--seed", "3", "--window", "1h")
	resp, err := http.Post(m.URL+"/payments", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 503 || !strings.HasPrefix(m.URL, "http://127.0.0.1:") {
		t.Errorf("status %d from %s", resp.StatusCode, m.URL)
	}
	resp, err = http.Get(m.URL + "/_ledger")
	if err != nil {
		t.Fatal(err)
	}
	ledger, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.Contains(string(ledger), `"sends":1,"effects":0`) {
		t.Errorf("ledger %s", ledger)
	}
	got := m.Stop().Want(t, terminal.ExitOK)
	if !strings.HasPrefix(got.Err, "1 send, 0 effects, 0 keys, ") {
		t.Errorf("stderr %q", got.Err)
	}
}

// The key may travel in a header that the profile does not know, and then only
// there.
func TestMockKeyHeader(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"draft-07", "stripe"} {
		m := commandtest.StartCommand(t, "--profile", name, "--key-header", "X-Request-ID")
		for _, header := range []string{"x-request-id", "x-request-id", "Idempotency-Key", "Idempotency-Key"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL+"/payments", strings.NewReader("a=1"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", input.TypeForm)
			req.Header.Set(header, "k")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		got := m.Stop().Want(t, terminal.ExitOK)
		if !strings.HasPrefix(got.Err, "4 sends, 3 effects, 1 key, ") {
			t.Errorf("%s: stderr %q, want one effect for two sends with the key, and one for each of the others", name, got.Err)
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
		got := commandtest.Run(t, append([]string{"mock"}, tt.args...)...).Want(t, terminal.ExitUsage)
		if strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, tt.want) || got.Out != "" || strings.Contains(got.Err, "mockserver: ") {
			t.Errorf("%q: stdout %q, stderr %q", tt.args, got.Out, got.Err)
		}
	}
}

func TestMockBugs(t *testing.T) {
	t.Parallel()
	got := commandtest.Run(t, "mock", "--bug", "list").Want(t, terminal.ExitOK)
	if n := strings.Count(got.Out, "\n"); n != len(bugs.All()) || n == 0 {
		t.Errorf("%d lines:\n%s", n, got.Out)
	}
	name := bugs.All()[0].Name
	commandtest.StartCommand(t, "--bug", name).Stop().Want(t, terminal.ExitOK)
}
