package audit_test

import (
	"net/http"
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

// TestAuditTotalsOfSeveralCurrencies: amounts of several currencies are never added up, where the export, or our requests, name none.
func TestAuditTotalsOfSeveralCurrencies(t *testing.T) {
	t.Parallel()
	j := currencyJournal(t, "1,1.00,EUR\n2,2.50,USD\n3,4,JPY\n4,8.00,EUR\n")
	bare := currencyJournal(t, "1,1.00,\n2,2.50,\n3,4,\n4,8.00,\n")
	const (
		ours    = "total /amount here EUR: 9.00 in 2 operations = 9.00 in 2 done\ntotal /amount here JPY: 4 in 1 operation = 4 in 1 done\ntotal /amount here USD: 2.50 in 1 operation = 2.50 in 1 done\n"
		lent    = "total amount there: 4 rows without a currency were added in the currency of the request here, which was not compared: say --currency COLUMN\n"
		foreign = "total amount there: not added up of 1 row without a currency, since there are EUR, JPY, USD: say --currency COLUMN\n"
	)
	for name, c := range map[string]struct {
		journal, rows, want string
		args                []string
		status              int
	}{
		"no column there": {
			j, "order,amount\n1,1.00\n2,2.50\n3,4\n4,8.00\n",
			ours + "total amount there EUR: 9.00 in 2 rows\ntotal amount there JPY: 4 in 1 row\ntotal amount there USD: 2.50 in 1 row\n" + lent, nil, terminal.ExitOK,
		},
		"cents there": {
			j, "order,amount\n1,100\n2,250\n3,4\n4,800\n9,1000\n",
			ours + "total amount there EUR: 9.00 in 2 rows\ntotal amount there JPY: 4 in 1 row\ntotal amount there USD: 2.50 in 1 row\n" + lent + foreign,
			[]string{"--unit", "minor", "--our-unit", "major"}, terminal.ExitFindings,
		},
		"none here": {
			bare, "order,amount,currency\n1,1.00,EUR\n2,2.50,USD\n3,4,JPY\n4,8.00,EUR\n",
			"total /amount here: not added up of 4 operations whose request names no currency, since there are EUR, JPY, USD: say --currency COLUMN and --our-currency /POINTER\n" +
				"total amount there EUR: 9.00 in 2 rows\ntotal amount there JPY: 4 in 1 row\ntotal amount there USD: 2.50 in 1 row\n", nil, terminal.ExitOK,
		},
		"some keys": {
			j, "order,amount\n1,1.00\n2,2.50\n3,4\n4,8.00\n",
			"total /amount here EUR: 1.00 in 1 operation = 1.00 in 1 done\ntotal /amount here USD: 2.50 in 1 operation = 2.50 in 1 done\n" +
				"total amount there EUR: 9.00 in 2 rows\ntotal amount there JPY: 4 in 1 row\ntotal amount there USD: 2.50 in 1 row\n" + lent,
			[]string{"o:1", "o:2"}, terminal.ExitOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			export := commandtest.WriteFile(t, "export.csv", c.rows)
			_, got := findings(t, c.status, append([]string{"--journal", c.journal, "--against", export, "--amount", "/amount", "--all-rows"}, c.args...)...)
			if !strings.Contains(got.Err, "evidence as of the export\n"+c.want) {
				t.Errorf("stderr\n%swant\n%s", got.Err, c.want)
			}
		})
	}
}

// currencyJournal has the rows order,amount,currency, all done.
func currencyJournal(t *testing.T, rows string) string {
	t.Helper()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", "order,amount,currency\n"+rows)
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{order}").Want(t, terminal.ExitOK)
	return file + ".oncehttp.db"
}
