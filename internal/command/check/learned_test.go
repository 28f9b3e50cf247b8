package check_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
)

// What was learned of a server is printed in place of the verdicts: what it compares,
// keeps, waits for and marks, each with the case that saw it. The status is that of
// the verdicts.
func TestCheckExplain(t *testing.T) {
	t.Parallel()
	good := commandtest.StartMock(t, mockserver.Config{}).URL()
	bad := commandtest.StartMock(t, mockserver.Config{Bug: "mismatch-silent"}).URL()
	flags := func(url string) []string {
		return []string{"check", url + "/payments", "--explain", "--witness", url + "/_effects?ref={ref}#/count", "--second-path", "/refunds", "--quick"}
	}
	told := commandtest.Run(t, flags(good)...).Want(t, terminal.ExitOK).Out
	for _, want := range []string{"compares", "the path", "(scope/other-path-not-answered)", "keeps", "its status", "marks", "Idempotent-Replayed: true", "the same members in another order: "} {
		if !strings.Contains(told, want) {
			t.Errorf("nothing says %q:\n%s", want, told)
		}
	}
	if strings.Contains(told, "TOTALS") {
		t.Errorf("the report is printed as well:\n%s", told)
	}
	other := commandtest.Run(t, flags(bad)...).Want(t, report.ExitFailed).Out
	if !strings.Contains(other, "not the body: another one is answered as the first") {
		t.Errorf("nothing says that bodies are not compared:\n%s", other)
	}
}
