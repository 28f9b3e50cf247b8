package send_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

func TestSend(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Type", r.Header.Get("Content-Type"))
		w.Header()["Date"] = nil
		w.Header()["Content-Type"] = nil
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write(append([]byte(r.Method+" "), b...))
	})
	file := commandtest.WriteFile(t, "data", "a=b\r\n\x00")
	tests := []struct {
		name string
		args []string
		in   string
		out  string
	}{
		{"JSON", []string{"POST", "-d", `{"a":1}`}, "", `POST {"a":1}`},
		{"include", []string{"POST", "-d", `{"a":1}`, "-i"}, "", "HTTP/1.1 201 Created\r\nContent-Length: 12\r\nX-Type: application/json\r\n\r\nPOST {\"a\":1}"},
		{"form", []string{"POST", "-d", "a=b", "-i"}, "", "HTTP/1.1 201 Created\r\nContent-Length: 8\r\nX-Type: application/x-www-form-urlencoded\r\n\r\nPOST a=b"},
		{"file byte for byte", []string{"POST", "-d", "@" + file}, "", "POST a=b\r\n\x00"},
		{"stdin", []string{"POST", "-d", "@-", "-H", "Content-Type: text/plain", "-i"}, "hello\n", "HTTP/1.1 201 Created\r\nContent-Length: 11\r\nX-Type: text/plain\r\n\r\nPOST hello\n"},
		{"no body", []string{"DELETE"}, "", "DELETE "},
		{"safe", []string{"GET"}, "", "GET "},
		{"safe as JSON", []string{"GET", "--json"}, "", `{"result":"done","outcome":"confirmed","status":200,"source":"wire","attempts":0,"sends":0,"body":"GET "}` + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := slices.Concat([]string{"send", tt.args[0], s.URL + "/x", "--journal", t.TempDir() + "/j.db"}, tt.args[1:])
			got := commandtest.RunWith(t, tt.in, args...).Want(t, terminal.ExitOK)
			if got.Out != tt.out {
				t.Errorf("stdout %q, want %q", got.Out, tt.out)
			}
			if safe := tt.args[0] == http.MethodGet; strings.HasPrefix(got.Err, "key: ") == safe {
				t.Errorf("stderr %q", got.Err)
			}
		})
	}
}

// A key that was made for the call is printed before anything is sent, and the
// same call with it goes on where the first stopped.
func TestSendKeyBeforeTheWire(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
	journal := t.TempDir() + "/j.db"
	args := commandtest.Fast("send", "POST", m.URL()+"/payments", "-d", `{"a":1}`, "--journal", journal, "--max-attempts", "1", "--json")
	first := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	key, found := strings.CutPrefix(strings.Split(first.Err, "\n")[0], "key: ")
	if !found || m.Ledger().Effects(key) != 1 {
		t.Fatalf("stderr %q; the first line does not name the key that was sent", first.Err)
	}
	// Without the key it is not sent again: it may be paid already.
	again := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	if !strings.Contains(again.Err, key) || m.Ledger().Snapshot().Sends != 1 {
		t.Errorf("stderr %q, %d sends", again.Err, m.Ledger().Snapshot().Sends)
	}
	l := commandtest.Run(t, append(args, "--key", key)...).Want(t, terminal.ExitOK).Only(t)
	if l.Source != "replay" || l.Key != key || l.Row != 0 {
		t.Errorf("%+v", l)
	}
	if l := commandtest.Run(t, append(args, "--key", key)...).Want(t, terminal.ExitOK).Only(t); l.Source != "journal" {
		t.Errorf("%+v", l)
	}
}

func TestSendRefused(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusPaymentRequired
		if r.URL.Path == "/door" {
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "no")
	})
	dir := t.TempDir()
	for _, path := range []string{"/final", "/door"} {
		got := commandtest.Run(t, "send", "POST", s.URL+path, "-d", "{}", "--journal", dir+"/j.db").Want(t, terminal.ExitRefused)
		if want := map[string]string{"/final": "no", "/door": ""}[path]; got.Out != want { // a refusal at the door is no answer
			t.Errorf("%s: stdout %q, want %q", path, got.Out, want)
		}
	}
}

