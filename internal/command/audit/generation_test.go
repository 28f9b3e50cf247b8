package audit_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// Several operations may have one reference: the generations of a key have. A row of one that is done contradicts none of the others, in
// whatever order the journal lists them, and settles none of them.
func TestAuditOfGenerations(t *testing.T) {
	t.Parallel()
	second := false
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case second:
			w.WriteHeader(http.StatusCreated)
		case strings.Contains(string(b), `"3"`):
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, "no such route", http.StatusNotFound)
		}
	})
	rows := "order,amount\n0,1.00\n1,1.00\n2,1.00\n3,1.00\n"
	file := commandtest.WriteFile(t, "in.csv", rows)
	args := []string{"batch", file, "--url", s.URL, "--workers", "1", "--max-attempts", "1", "--key"}
	commandtest.Run(t, commandtest.Fast(append(args, "o:{order}")...)...).Want(t, terminal.ExitUnknown)
	second = true // order 3 is sent under another key, which nobody should do
	again := commandtest.WriteFile(t, file, strings.Replace(rows, "0,1.00\n", "", 1))
	commandtest.Run(t, append(args, "a:{order}", "--journal", file+".oncehttp.db", "--new-journal")...).Want(t, terminal.ExitOK)
	export := commandtest.WriteFile(t, "export.csv", rows)
	all, _ := findings(t, terminal.ExitFindings, "--journal", again+".oncehttp.db", "--against", export, "--all-rows")
	want := []audit.Finding{
		{Finding: "settle", Key: "idemp:o:3", Reference: "3", Here: "unknown", There: export + " row 4", Why: "the row is that of another operation here"},
		{Finding: "conflict", Key: "idemp:o:0", Reference: "0", Here: "invalid", There: export + " row 1", Next: "do not try it anew (batch --generation): it may take effect twice; ask the API what came of it"},
	}
	for i := range want {
		if !slices.Contains(all, want[i]) {
			t.Errorf("found\n%+v, want among it\n%+v", all, want[i])
		}
	}
	if len(all) != len(want) {
		t.Errorf("found\n%+v, want\n%+v", all, want)
	}
}
