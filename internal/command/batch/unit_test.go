package batch_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestDryRunAsksForTheUnit: the dry run of a file for a named API says that amounts with decimals are sent as they are written, unless {column:minor} reads them.
func TestDryRunAsksForTheUnit(t *testing.T) {
	t.Parallel()
	const says = "amounts such as 12.50 are sent as they are written; if the API of --profile stripe counts in the smallest unit of the currency, {amount:minor:EUR} in --body writes them so"
	for name, c := range map[string]struct {
		amount string
		flags  []string
		want   bool
	}{
		"decimals":       {"12.50", []string{"--profile", "stripe"}, true},
		"whole":          {"1250", []string{"--profile", "stripe"}, false},
		"minor":          {"12.50", []string{"--profile", "stripe", "--body", `{"a":{amount:minor:EUR},"id":"{id}"}`}, false},
		"as text":        {"12.50", []string{"--profile", "stripe", "--body", `{"a":"{amount}","id":"{id}"}`}, true},
		"no API is said": {"12.50", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Refusing(t)
			file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id,amount\n1,7\n2,"+c.amount+"\n")
			got := commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--dry-run"}, c.flags...)...).Want(t, terminal.ExitOK)
			if strings.Contains(got.Err, says) != c.want || strings.Contains(got.Err, "amounts such as") != c.want {
				t.Errorf("it says %q", got.Err)
			}
		})
	}
}
