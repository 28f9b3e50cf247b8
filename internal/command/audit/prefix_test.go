package audit_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAuditNamesAPrefix: where keys are on both sides but for a prefix on one, that is said, with what to do; and not where they are others.
func TestAuditNamesAPrefix(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	dir := t.TempDir()
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id,amount\na1,1\na2,2\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--quiet").Want(t, terminal.ExitOK)
	for _, c := range []struct {
		there, want string // %s stands for the id
	}{
		{"%s", `the keys here begin with "idemp:o:", and the export has them without: match by a field of the requests instead, --reference /FIELD`},
		{"o:%s", `the keys here begin with "idemp:", and the export has them without: `},
		{"shop:idemp:o:%s", `the export has the keys behind "shop:", and here they stand without: take that off, or `},
		{`"""idemp:o:%s"""`, `the export has the keys in quotes: take them off, or match by a field of the requests, --reference /FIELD`},
		{"x%s", ""},
	} {
		export := "key\n" + fmt.Sprintf(c.there, "a1") + "\n" + fmt.Sprintf(c.there, "a2") + "\n"
		name := commandtest.WriteFile(t, filepath.Join(dir, "export.csv"), export)
		got := commandtest.Run(t, "audit", "--journal", file+".oncehttp.db", "--against", name, "--match", "key", "--all-rows").Want(t, terminal.ExitFindings).Err
		if out := commandtest.Run(t, "audit", "--journal", file+".oncehttp.db", "--against", name, "--match", "key", "--all-rows").Out; c.there == "%s" &&
			(strings.Contains(out, "NEWKEY") || strings.Count(out, "send it under no other key: compare again by a field of the requests, --reference /FIELD") != 2) {
			t.Errorf("%s: stdout\n%s", c.there, out)
		}
		if c.want != "" && !strings.Contains(got, "\n"+c.want) || c.want == "" && strings.Contains(got, "keys") {
			t.Errorf("%s: stderr\n%s", c.there, got)
		}
	}
}
