package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// A failed row of an export is a finding until --where names the done rows, and never a reason to settle.
func TestAuditRowsThatSayFailed(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t) // 1 is done, 2 pending, 3 held, 4 abandoned
	for name, c := range map[string]struct {
		head, cell, said string
		args             []string
		failed           bool
	}{
		"a status":                  {"status", "failed", "status=failed", nil, true},
		"a name and value of words": {"Payment State", "Card-Declined", "Payment State=Card-Declined", nil, true},
		"another column":            {"what", "Refunded", "what=Refunded", nil, true},
		"a text of words":           {"what", "an error of ours", "", nil, false},
		"no error":                  {"result", "no error", "", nil, false},
		"all rows, a status":        {"outcome", "voided", "outcome=voided", []string{"--all-rows"}, true},
		"all rows, a word":          {"what", "voided", "", []string{"--all-rows"}, false},
		"another --where":           {"result", "REVERSED", "result=REVERSED", []string{"--where", "order=1", "--where", "order=2"}, true},
		"--where of the status":     {"status", "failed", "", []string{"--where", "status=failed"}, false},
		"a type":                    {"status", "refunded", "", []string{"--type", "status"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			export := commandtest.WriteFile(t, "export.csv", "order,amount,"+c.head+"\n1,,"+c.cell+"\n2,,"+c.cell+"\n")
			all, got := findings(t, terminal.ExitFindings, append([]string{"--journal", j, "--against", export}, c.args...)...)
			var failed, settled []string
			for _, f := range all {
				if f.Finding == audit.Failed {
					failed = append(failed, f.Key+" "+f.There)
					back := slices.Contains([]string{"Refunded", "REVERSED"}, c.cell)
					if strings.Contains(f.Why, "taken back") != back || strings.Contains(f.Next, "before anything is sent for it under another key") != back {
						t.Errorf("%q: %q, next %q", c.cell, f.Why, f.Next)
					}
				}
				if strings.Contains(f.Next, "--happened") {
					settled = append(settled, f.Key)
				}
			}
			hint := "says failed: 2 rows with " + c.said + ", which no total has; say --where "
			if !c.failed {
				if len(failed) > 0 || strings.Contains(got.Err, "says failed") {
					t.Errorf("found %+v, stderr %q", all, got.Err)
				}
				return
			}
			want := []string{"idemp:o:1 " + export + " row 1 (" + c.said + ")", "idemp:o:2 " + export + " row 2 (" + c.said + ")"}
			if !slices.Equal(failed, want) || len(settled) > 0 || !strings.Contains(got.Err, hint) || !strings.Contains(got.Err, "2 failed") {
				t.Errorf("failed %q, want %q; settled %q; stderr %q, want %q", failed, want, settled, got.Err, hint)
			}
		})
	}
}

// Failed there, and not done here, is no difference; a row of nobody that says failed is listed.
func TestAuditFailedOnBothSides(t *testing.T) {
	t.Parallel()
	j := commandtest.AuditJournal(t) // 4 is declined
	export := commandtest.WriteFile(t, "export.csv", "order,amount,status\n1,100,ok\n2,200,ok\n3,300,ok\n4,,declined\n7,700,ok\n8,,failed\n")
	all, got := findings(t, terminal.ExitFindings, "--journal", j, "--against", export, "--amount", "/amount")
	var kinds []string
	for _, f := range all {
		kinds = append(kinds, f.Finding+" "+f.Reference)
	}
	if want := []string{"unresolved 5", "unresolved 6", "failed 8"}; !slices.Equal(kinds, want) {
		t.Errorf("found %q, want %q", kinds, want)
	}
	if want := "total amount there: 1300 in 4 rows\n"; !strings.Contains(got.Err, want) {
		t.Errorf("stderr %q, want %q", got.Err, want)
	}
}
