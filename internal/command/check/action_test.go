package check_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/mockserver"
)

// actionScript returns the script of the last step of the GitHub Action.
func actionScript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../.github/actions/check/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "      run: |\n"
	at := strings.LastIndex(string(text), begin)
	if at < 0 {
		t.Fatal("the action has no script")
	}
	var script strings.Builder
	for line := range strings.Lines(string(text[at+len(begin):])) {
		script.WriteString(strings.TrimPrefix(line, "        "))
	}
	return script.String()
}

// TestAction runs the script of the GitHub Action as a runner does: a green server, a wrong flag, and values that would be code in a script.
func TestAction(t *testing.T) {
	t.Parallel()
	server := mockserver.New(mockserver.Config{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	script := actionScript(t)
	for name, run := range map[string]struct {
		flags, known, status string
		reports              bool
	}{
		"green":           {"--quick\n\n--rounds=5\n", "", "0", true},
		"a wrong flag":    {"--quik", "", "2", false},
		"code in a value": {"--quick\n--rounds=5\n--name=$(touch stolen) `touch stolen`; touch stolen", "", "0", true},
		"a list":          {"--quick\n--rounds=5", "known.txt", "1", true}, // of a case that passes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			own, err := filepath.Abs(os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(own, filepath.Join(dir, "oncehttp")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "known.txt"), []byte("replay/status\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := osexec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), commandtest.AsCommand+"=1", "BIN="+dir, "URL="+server.URL()+"/payments", "FLAGS="+run.flags, "KNOWN="+run.known,
				"REPORTS=reports", "GITHUB_OUTPUT="+filepath.Join(dir, "output"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"))
			output, err := cmd.CombinedOutput()
			if (err == nil) != (run.status == "0") {
				t.Errorf("%v\n%s", err, output)
			}
			if got := written(t, dir, "output"); got != "status="+run.status+"\n" {
				t.Errorf("the output is %q, want status %s\n%s", got, run.status, output)
			}
			if got := written(t, dir, "reports/report.xml"); strings.Contains(got, "<testsuite") != run.reports {
				t.Errorf("JUnit: %q", got)
			}
			if got := written(t, dir, "summary"); strings.Contains(got, "|") != run.reports {
				t.Errorf("the summary: %q", got)
			}
			if _, err := os.Stat(filepath.Join(dir, "stolen")); err == nil {
				t.Error("a value ran as code")
			}
		})
	}
}

// written returns the text of a file, or nothing if it does not exist.
func written(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
