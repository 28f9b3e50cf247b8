package check_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
)

// checked runs a few quick cases against a mock.
func checked(t *testing.T, m *mockserver.Server, more ...string) commandtest.Ran {
	t.Helper()
	args := []string{
		"check", m.URL() + "/payments", "--witness", m.URL() + "/_effects?ref={ref}#/count",
		"--run", "replay/effects-once", "--run", "replay/answered", "--run", "replay/status",
	}
	return commandtest.Run(t, append(args, more...)...)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := commandtest.StartMock(t, mockserver.Config{})
	bad := commandtest.StartMock(t, mockserver.Config{Bug: "keys-ignored"})
	dir := t.TempDir()

	got := checked(t, good).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Out, "pass          replay/effects-once") || got.Err != "" {
		t.Errorf("stdout %s\nstderr %s", got.Out, got.Err)
	}
	checked(t, good, "--format", "json", "--out", dir+"/good.json", "--seed", "7").Want(t, terminal.ExitOK)
	text, err := os.ReadFile(dir + "/good.json")
	if err != nil {
		t.Fatal(err)
	}
	var rep report.Report
	if err := json.Unmarshal(text, &rep); err != nil || len(rep.Cases) != 3 || rep.Seed != 7 {
		t.Errorf("report of %d cases with seed %d, %v", len(rep.Cases), rep.Seed, err)
	}

	checked(t, bad, "--format", "json", "--out", dir+"/bad.json").Want(t, report.ExitFailed)
	known := commandtest.WriteFile(t, dir+"/known", failures(t, dir+"/bad.json"))
	checked(t, bad, "--known-failing", known).Want(t, report.ExitOK)
	checked(t, good, "--known-failing", known).Want(t, report.ExitFailed) // what passes has to leave the list

	commandtest.Run(t, "check", "diff", dir+"/good.json", dir+"/bad.json").Want(t, report.ExitFailed)
	commandtest.Run(t, "check", "diff", dir+"/bad.json", dir+"/good.json").Want(t, report.ExitOK)
	for format, want := range map[string]string{"html": "<html", "junit": "<testsuites", "markdown": "replay/status", "text": "replay/status"} {
		got := commandtest.Run(t, "check", "report", dir+"/good.json", dir+"/bad.json", "--format", format).Want(t, terminal.ExitOK)
		if !strings.Contains(got.Out, want) {
			t.Errorf("%s has no %q", format, want)
		}
	}
}

