package audit_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAuditNamesAmounts: with --amount each finding has the amounts of both sides, as far as they are known, and without it none.
func TestAuditNamesAmounts(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 3)
	export := commandtest.WriteFile(t, "export.csv", "order,amount,currency\n2,1.00,EUR\n2,1.00,EUR\n3,3.00,EUR\n9,7.00,EUR\n")
	args := []string{"audit", "--match", "order", "--reference", "/order", "--journal", j, "--against", export, "--all-rows"}
	bare := commandtest.Run(t, args...).Want(t, terminal.ExitFindings).Out
	with := commandtest.Run(t, append(args, "--amount", "/amount")...).Want(t, terminal.ExitFindings).Out
	for line, amounts := range map[string]string{
		"missing       idemp:o:1": "  1.00 here  ", "twice         idemp:o:2": "  1.00 here, 1.00 EUR there  ask the provider; what took effect more than once, it takes back (a refund); if one of the rows is itself a refund, a fee or the like, name the column that says so: --type COLUMN\n",
		"amount        idemp:o:3": "  1.00  3.00 EUR in ", "foreign         9": "  7.00 EUR there\n",
	} {
		found := false
		for text := range strings.Lines(with) {
			found = found || strings.HasPrefix(text, line) && strings.Contains(text, amounts)
		}
		if !found {
			t.Errorf("no %q with %q in\n%s", line, amounts, with)
		}
	}
	if strings.Contains(bare, "1.00") || strings.Contains(bare, "7.00") {
		t.Errorf("without --amount:\n%s", bare)
	}
}
