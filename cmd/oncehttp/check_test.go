package main

import (
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
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
)

// checked runs a few quick cases against a mock.
func checked(t *testing.T, m *mockserver.Server, more ...string) ran {
	t.Helper()
	args := []string{
		"check", m.URL() + "/payments", "--witness", m.URL() + "/_effects?ref={ref}#/count",
		"--run", "replay/effects-once", "--run", "replay/answered", "--run", "replay/status",
	}
	return run(t, append(args, more...)...)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := startMock(t, mockserver.Config{})
	bad := startMock(t, mockserver.Config{Bug: "keys-ignored"})
	dir := t.TempDir()

	got := checked(t, good).want(t, exitOK)
	if !strings.Contains(got.out, "pass          replay/effects-once") || got.err != "" {
		t.Errorf("stdout %s\nstderr %s", got.out, got.err)
	}
	checked(t, good, "--format", "json", "--out", dir+"/good.json", "--seed", "7").want(t, exitOK)
	text, err := os.ReadFile(dir + "/good.json")
	if err != nil {
		t.Fatal(err)
	}
	var rep report.Report
	if err := json.Unmarshal(text, &rep); err != nil || len(rep.Cases) != 3 || rep.Seed != 7 {
		t.Errorf("report of %d cases with seed %d, %v", len(rep.Cases), rep.Seed, err)
	}

	checked(t, bad, "--format", "json", "--out", dir+"/bad.json").want(t, report.ExitFailed)
	known := writeFile(t, dir+"/known", failures(t, dir+"/bad.json"))
	checked(t, bad, "--known-failing", known).want(t, report.ExitOK)
	checked(t, good, "--known-failing", known).want(t, report.ExitFailed) // what passes has to leave the list

	run(t, "check", "diff", dir+"/good.json", dir+"/bad.json").want(t, report.ExitFailed)
	run(t, "check", "diff", dir+"/bad.json", dir+"/good.json").want(t, report.ExitOK)
	for format, want := range map[string]string{"html": "<html", "junit": "<testsuites", "markdown": "replay/status", "text": "replay/status"} {
		got := run(t, "check", "report", dir+"/good.json", dir+"/bad.json", "--format", format).want(t, exitOK)
		if !strings.Contains(got.out, want) {
			t.Errorf("%s has no %q", format, want)
		}
	}
}

// failures lists the cases that failed in a report, as a list of known ones.
func failures(t *testing.T, name string) string {
	t.Helper()
	rep, err := readReport(name)
	if err != nil {
		t.Fatal(err)
	}
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
	s := refusing(t)
	dir := t.TempDir()
	broken := writeFile(t, dir+"/broken.json", "{")
	known := writeFile(t, dir+"/known", "no/such-case\n")
	tests := []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 2, "check: want one URL"},
		{[]string{s.url, s.url}, 2, "check: want one URL"},
		{[]string{"http://example.com/"}, 2, `URL: host "example.com" is not loopback, and not allowed by --allow-host`},
		{[]string{"http://a:b@127.0.0.1/"}, 2, "URL: credentials belong into --header, not into the URL"},
		{[]string{s.url, "--body", "{ref}"}, 2, "--body: the template is not JSON once it is filled in, though --content-type says so"},
		{[]string{s.url, "--witness", "http://example.com/{ref}"}, 2, "not allowed by --allow-host"},
		{[]string{"ftp://127.0.0.1/"}, 2, "URL: "},
		{[]string{s.url, "--run", "no/such-case"}, 2, `--run: "no/such-case" matches no case`},
		{[]string{s.url, "--skip", "*"}, 2, "no case is left to run"},
		{[]string{s.url, "--profile", "acme"}, 2, `--profile "acme" is not known`},
		{[]string{s.url, "-H", "x"}, 2, `--header number 1: want "Name: value"`},
		{[]string{s.url, "--as", "x"}, 2, `--as number 1: want "Name: value"`},
		{[]string{s.url, "--body", "@" + dir + "/none"}, 2, "--body: " + dir + "/none: no such file or directory"},
		{[]string{s.url, "--outage-cmd", "true"}, 2, "--outage-cmd and --recover-cmd go together"},
		{[]string{s.url, "--format", "pdf"}, 2, "--format: "},
		{[]string{s.url, "--out", dir + "/no/out"}, 2, "--out " + dir + "/no/out: "},
		{[]string{s.url, "--known-failing", dir + "/none"}, 2, "--known-failing " + dir + "/none: "},
		{[]string{s.url, "--known-failing", known}, 2, "no/such-case is not there to fail"},
		{[]string{"http://127.0.0.1:1/"}, 3, "unreachable"},
		{[]string{"list", "--run", "no/such-case"}, 2, `--run: "no/such-case" matches no case`},
		{[]string{"explain", "no/such-case"}, 2, `"no/such-case" is not a case`},
		{[]string{"report", dir + "/none"}, 2, dir + "/none: no such file or directory"},
		{[]string{"report", broken}, 2, broken + ": "},
		{[]string{"report", broken, "--format", "pdf"}, 2, "--format: "},
		{[]string{"diff", broken, broken}, 2, broken + ": "},
		{[]string{"diff", broken}, 2, "accepts 2 arg(s), received 1"},
	}
	for _, tt := range tests {
		got := run(t, append([]string{"check"}, tt.args...)...).want(t, tt.status)
		if strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, tt.want) || got.out != "" {
			t.Errorf("%q: stdout %q, stderr %q; want %q", tt.args, got.out, got.err, tt.want)
		}
	}
}

