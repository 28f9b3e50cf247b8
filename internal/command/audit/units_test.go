package audit_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// Where all amounts agree by other units than the given ones, audit names the flags; where one is different by any units, it does not.
func TestAuditNamesUnits(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", "order,amount,currency\n1,1.00,EUR\n2,2.50,EUR\n")
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{order}")...).Want(t, terminal.ExitOK)
	hint := "units: every compared amount agrees with cents there and major units here: if that is how they count, say --unit minor --our-unit major; else each is wrong by a hundred times or the like\n"
	for name, c := range map[string]struct {
		rows string
		args []string
		want bool
	}{
		"one unit":           {"1,100,EUR\n2,250,EUR\n", []string{"--unit", "minor"}, true},
		"no unit":            {"1,100,EUR\n2,250,EUR\n", nil, true},
		"cents with a point": {"1,100.00,EUR\n2,250.00,EUR\n", nil, false},
		"ours with a point":  {"1,0.01,EUR\n2,0.025,EUR\n", nil, false},
		"one is no cents":    {"1,100,EUR\n2,251,EUR\n", []string{"--unit", "minor"}, false},
	} {
		export := commandtest.WriteFile(t, "export.csv", "order,amount,currency\n"+c.rows)
		_, got := findings(t, terminal.ExitFindings, append(c.args, "--journal", file+".oncehttp.db", "--against", export, "--amount", "/amount", "--all-rows")...)
		if strings.Contains(got.Err, hint) != c.want || !c.want && strings.Contains(got.Err, "units:") {
			t.Errorf("%s: %s", name, got.Err)
		}
	}
	export := commandtest.WriteFile(t, "export.csv", "order,amount,currency\n1,100,EUR\n2,250,EUR\n")
	_, got := findings(t, terminal.ExitOK, "--unit", "minor", "--our-unit", "major", "--journal", file+".oncehttp.db", "--against", export, "--amount", "/amount", "--all-rows")
	if strings.Contains(got.Err, "units:") {
		t.Error(got.Err)
	}
	// Two rows of one operation are named with their amounts, where these differ.
	export = commandtest.WriteFile(t, "export.csv", "order,amount,currency\n1,1.00,EUR\n1,9.00,EUR\n2,2.50,EUR\n2,2.50,EUR\n")
	all, _ := findings(t, terminal.ExitFindings, "--journal", file+".oncehttp.db", "--against", export, "--amount", "/amount", "--all-rows")
	slices.SortFunc(all, func(a, b audit.Finding) int { return strings.Compare(a.Key, b.Key) }) // a batch begins its rows at once
	if len(all) != 2 || all[0].There != "1.00 EUR in "+export+" row 1 and 9.00 EUR in "+export+" row 2" || all[1].There != export+" row 3 and "+export+" row 4" {
		t.Errorf("found %+v", all)
	}
}
