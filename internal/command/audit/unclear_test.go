package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAuditOfStatuses: without --where a status is known as success, or as failure, or is a finding, so that exports of payments that came to nothing
// never end with status 0. --where and --all-rows say what the rows are.
func TestAuditOfStatuses(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 1)
	for kind, cells := range map[string][]string{
		"": {
			"succeeded", "Success", "SUCCESSFUL", "paid", "completed", "Complete", "done", "ok", "settled", "captured", "posted", "executed", "confirmed", "approved", "cleared",
			"processed", "sent", "payment.succeeded", "payout_paid", "fully paid", "Settled 2026-01-31",
		},
		audit.Failed: {"returned", "bounced", "chargeback", "void", "voided", "expired", "unpaid", "Blocked", "disputed", "charge_expired", "refunded"},
		audit.Unclear: {
			"pending", "processing", "in_transit", "not paid", "incomplete", "created", "NOK", "not_sent", "accepted", "partially paid", "to be sent", "", "17", "bezahlt",
		},
	} {
		for _, cell := range cells {
			export := commandtest.WriteFile(t, "export.csv", "order,status\n1,"+cell+"\n")
			status := terminal.ExitFindings
			if kind == "" {
				status = terminal.ExitOK
			}
			all, got := findings(t, status, "--journal", j, "--against", export)
			if kind == "" && len(all) == 0 {
				continue
			}
			if len(all) != 1 || all[0].Finding != kind || !strings.Contains(got.Err, ": 1 "+kind+"; evidence") {
				t.Errorf("%q is %+v, want %q; stderr %q", cell, all, kind, got.Err)
			}
			if kind == audit.Unclear {
				findings(t, terminal.ExitOK, "--journal", j, "--against", export, "--where", "status="+cell)
				findings(t, terminal.ExitOK, "--journal", j, "--against", export, "--all-rows")
			}
		}
	}
}

// TestAuditNamesUnclearStatuses: rows with a status that is no known word are one line for each column, with the values that are most frequent.
func TestAuditNamesUnclearStatuses(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 9)
	for name, c := range map[string]struct{ rows, there, counted string }{
		"one value":            {"1,pending,\n2,paid,\n", `1 row with status="pending"`, "1 unclear"},
		"several":              {"1,in transit,\n2,pending,\n3,pending,\n4,,\n", `4 rows with status="pending" ×2, status="" ×1, status="in transit" ×1`, "4 unclear"},
		"many":                 {"1,a,\n2,b,\n3,c,\n4,d,\n5,e,\n6,f,\n7,f,\n", `7 rows with status="f" ×2, status="a" ×1, status="b" ×1, status="c" ×1, status="d" ×1, 1 row with other values`, "7 unclear"},
		"a long one":           {"1," + strings.Repeat("p", 300) + ",\n", `1 row with status="` + strings.Repeat("p", 40), "1 unclear"},
		"another column empty": {"1,paid,\n", "", ""},
		"another column":       {"1,paid,open\n", `1 row with dispute_state="open"`, "1 unclear"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := c.rows
			for i := range 9 {
				if id := fmt.Sprint(i + 1); !strings.Contains("\n"+rows, "\n"+id+",") {
					rows += id + ",paid,\n"
				}
			}
			export := commandtest.WriteFile(t, "export.csv", "order,status,dispute_state\n"+rows)
			status := terminal.ExitFindings
			if c.there == "" {
				status = terminal.ExitOK
			}
			all, got := findings(t, status, "--journal", j, "--against", export)
			if c.there == "" {
				return
			}
			column := "status"
			if strings.Contains(c.there, "dispute_state") {
				column = "dispute_state"
			}
			next := "say --where " + column + "=VALUE with each value of rows that are done, or --all-rows if all are"
			if len(all) != 1 || all[0].Finding != audit.Unclear || !strings.HasPrefix(all[0].There, c.there) || len(all[0].There) > 200 || all[0].Next != next ||
				all[0].Why != "no known word of success or failure" || !strings.Contains(got.Err, c.counted) {
				t.Errorf("found %+v, want %q and %q; stderr %q", all, c.there, next, got.Err)
			}
		})
	}
}
