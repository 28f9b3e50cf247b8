package audit_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAuditOfAPendingRow: an operation done here whose row there is pending is not missing, and no new key is advised for it, since it may still
// be done. A row of another kind than the wanted one leaves the operation missing.
func TestAuditOfAPendingRow(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 2)
	for name, c := range map[string]struct {
		cells, where, finding, why, next string
	}{
		"pending":      {"pending,charge", "status=paid", audit.NotDone, `the provider has it as "pending"`, "send it under no other key"},
		"failed":       {"failed,charge", "status=paid", audit.NotDone, `the provider has it as "failed"`, "if the API says that it stays so"},
		"refunded":     {"refunded,charge", "status=paid", audit.NotDone, `the provider has it as "refunded"`, "it took effect, and was taken back there"},
		"done, too":    {"settled,charge", "status=paid", audit.NotDone, `the provider has it as "settled"`, "say --where status=settled, too, if that is done"},
		"no status":    {",charge", "status=paid", audit.NotDone, `the provider has it as ""`, "send it under no other key"},
		"another kind": {"paid,refund", "kind=charge", "missing", "", "if the API's own list lacks it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			export := commandtest.WriteFile(t, "export.csv", "order,status,kind\n1,"+c.cells+"\n2,paid,charge\n")
			all, got := findings(t, terminal.ExitFindings, "--journal", j, "--against", export, "--where", c.where)
			if len(all) != 1 || all[0].Finding != c.finding || all[0].Why != c.why || !strings.Contains(all[0].Next, c.next) || !strings.Contains(got.Err, "1 "+c.finding) {
				t.Errorf("found %+v, stderr %q; want %q, %q and %q", all, got.Err, c.finding, c.why, c.next)
			}
		})
	}
}