// parsedReport is the report in a file.
func parsedReport(t *testing.T, name string) *report.Report {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := report.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// failures lists the cases that failed in a report, as a list of known ones.
func failures(t *testing.T, name string) string {
	t.Helper()
	rep := parsedReport(t, name)
	var ids strings.Builder
	for _, c := range rep.Cases {
		if c.Verdict == report.Fail {
			ids.WriteString(c.ID + " # seen once\n")
		}
	}
	if ids.Len() == 0 {
		t.Fatalf("%s has no failures", name)
	}
	return ids.String()
}

func TestCheckUsage(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	dir := t.TempDir()
	broken := commandtest.WriteFile(t, dir+"/broken.json", "{")
	known := commandtest.WriteFile(t, dir+"/known", "no/such-case\n")
	closed := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	tests := []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 2, "check: want one URL"},
		{[]string{s.URL, s.URL}, 2, "check: want one URL"},
		{[]string{"http://example.com/"}, 2, `URL: host "example.com" is not loopback, and not allowed by --allow-host`},
		{[]string{"http://a:b@127.0.0.1/"}, 2, "URL: credentials belong into --header, not into the URL"},
		{[]string{s.URL, "--body", "{ref}"}, 2, "--body: the template is not JSON once it is filled in, though --content-type says so"},
		{[]string{s.URL, "--witness", "http://example.com/{ref}"}, 2, "not allowed by --allow-host"},
		{[]string{"ftp://127.0.0.1/"}, 2, "URL: "},
		{[]string{s.URL, "--run", "no/such-case"}, 2, `--run: "no/such-case" matches no case`},
		{[]string{s.URL, "--skip", "*"}, 2, "no case is left to run"},
		{[]string{s.URL, "--profile", "acme"}, 2, `--profile "acme" is not known`},
		{[]string{s.URL, "-H", "x"}, 2, `--header number 1: want "Name: value"`},
		{[]string{s.URL, "--as", "x"}, 2, `--as number 1: want "Name: value"`},
		{[]string{s.URL, "--body", "@" + dir + "/none"}, 2, "--body: " + dir + "/none: no such file or directory"},
		{[]string{s.URL, "--outage-cmd", "true"}, 2, "--outage-cmd and --recover-cmd go together"},
		{[]string{s.URL, "--format", "pdf"}, 2, "--format: "},
		{[]string{s.URL, "--out", dir + "/no/out"}, 2, "--out " + dir + "/no/out: "},
		{[]string{s.URL, "--known-failing", dir + "/none"}, 2, "--known-failing " + dir + "/none: "},
		{[]string{s.URL, "--known-failing", known}, 2, "no/such-case is not there to fail"},
		{[]string{"http://127.0.0.1:1/"}, 3, "unreachable"},
		{[]string{closed.URL}, 3, "was answered 401; give its credentials with -H 'Authorization: …'"},
		{[]string{"doctor", closed.URL}, 3, "was answered 401; give its credentials with -H 'Authorization: …'"},
		{[]string{"list", "--run", "no/such-case"}, 2, `--run: "no/such-case" matches no case`},
		{[]string{"explain", "no/such-case"}, 2, `"no/such-case" is not a case`},
		{[]string{"report", dir + "/none"}, 2, dir + "/none: no such file or directory"},
		{[]string{"report", broken}, 2, broken + ": "},
		{[]string{"report", broken, "--format", "pdf"}, 2, "--format: "},
		{[]string{"diff", broken, broken}, 2, broken + ": "},
		{[]string{"diff", broken}, 2, "accepts 2 arg(s), received 1"},
	}
	for _, tt := range tests {
		got := commandtest.Run(t, append([]string{"check"}, tt.args...)...).Want(t, tt.status)
		if strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, tt.want) || got.Out != "" {
			t.Errorf("%q: stdout %q, stderr %q; want %q", tt.args, got.Out, got.Err, tt.want)
		}
	}
}