// What was decided before, and whose answer is not to be had, stands for what was decided: no run of the same command is asked
// for that could not help.
func TestSendOfWhatWasDecided(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/lost":
			panic(http.ErrAbortHandler)
		case "/no":
			http.Error(w, "declined", http.StatusPaymentRequired)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
	j := t.TempDir() + "/j.db"
	send := func(status int, path, key, data string) string {
		t.Helper()
		return commandtest.Run(t, commandtest.Fast("send", "POST", s.URL+path, "-d", data, "--journal", j, "--key", key, "--max-attempts", "1")...).Want(t, status).Err
	}
	send(terminal.ExitOK, "/paid", "paid", "{}")
	send(terminal.ExitRefused, "/no", "no", "{}")
	send(terminal.ExitUnknown, "/lost", "found", "{}")
	send(terminal.ExitUnknown, "/lost", "absent", "{}")
	commandtest.Run(t, "journal", "settle", "found", "--happened", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "absent"), "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	for _, r := range []struct {
		status          int
		path, key, data string
		says            string
	}{
		{terminal.ExitRefused, "/paid", "paid", `{"other":1}`, "decided before (happened), key belongs to another request"},
		{terminal.ExitRefused, "/no", "no", `{"other":1}`, `"no:gen=2"`},
		{terminal.ExitOK, "/lost", "found", "{}", "decided before (happened), key was settled"},
		{terminal.ExitRefused, "/lost", "found", `{"other":1}`, "decided before (happened)"},
		{terminal.ExitRefused, "/lost", "absent", "{}", "no effect, key was settled"},
		{terminal.ExitRefused, "/lost", "absent", `{"other":1}`, `"absent:gen=2"`},
	} {
		if said := send(r.status, r.path, r.key, r.data); !strings.Contains(said, r.says) {
			t.Errorf("%s %s: %q, want it to say %q", r.key, r.data, said, r.says)
		}
	}
}

func TestSendUsage(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	dir := t.TempDir()
	tests := []struct {
		args []string
		want string
	}{
		{[]string{}, "want METHOD and URL; see oncehttp send --help"},
		{[]string{"POST"}, "the URL must start with http:// or https://"},
		{[]string{"POST", s.URL, "x"}, `"x" is too much: want METHOD and URL; see oncehttp send --help`},
		{[]string{"POST", s.URL, "-X", "PUT"}, "two methods, POST and -X PUT; say one"},
		{[]string{"POST", s.URL, "-u", "me:secret"}, "--user: a password there would stand in the process list; put user:password into a file, and say --user @FILE"},
		{[]string{"POST", s.URL, "--cacert", dir + "/none"}, "--cacert: " + dir + "/none: no such file or directory"},
		{[]string{"POST", s.URL, "-o", dir}, "--out " + dir + ": is a directory"},
		{[]string{"post", s.URL}, `method "post": methods are case-sensitive; POST is meant?`},
		{[]string{"P T", s.URL}, `"P T" is not an HTTP method`},
		{[]string{"POTS", s.URL}, `"POTS" is not an HTTP method; POST is meant?`},
		{[]string{"CONNECT", s.URL}, "CONNECT cannot be journaled"},
		{[]string{"POST", "ftp://x/"}, "the URL must start with http:// or https://"},
		{[]string{"POST", s.URL, "--key", ""}, "--key is empty"},
		{[]string{"POST", s.URL, "-d", "@" + dir + "/none"}, "--data: " + dir + "/none: no such file or directory"},
		{[]string{"POST", s.URL, "-d", "@" + dir}, "--data: " + dir + ": is a directory"},
		{[]string{"POST", s.URL, "--profile", "x"}, `--profile "x" is not known; see oncehttp profile list, or give a file: ./NAME.json`},
		{[]string{"POST", s.URL, "--max-attempts", "0"}, "--max-attempts must be at least 1"},
		{[]string{"POST", s.URL, "--journal", dir}, "journal " + dir + ": is a directory"},
	}
	for _, tt := range tests {
		args := append([]string{"send"}, tt.args...)
		if !slices.Contains(args, "--journal") {
			args = append(args, "--journal", dir+"/j.db")
		}
		commandtest.Run(t, args...).Usage(t, "oncehttp: "+tt.want)
	}
	// What only the client can tell is told before there is a journal.
	for _, args := range [][]string{
		{"POST", s.URL, "--key", strings.Repeat("k", 300)},
		{"POST", s.URL, "--key", "a b"},
		{"GET", s.URL, "--key", "k"},
		{"POST", s.URL, "-H", "Idempotency-Key: a", "--key", "b"},
	} {
		got := commandtest.Run(t, append(append([]string{"send"}, args...), "--journal", dir+"/j.db")...).Want(t, terminal.ExitUsage)
		if strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%q: stderr %q", args, got.Err)
		}
	}
	if files := commandtest.Tree(t, dir); len(files) > 0 {
		t.Errorf("wrong calls left %q behind", files)
	}
}

