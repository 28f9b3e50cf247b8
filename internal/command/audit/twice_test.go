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

// TestAuditOfDeclinedTwice: where nothing of a reference is done here and several rows of it are there, they are said to be twice, once, and each of its
// operations names them all.
func TestAuditOfDeclinedTwice(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = io.WriteString(w, `{"code":"declined"}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "order,amount\nC-1,1.00\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "d:{order}"}
	commandtest.Run(t, args...).Want(t, terminal.ExitRefused)
	commandtest.Run(t, append(args, "--generation", "2")...).Want(t, terminal.ExitRefused)
	find := func(rows string, args ...string) []audit.Finding {
		export := commandtest.WriteFile(t, "export.csv", "order,amount,kind\n"+rows)
		all, _ := findings(t, terminal.ExitFindings, append(args, "--journal", file+".oncehttp.db", "--against", export)...)
		for i := range all {
			if next := all[i].Next; (next != "") != (all[i].Finding != "foreign") {
				t.Errorf("%s: next %q", all[i].Finding, next)
			}
			all[i].Next, all[i].There = "", strings.ReplaceAll(all[i].There, export, "E")
		}
		return all
	}
	finding := func(kind, key, there string) audit.Finding {
		return audit.Finding{Finding: kind, Key: key, Reference: "C-1", Here: "declined", There: there}
	}
	const first, second = "idemp:d:C-1", "idemp:d:C-1:gen=2"
	for name, c := range map[string]struct {
		rows string
		args []string
		want []audit.Finding
	}{
		"two rows": {"C-1,1.00,p\nC-2,1.00,p\nC-1,1.00,p\n", nil, []audit.Finding{
			finding("conflict", first, "E row 1 and E row 3"), finding("twice", first, "E row 1 and E row 3"), finding("conflict", second, "E row 1 and E row 3"),
			{Finding: "foreign", Reference: "C-2", There: "E row 2"},
		}},
		"three": {"C-1,1.00,p\nC-1,2.00,p\nC-1,1.00,p\n", []string{"--amount", "/amount"}, []audit.Finding{
			finding("conflict", first, "1.00 in E row 1, 2.00 in E row 2 and 1.00 in E row 3"), finding("twice", first, "1.00 in E row 1, 2.00 in E row 2 and 1.00 in E row 3"),
			finding("conflict", second, "1.00 in E row 1, 2.00 in E row 2 and 1.00 in E row 3"),
		}},
		"of two types": {"C-1,1.00,p\nC-1,1.00,r\nC-1,1.00,r\n", []string{"--type", "kind"}, []audit.Finding{
			finding("conflict", first, "E row 2 and E row 3"), finding("twice", first, "E row 2 and E row 3"), finding("conflict", second, "E row 2 and E row 3"),
		}},
		"one of each type": {"C-1,1.00,p\nC-1,1.00,r\n", []string{"--type", "kind"}, []audit.Finding{finding("conflict", first, "E row 1"), finding("conflict", second, "E row 1")}},
	} {
		if got := find(c.rows, c.args...); !slices.Equal(got, c.want) {
			t.Errorf("%s: found\n%+v, want\n%+v", name, got, c.want)
		}
	}
	if got := find(strings.Repeat("C-1,1.00,p\n", 12)); !strings.HasSuffix(got[0].There, ", E row 10 and 2 more") {
		t.Errorf("twelve rows: %+v", got)
	}
}
