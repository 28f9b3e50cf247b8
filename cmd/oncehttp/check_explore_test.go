package main

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
)

// explore searches a mock with few sequences.
func explore(t *testing.T, m *mockserver.Server, more ...string) ran {
	t.Helper()
	args := []string{"check", m.URL() + "/payments", "--witness", m.URL() + "/_effects?ref={ref}#/count", "--explore", "--seed", "7", "--histories", "60",
		"--run", "explore/nested-*", "--run", "explore/amount", "--run", "explore/repeat", "--settle", "1s", "--effect-wait", "20ms"}
	return run(t, append(args, more...)...)
}

// A right server is cleared. One that does not look into objects is found by a sequence that no case names, told with
// its requests, and accepted where a list of known failures names it.
func TestCheckExplore(t *testing.T) {
	t.Parallel()
	good, bad := startMock(t, mockserver.Config{}), startMock(t, mockserver.Config{Bug: "nested-ignored"})
	if got := explore(t, good).want(t, exitOK); !strings.Contains(got.out, "pass 5") {
		t.Errorf("want five relations that pass:\n%s", got.out)
	}
	got := explore(t, bad).want(t, report.ExitFailed)
	for _, want := range []string{"FAIL  explore/nested-1", "the request, with another value inside an object: 201", "compare it on each repeat", "curl ", "failed 3/3"} {
		if !strings.Contains(strings.Join(strings.Fields(got.out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("nothing says %q:\n%s", want, got.out)
		}
	}
	known := writeFile(t, t.TempDir()+"/known", "explore/nested-1 # seen\nexplore/overlap-and-amount # not met here\n")
	explore(t, bad, "--known-failing", known).want(t, exitOK)
}

// A search stays within its effects, and needs that bound where effects may be real.
func TestCheckExploreIsBounded(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	explore(t, m, "--max-effects", "20").want(t, exitOK)
	if n := len(m.Ledger().EffectsByReference()); n == 0 || n > 20 {
		t.Errorf("the server counts %d effects, want 1 to 20", n)
	}
	for _, c := range []struct{ flags, says string }{
		{"https://payments.example/pay --allow-host payments.example --explore", "--max-effects"},
		{m.URL() + "/payments --explore --explain", "one at a time"},
		{m.URL() + "/payments --explore --quick", "--quick"},
		{m.URL() + "/payments --explore --run replay/**", "matches no case"},
		{m.URL() + "/payments --explore --histories -1", "negative"},
	} {
		if got := run(t, append([]string{"check"}, strings.Fields(c.flags)...)...).want(t, report.ExitUsage); !strings.Contains(got.err, c.says) {
			t.Errorf("%s: got %q, want it to say %q", c.flags, got.err, c.says)
		}
	}
	if got := run(t, "check", "list", "--explore").want(t, exitOK); !strings.Contains(got.out, "explore/nested-4") {
		t.Errorf("the relations are not listed:\n%s", got.out)
	}
	run(t, "check", "explain", "explore/chunked").want(t, exitOK)
}
