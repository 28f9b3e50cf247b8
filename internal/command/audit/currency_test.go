package audit_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// An export's currency is compared without being named, and totals are never of several currencies.
func TestAuditComparesTheCurrencyUnasked(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t) // of 1.00 EUR each; 1 is done
	for name, c := range map[string]struct {
		head, cells  string
		args         []string
		finds, total string
	}{
		"the usual name": {"currency", "USD", nil, "1 amount", "total amount there USD: 1.00 in 1 row\n"},
		"another name":   {"CCY", "usd", nil, "1 amount", "total amount there USD: 1.00 in 1 row\n"},
		"the same":       {"curr", "eur", nil, "", "total amount there EUR: 1.00 in 1 row\n"},
		"not wanted":     {"currency", "USD", []string{"--currency", ""}, "", "total amount there: 1.00 in 1 row\n"},
		"no currency":    {"coin", "USD", nil, "", "total amount there: 1.00 in 1 row\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			export := commandtest.WriteFile(t, "export.csv", "order,amount,"+c.head+"\n1,1.00,"+c.cells+"\n")
			_, got := findings(t, terminal.ExitFindings, append([]string{"--journal", j, "--against", export, "--amount", "/amount"}, c.args...)...)
			if strings.Contains(got.Err, "1 amount") != (c.finds != "") || !strings.Contains(got.Err, c.total) || !strings.Contains(got.Err, "total /amount here EUR: 4.00 in 4 operations") {
				t.Errorf("stderr %q, want %q and %q", got.Err, c.finds, c.total)
			}
		})
	}
	two := commandtest.WriteFile(t, "two.csv", "order,amount,currency,ccy\n1,1.00,EUR,EUR\n")
	got := commandtest.Run(t, "audit", "--journal", j, "--against", two, "--match", "order", "--reference", "/order", "--amount", "/amount").Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, `columns "ccy", "currency" may have the currency: say --currency COLUMN`) {
		t.Errorf("stderr %q", got.Err)
	}
}
