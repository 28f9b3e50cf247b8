package check_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
)

// explore searches a mock with few sequences.
func explore(t *testing.T, m *mockserver.Server, more ...string) commandtest.Ran {
	t.Helper()
	args := []string{"check", m.URL() + "/payments", "--witness", m.URL() + "/_effects?ref={ref}#/count", "--explore", "--seed", "7", "--histories", "60",
		"--run", "explore/nested-*", "--run", "explore/amount", "--run", "explore/repeat", "--settle", "1s", "--effect-wait", "20ms"}
	return commandtest.Run(t, append(args, more...)...)
}

// A right server is cleared. One that does not look into objects is found by a sequence that no case names, told with
// its requests, and accepted where a list of known failures names it.
func TestCheckExplore(t *testing.T) {
	t.Parallel()
	good, bad := commandtest.StartMock(t, mockserver.Config{}), commandtest.StartMock(t, mockserver.Config{Bug: "nested-ignored"})
	if got := explore(t, good).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "pass 5") {
		t.Errorf("want five relations that pass:\n%s", got.Out)
	}
	got := explore(t, bad).Want(t, report.ExitFailed)
	for _, want := range []string{"FAIL  explore/nested-1", "the request, with another value inside an object: 201", "compare it on each repeat", "curl ", "failed 3/3"} {
		if !strings.Contains(strings.Join(strings.Fields(got.Out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("nothing says %q:\n%s", want, got.Out)
		}
	}
	known := commandtest.WriteFile(t, t.TempDir()+"/known", "explore/nested-1 # seen\nexplore/overlap-and-amount # not met here\n")
	explore(t, bad, "--known-failing", known).Want(t, terminal.ExitOK)
}

// A search stays within its effects, and needs that bound where effects may be real.
func TestCheckExploreIsBounded(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	explore(t, m, "--max-effects", "20").Want(t, terminal.ExitOK)
	if n := len(m.Ledger().EffectsByReference()); n == 0 || n > 20 {
		t.Errorf("the server counts %d effects, want 1 to 20", n)
	}
	for _, c := range []struct{ flags, says string }{
		{"https://payments.example/pay --allow-host payments.example --explore", "--max-effects"},
		{m.URL() + "/payments --explore --explain", "one at a time"},
		{m.URL() + "/payments --explore --quick", "--quick"},
		{m.URL() + "/payments --explore --run replay/**", "matches no case"},
		{m.URL() + "/payments --explore --histories -1", "negative"},
		{m.URL() + "/payments --for 5s", "--explore"},
	} {
		if got := commandtest.Run(t, append([]string{"check"}, strings.Fields(c.flags)...)...).Want(t, report.ExitUsage); !strings.Contains(got.Err, c.says) {
			t.Errorf("%s: got %q, want it to say %q", c.flags, got.Err, c.says)
		}
	}
	if got := commandtest.Run(t, "check", "list", "--explore").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "explore/nested-4") {
		t.Errorf("the relations are not listed:\n%s", got.Out)
	}
	commandtest.Run(t, "check", "explain", "explore/chunked").Want(t, terminal.ExitOK)
}

// A search ends once it has found as many contradictions as --max-findings says.
func TestCheckExploreMaxFindings(t *testing.T) {
	t.Parallel()
	bad := commandtest.StartMock(t, mockserver.Config{Bug: "nested-ignored"})
	findings := func(flags ...string) int {
		got := explore(t, bad, append(flags, "--run", "explore/list*")...).Want(t, report.ExitFailed)
		return strings.Count(got.Out, "FAIL  explore/")
	}
	if one, all := findings("--max-findings", "1"), findings(); one != 1 || all < 2 {
		t.Errorf("got %d findings of at most 1, and %d without a bound; want 1, and more", one, all)
	}
}

// What --volume sends is said before, and kept to; a store that lets go by number is found.
func TestCheckVolume(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	args := []string{"check", m.URL() + "/payments", "--witness", m.URL() + "/_effects?ref={ref}#/count", "--volume", "--max-effects", "400", "--skip", "volume/age", "--effect-wait", "20ms"}
	got := commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, "check --volume sends up to 605 requests, and up to 265 operations among them") {
		t.Errorf("got %q, want the number of requests and operations first", got.Err)
	}
	if n := len(m.Ledger().EffectsByReference()); n < 150 || n > 265 {
		t.Errorf("the server counts %d effects, want 150 to 265", n)
	}
	for _, c := range []struct{ flags, says string }{
		{"https://payments.example/pay --allow-host payments.example --volume", "--max-effects"},
		{m.URL() + "/payments --explore --volume", "--explore"},
		{m.URL() + "/payments --volume --max-effects 50", "100 effects"},
	} {
		if got := commandtest.Run(t, append([]string{"check"}, strings.Fields(c.flags)...)...).Want(t, report.ExitUsage); !strings.Contains(got.Err, c.says) {
			t.Errorf("%s: got %q, want it to say %q", c.flags, got.Err, c.says)
		}
	}
	if got := commandtest.Run(t, "check", "list", "--volume").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "volume/bodies") {
		t.Errorf("the cases are not listed:\n%s", got.Out)
	}
}
