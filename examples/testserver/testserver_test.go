package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/testrun"
)

// taught are the findings in the design that articles teach, as the page lists them.
var taught = []string{
	"conflict/not-silent", "key/empty-not-shared", "outcome/4xx", "outcome/5xx-resolves", "outcome/corrected-body", "outcome/crash-resolves",
	"scope/other-path-not-answered", "scope/other-principal-not-answered", "replay/status", "outcome/transient-not-pinned",
}

// Each server begins with what articles teach, and ends without a failure or a warning.
// Python and Node are judged where they are installed.
func TestServers(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"first", "right"} {
		t.Run("go/"+which, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(newShop(which))
			defer server.Close()
			judge(t, server.URL, which)
		})
		for name, file := range map[string]string{"python3": "server.py", "node": "server.mjs"} {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Logf("%s is not installed", name)
				continue
			}
			if which == "first" && !testrun.Whole() { // they begin with what the one in Go begins with
				continue
			}
			t.Run(name+"/"+which, func(t *testing.T) {
				t.Parallel()
				judge(t, start(t, path, file, "0", which), which)
			})
		}
	}
}

// start runs a server until the test ends, and returns its URL.
func start(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it ends with the test
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, said := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !said {
		t.Fatalf("%v says %q, %v, want where it listens", command, line, err)
	}
	return url
}

// judge runs the check as the page does.
func judge(t *testing.T, url, which string) {
	t.Helper()
	o := conformance.Options{
		URL: url + "/payments", Witness: url + "/_effects?ref={ref}#/count", SecondPath: "/refunds",
		DelayQuery: "sleep={ms}", FailQuery: "fail={status}", CrashQuery: "crash=1",
		Header: http.Header{"Authorization": {"Bearer a"}}, As: http.Header{"Authorization": {"Bearer b"}},
		Rounds: 3, Settle: time.Second, AnswerTimeout: 4 * time.Second,
	}
	if which == "first" && !testrun.Whole() { // the others wait for what never comes
		o.Run = taught
	}
	rep, err := conformance.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var failed, open []string
	for _, c := range rep.Cases {
		switch c.Verdict {
		case conformance.VerdictFail, conformance.VerdictWarn:
			failed = append(failed, c.ID)
		case conformance.VerdictInconclusive, conformance.VerdictError:
			open = append(open, c.ID+": "+c.Reason)
		}
	}
	if which == "right" {
		if len(failed) > 0 || rep.Summary.Pass < 60 {
			t.Errorf("got %v and %d passes, want no finding; open: %q", failed, rep.Summary.Pass, open)
		}
		return
	}
	for _, id := range taught {
		if !slices.Contains(failed, id) {
			t.Errorf("%s is not found; got %v; open: %q", id, failed, open)
		}
	}
}
