package conformancetest_test

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/conformance/conformancetest"
	"github.com/oncehttp/oncehttp/mockserver"
)

// layer is the mock's key layer in front of the suite's handler.
func layer(t *testing.T, bug string) conformancetest.Handler {
	return func(next http.Handler) http.Handler {
		server := mockserver.New(mockserver.Config{Handler: next, Bug: bug})
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return server
	}
}

func quick() conformance.Options {
	return conformance.Options{Quick: true, Settle: time.Second, AnswerTimeout: 2 * time.Second}
}

// bugVariable makes this test binary, run again by itself, judge a broken layer.
const bugVariable = "CONFORMANCETEST_BUG"

// A correct middleware passes, and the subtests are there.
func TestRun(t *testing.T) {
	t.Parallel()
	rep := conformancetest.Run(t, layer(t, os.Getenv(bugVariable)), quick())
	if rep.Summary.Pass < 20 {
		t.Errorf("got %d passes, want at least 20", rep.Summary.Pass)
	}
}

// A server behind a URL is judged in the same way.
func TestRunURL(t *testing.T) {
	t.Parallel()
	server := mockserver.New(mockserver.Config{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	o := quick()
	o.Witness = server.URL() + "/_effects?ref={ref}#/count"
	rep := conformancetest.Run(t, conformancetest.URL(server.URL()+"/payments"), o)
	if rep.Summary.Fail != 0 || rep.Summary.Pass == 0 {
		t.Errorf("got %+v, want passes and no failure", rep.Summary)
	}
}

// A broken middleware fails its subtest, and that alone, with what a person
// needs to see it for themselves.
func TestRunFails(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRun$", "-test.v")
	cmd.Env = append(os.Environ(), bugVariable+"=mismatch-silent")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("the test passes against a broken layer")
	}
	text := string(out)
	for _, want := range []string{
		"--- FAIL: TestRun/conflict/not-silent", "--- PASS: TestRun/replay/answered", "--- SKIP: TestRun/conflict/late-difference",
		"expected  a refusal", "fix       Store a hash of the request", "failed 3/3",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the output has no %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "--- FAIL: "); n != 3 { // the case, its group, the test
		t.Errorf("got %d failed tests, want 3:\n%s", n, text)
	}
}

// The middleware is mounted once.
func TestHandlerOnce(t *testing.T) {
	t.Parallel()
	mounted := 0
	var target conformancetest.Handler = func(next http.Handler) http.Handler {
		mounted++
		return layer(t, "")(next)
	}
	o := quick()
	o.Run = []string{"replay/answered"}
	conformancetest.Run(t, target, o)
	if mounted != 1 {
		t.Errorf("got %d mounts, want 1", mounted)
	}
}