// The default journal is in the user's configuration folder, which is the
// test's own here.
func TestSendDefaultJournal(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "conf"))
	t.Setenv("AppData", filepath.Join(home, "conf"))
	m := commandtest.StartMock(t, mockserver.Config{})
	got := commandtest.Run(t, "send", "POST", m.URL()+"/payments", "-d", "{}").Want(t, terminal.ExitOK)
	_, path, found := strings.Cut(got.Err, "journal: ")
	path, _, _ = strings.Cut(path, "\n")
	if !found || !strings.HasPrefix(path, home) {
		t.Fatalf("stderr %q does not name a journal below %s", got.Err, home)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// Another request's answer is never shown as this one's.
func TestSendOtherBodyUnderOneKey(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	send := func(data string, more ...string) []string {
		return append([]string{"send", "POST", m.URL() + "/payments", "-d", data, "--key", "k", "--journal", commandtest.JournalIn(t)}, more...)
	}
	first := send(`{"amount":100}`)
	if got := commandtest.Run(t, first...).Want(t, terminal.ExitOK); got.Out == "" {
		t.Error("the first one's answer is not printed")
	}
	other := append(slices.Clone(first), "-d", `{"amount":999}`)
	if got := commandtest.Run(t, other...).Want(t, terminal.ExitRefused); got.Out != "" || !strings.Contains(got.Err, "belongs to another request") {
		t.Errorf("stdout %q, stderr %q", got.Out, got.Err)
	}
	l := commandtest.Run(t, append(other, "--json")...).Want(t, terminal.ExitRefused).Only(t)
	if l.Body != nil || l.Status != 0 || l.State != "confirmed" {
		t.Errorf("%+v", l)
	}
}

// What people know from curl: the method in -X or from the data, joined data,
// credentials from a file, the answer into a file, silence.
func TestSendLikeCurl(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		_, _ = io.WriteString(w, r.Method+" "+string(b)+" "+user+" "+password)
	})
	dir := t.TempDir()
	user := commandtest.WriteFile(t, dir+"/user", "me:se:cret\n")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"method by flag":   {[]string{"-X", "PUT", "-d", "a=1"}, "PUT a=1  "},
		"method by data":   {[]string{"-d", "a=1", "-d", "b=2"}, "POST a=1&b=2  "},
		"method by nature": {nil, "GET   "},
		"user":             {[]string{"-d", "x", "-u", "@" + user}, "POST x me se:cret"},
	} {
		got := commandtest.Run(t, append([]string{"send", s.URL, "--journal", commandtest.JournalIn(t), "-s"}, c.args...)...).Want(t, terminal.ExitOK)
		if got.Out != c.want || got.Err != "" {
			t.Errorf("%s: stdout %q, stderr %q; want %q", name, got.Out, got.Err, c.want)
		}
	}
	out := dir + "/answer"
	got := commandtest.Run(t, "send", "POST", s.URL, "-d", "x", "-o", out, "--journal", commandtest.JournalIn(t)).Want(t, terminal.ExitOK)
	if b, err := os.ReadFile(out); err != nil || string(b) != "POST x  " || got.Out != "" {
		t.Errorf("file %q, %v; stdout %q", b, err, got.Out)
	}
	if out := commandtest.Run(t, "send", s.URL, "-k").Want(t, terminal.ExitUsage); !strings.Contains(out.Err, "unknown shorthand flag: 'k'") {
		t.Errorf("-k: stderr %q", out.Err)
	}
}

// --cacert trusts a server that nobody else would; without it nothing is sent.
func TestSendTrustsAFileOfCertificates(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) }))
	defer s.Close()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	ca := commandtest.WriteFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	args := []string{"send", "POST", s.URL, "-d", "{}", "--journal", commandtest.JournalIn(t), "--max-attempts", "1"}
	if got := commandtest.Run(t, args...); got.Status == terminal.ExitOK || !strings.Contains(got.Err, "certificate") {
		t.Errorf("exit %d, stderr %q", got.Status, got.Err)
	}
	commandtest.Run(t, append(args, "--cacert", ca)...).Want(t, terminal.ExitOK)
	empty := commandtest.WriteFile(t, "empty.pem", "nothing")
	commandtest.Run(t, append(args, "--cacert", empty)...).Usage(t, "oncehttp: --cacert: "+empty+": holds no PEM certificate")
}

// -v says what is sent again and why, and shows no body and no query string.
func TestVerboseSaysWhy(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.Answer}}})
	got := commandtest.Run(t, commandtest.Fast("send", "POST", m.URL()+"/payments?q=hidden", "-d", `{"b":"hidden"}`, "--key", "k", "--journal", commandtest.JournalIn(t), "-v")...).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, "k: attempt 1: answered 503: unknown\n") || !strings.Contains(got.Err, "k: again in ") || strings.Contains(got.Err, "hidden") {
		t.Errorf("stderr %q", got.Err)
	}
}

// TestSendOfA202: a server that has taken an operation on may still fail, and stderr says so.
func TestSendOfA202(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"id":7}`)
	})
	send := func(method string, args ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"send", method, s.URL, "--journal", t.TempDir() + "/j.db"}, args...)...).Want(t, terminal.ExitOK)
	}
	const said = "accepted (202): the server took it on, and it may still fail: ask it what came of it; nothing more is sent for it\n"
	for _, args := range [][]string{{"--key", "k"}, {"--key", "k", "--json"}} {
		if got := send("POST", args...); got.Err != said || !strings.Contains(got.Out, `{"id":7}`) {
			t.Errorf("%v: stdout %q, stderr %q", args, got.Out, got.Err)
		}
	}
	if got := send("POST", "--key", "k", "--silent"); got.Err != "" {
		t.Errorf("--silent: stderr %q", got.Err)
	}
	if got := send("GET"); got.Err != "" { // no operation
		t.Errorf("GET: stderr %q", got.Err)
	}
}