func TestCheckBook(t *testing.T) {
	t.Parallel()
	list := commandtest.Run(t, "check", "list").Want(t, terminal.ExitOK).Out
	if n := strings.Count(list, "\n"); n != len(conformance.Cases()) {
		t.Errorf("%d lines, want one for each of %d cases", n, len(conformance.Cases()))
	}
	if again := commandtest.Run(t, "check", "--list").Want(t, terminal.ExitOK).Out; again != list {
		t.Error("check --list is not check list")
	}
	for text := range strings.Lines(commandtest.Run(t, "check", "list", "--json", "--run", "replay/**").Want(t, terminal.ExitOK).Out) {
		var c conformance.Case
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.Group() != "replay" || c.Rule == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, c := range conformance.Cases() {
		if got := commandtest.Run(t, "check", "explain", c.ID).Want(t, terminal.ExitOK); !strings.Contains(got.Out, c.Rule) || !strings.Contains(got.Out, c.Impact) || !strings.Contains(got.Out, c.Fix) {
			t.Errorf("explain %s: %s", c.ID, got.Out)
		}
	}
}

func TestCheckDoctor(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	bare := commandtest.Run(t, "check", "doctor", m.URL()+"/payments").Want(t, terminal.ExitOK).Out
	for _, want := range []string{"ok: a repeat is not executed again", "inferred", "--delay-query", "--restart-cmd"} {
		if !strings.Contains(bare, want) {
			t.Errorf("no %q in\n%s", want, bare)
		}
	}
	set := commandtest.Run(t, "check", "doctor", m.URL()+"/payments", "--witness", m.URL()+"/_effects?ref={ref}#/count", "--delay-query", "sleep={ms}").Want(t, terminal.ExitOK).Out
	for _, want := range []string{"effects are counted", "ok: operations overlap"} {
		if !strings.Contains(set, want) {
			t.Errorf("no %q in\n%s", want, set)
		}
	}
	if strings.Contains(set, "--delay-query") {
		t.Errorf("it asks for what it has:\n%s", set)
	}
	broken := commandtest.StartMock(t, mockserver.Config{Bug: "keys-ignored"})
	if got := commandtest.Run(t, "check", "doctor", broken.URL()+"/payments").Want(t, report.ExitFailed); !strings.Contains(got.Out, "fail: ") {
		t.Errorf("stdout %s", got.Out)
	}
	commandtest.Run(t, "check", "doctor", "http://127.0.0.1:1/").Want(t, report.ExitError)
}

// The defaults in the help are those of the suite.
func TestCheckHelpDefaults(t *testing.T) {
	t.Parallel()
	help := commandtest.Run(t, "check", "--help").Want(t, terminal.ExitOK).Out
	d := conformance.Defaults()
	for flag, want := range map[string]any{
		"rounds": d.Rounds, "timeout": d.Timeout, "max-requests": d.MaxRequests, "parallel": d.Parallel, "repeat": d.Repeat, "hold": d.Hold,
		"settle": d.Settle, "answer-timeout": d.AnswerTimeout, "effect-wait": d.EffectWait, "method": d.Method, "id-pointer": d.IDPointer,
		"profile": d.Profile.Name,
	} {
		text := fmt.Sprintf("(default %v)", want)
		if s, isText := want.(string); isText {
			text = fmt.Sprintf("(default %q)", s)
		}
		found := false
		for line := range strings.Lines(help) {
			if strings.HasPrefix(strings.TrimSpace(line), "--"+flag+" ") {
				found = strings.HasSuffix(strings.TrimRight(line, "\n"), text) && strings.Count(line, "default") == 1
			}
		}
		if !found {
			t.Errorf("--%s does not say %s, once:\n%s", flag, text, help)
		}
	}
	if d.Rounds == 0 || d.Timeout == 0 || d.Body == "" {
		t.Errorf("no defaults: %+v", d)
	}
}

// A run that its time ends has not judged every case, though none failed and
// none of them was about safety.
func TestCheckTimeout(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	known := map[string]bool{}
	hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
		key := r.Header.Get("Idempotency-Key")
		mu.Lock()
		again := known[key]
		known[key] = true
		mu.Unlock()
		if again {
			<-r.Context().Done() // for ever: the suite hangs up
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(hangs.Close)
	got := commandtest.Run(t, "check", hangs.URL+"/p", "--run", "replay/status", "--timeout", "300ms").Want(t, report.ExitUndecided)
	if !strings.Contains(got.Out, "cut short") {
		t.Errorf("nothing says that the run was cut short:\n%s", got.Out)
	}
}

// The key goes into the header that is named; where none is, the header is found by
// trying, and named. Without trying the command says which flag to look at.
func TestCheckKeyHeader(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	answers := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Request-ID")
		if key == "" {
			http.Error(w, "missing X-Request-ID", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if answers[key] == "" {
			answers[key] = fmt.Sprintf(`{"id":"%d"}`, len(answers)+1)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answers[key])
	}))
	t.Cleanup(s.Close)
	named := commandtest.Run(t, "check", s.URL+"/p", "--key-header", "X-Request-ID", "--run", "replay/answered").Want(t, terminal.ExitOK)
	if !strings.Contains(named.Out, "pass          replay/answered") {
		t.Errorf("%s", named.Out)
	}
	found := commandtest.Run(t, "check", s.URL+"/p", "--run", "replay/answered").Want(t, terminal.ExitOK)
	if !strings.Contains(strings.Join(strings.Fields(found.Out), " "), "taken with --key-header X-Request-ID") {
		t.Errorf("nothing names the header that was found: %s", found.Out)
	}
	refused := commandtest.Run(t, "check", s.URL+"/p", "--run", "replay/answered", "--no-probe").Want(t, report.ExitError)
	if !strings.Contains(refused.Err, "--key-header NAME") {
		t.Errorf("nothing suggests --key-header: %s", refused.Err)
	}
	doctor := commandtest.Run(t, "check", "doctor", s.URL+"/p").Want(t, terminal.ExitOK)
	if !strings.Contains(doctor.Out, "takes operations with --key-header X-Request-ID") {
		t.Errorf("the doctor does not name the header: %s", doctor.Out)
	}
}
