//go:build unix

package check_test

import (
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
)

// What a report says to try shows the finding again, on the same server, with
// curl alone: the witness, which is the last line, counts an effect for each of
// the three requests. A server without the bug shows one.
func TestCheckTryRuns(t *testing.T) {
	t.Parallel()
	bad, good := commandtest.StartMock(t, mockserver.Config{Bug: "keys-ignored"}), commandtest.StartMock(t, mockserver.Config{})
	dir := t.TempDir()
	checked(t, bad, "--format", "json", "--out", dir+"/bad.json", "-H", "Authorization: Bearer nobodysees").Want(t, report.ExitFailed)
	rep := parsedReport(t, dir+"/bad.json")
	var lines []string
	for _, c := range rep.Cases {
		if c.ID == "replay/effects-once" {
			lines = c.Try
		}
	}
	script := strings.Join(lines, "\n")
	if len(lines) != 6 || strings.Contains(script, "nobodysees") {
		t.Fatalf("the lines are\n%s", script)
	}
	for _, try := range []struct {
		script, want string
	}{
		{script, `"count":3`}, {strings.ReplaceAll(script, bad.URL(), good.URL()), `"count":1`},
	} {
		output, err := osexec.Command("bash", "-euc", "AUTH_A='Bearer somebody'\n"+try.script).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, output, try.script)
		}
		last := string(output[strings.LastIndex(string(output), "HTTP/"):])
		if !strings.Contains(strings.ReplaceAll(last, " ", ""), try.want) {
			t.Errorf("the witness says\n%s, want %s after\n%s", last, try.want, try.script)
		}
	}
}
