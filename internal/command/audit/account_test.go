package audit_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// TestAuditOfOneAccount: with --account the rows of the journal's other accounts are not foreign, and an account that no operation has is refused, since its name may be
// mistyped.
func TestAuditOfOneAccount(t *testing.T) {
	t.Parallel()
	url := commandtest.StartMock(t, mockserver.Config{}).URL() + "/payments"
	dir := t.TempDir()
	for account, rows := range map[string]string{"": "1\n2\n", "Acme Ltd": "3\n"} {
		file := commandtest.WriteFile(t, "in.csv", "order\n"+rows)
		commandtest.Run(t, "batch", file, "--url", url, "--key", "o:{order}", "--journal", dir+"/j.db", "--account", account, "--yes").Want(t, terminal.ExitOK)
	}
	audit := func(account, rows string) commandtest.Ran {
		export := commandtest.WriteFile(t, "export.csv", "order\n"+rows)
		args := []string{"audit", "--journal", dir + "/j.db", "--match", "order", "--reference", "/order", "--all-rows", "--against", export}
		if account != "all" {
			args = append(args, "--account", account)
		}
		return commandtest.Run(t, args...)
	}
	const all = "1\n2\n3\n"
	for _, account := range []string{"all", "", "Acme Ltd"} {
		audit(account, all).Want(t, terminal.ExitOK)
	}
	if got := audit("Acme Ltd", "1\n2\n9\n").Want(t, terminal.ExitFindings).Out; !strings.Contains(got, "missing       idemp:o:3") || strings.Count(got, "\nforeign ")+strings.Count(got, "missing  ") > 2 || !strings.Contains(got, "foreign         9") {
		t.Errorf("it says %s", got)
	}
	got := audit("shpo", all)
	if got.Status == terminal.ExitOK || got.Status == terminal.ExitFindings || !strings.Contains(got.Err, "--account shpo: no operation of the journal is of it; there are some ") {
		t.Errorf("status %d: %s", got.Status, got.Err)
	}
}
