package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAuditOfEdgesAlone: where nothing was compared, and all that is missing lies near --since or --until, that is no agreement.
func TestAuditOfEdgesAlone(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 2)
	since := time.Now().Add(-30 * time.Minute).UTC().Format(time.RFC3339)
	args := []string{"--journal", j, "--time", "at", "--since", since, "--against"}
	none := commandtest.WriteFile(t, "none.csv", "order,at\n")
	all, got := findings(t, terminal.ExitFindings, append(args, none)...)
	want := "nothing was compared: no operation has a row, and all 2 that are missing or foreign are within --edge 1h0m0s of --since or --until; say other times, or a smaller --edge\n"
	if len(all) != 2 || all[0].Finding != "edge" || !strings.HasSuffix(got.Err, want) {
		t.Errorf("found %+v; stderr %q, want at its end %q", all, got.Err, want)
	}
	some := commandtest.WriteFile(t, "some.csv", "order,at\n1,"+time.Now().UTC().Format(time.RFC3339)+"\n")
	if _, got := findings(t, terminal.ExitOK, append(args, some)...); strings.Contains(got.Err, "nothing was compared") {
		t.Errorf("with a row: stderr %q", got.Err)
	}
	if _, got := findings(t, terminal.ExitFindings, append(args, none, "--edge", "1m")...); !strings.Contains(got.Err, "2 missing") || strings.Contains(got.Err, "nothing was compared") {
		t.Errorf("with a smaller edge: stderr %q", got.Err)
	}
}