func TestCheckBook(t *testing.T) {
	t.Parallel()
	list := run(t, "check", "list").want(t, exitOK).out
	if n := strings.Count(list, "\n"); n != len(conformance.Cases()) {
		t.Errorf("%d lines, want one for each of %d cases", n, len(conformance.Cases()))
	}
	if again := run(t, "check", "--list").want(t, exitOK).out; again != list {
		t.Error("check --list is not check list")
	}
	for text := range strings.Lines(run(t, "check", "list", "--json", "--run", "replay/**").want(t, exitOK).out) {
		var c conformance.Case
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.Group() != "replay" || c.Rule == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, c := range conformance.Cases() {
		if got := run(t, "check", "explain", c.ID).want(t, exitOK); !strings.Contains(got.out, c.Rule) || !strings.Contains(got.out, c.Impact) || !strings.Contains(got.out, c.Fix) {
			t.Errorf("explain %s: %s", c.ID, got.out)
		}
	}
}

// A flag's name stands before what the suite finds wrong with its value.
func TestFlagOf(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{
		"URL": "URL", "Restart": "--restart-cmd", "IDPointer": "--id-pointer", "AllowHosts": "--allow-host", "MaxRequests": "--max-requests", "Run": "--run",
	} {
		if got := flagOf(option); got != want {
			t.Errorf("%s: %s, want %s", option, got, want)
		}
	}
}

func TestCheckDoctor(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	bare := run(t, "check", "doctor", m.URL()+"/payments").want(t, exitOK).out
	for _, want := range []string{"ok: a repeat is not executed again", "inferred", "--delay-query", "--restart-cmd"} {
		if !strings.Contains(bare, want) {
			t.Errorf("no %q in\n%s", want, bare)
		}
	}
	set := run(t, "check", "doctor", m.URL()+"/payments", "--witness", m.URL()+"/_effects?ref={ref}#/count", "--delay-query", "sleep={ms}").want(t, exitOK).out
	for _, want := range []string{"effects are counted", "ok: operations overlap"} {
		if !strings.Contains(set, want) {
			t.Errorf("no %q in\n%s", want, set)
		}
	}
	if strings.Contains(set, "--delay-query") {
		t.Errorf("it asks for what it has:\n%s", set)
	}
	broken := startMock(t, mockserver.Config{Bug: "keys-ignored"})
	if got := run(t, "check", "doctor", broken.URL()+"/payments").want(t, report.ExitFailed); !strings.Contains(got.out, "fail: ") {
		t.Errorf("stdout %s", got.out)
	}
	run(t, "check", "doctor", "http://127.0.0.1:1/").want(t, report.ExitError)
}

// The defaults in the help are those of the suite.
func TestCheckHelpDefaults(t *testing.T) {
	t.Parallel()
	help := run(t, "check", "--help").want(t, exitOK).out
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
			if strings.Contains(line, " --"+flag+" ") {
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
	got := run(t, "check", hangs.URL+"/p", "--run", "replay/status", "--timeout", "300ms").want(t, report.ExitUndecided)
	if !strings.Contains(got.out, "cut short") {
		t.Errorf("nothing says that the run was cut short:\n%s", got.out)
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
	named := run(t, "check", s.URL+"/p", "--key-header", "X-Request-ID", "--run", "replay/answered").want(t, exitOK)
	if !strings.Contains(named.out, "pass          replay/answered") {
		t.Errorf("%s", named.out)
	}
	found := run(t, "check", s.URL+"/p", "--run", "replay/answered").want(t, exitOK)
	if !strings.Contains(strings.Join(strings.Fields(found.out), " "), "taken with --key-header X-Request-ID") {
		t.Errorf("nothing names the header that was found: %s", found.out)
	}
	refused := run(t, "check", s.URL+"/p", "--run", "replay/answered", "--no-probe").want(t, report.ExitError)
	if !strings.Contains(refused.err, "--key-header NAME") {
		t.Errorf("nothing suggests --key-header: %s", refused.err)
	}
	doctor := run(t, "check", "doctor", s.URL+"/p").want(t, exitOK)
	if !strings.Contains(doctor.out, "operations are taken with --key-header X-Request-ID") {
		t.Errorf("the doctor does not name the header: %s", doctor.out)
	}
}
