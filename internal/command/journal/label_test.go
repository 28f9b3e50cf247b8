package journal_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestLabelOfServers: the label of a journal on a server has the server and the database, and neither a user nor what is of the connection alone.
func TestLabelOfServers(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		u, err := url.Parse(journal)
		if err != nil {
			t.Fatal(err)
		}
		want := u.Host + u.Path
		if schema := u.Query().Get("schema"); schema != "" {
			want += "?schema=" + schema
		}
		if u.Scheme == "postgres" {
			journal += "&sslmode=disable"
		}
		prom := filepath.Join(t.TempDir(), "x.prom")
		commandtest.Run(t, "journal", "stats", "--journal", journal, "--prometheus", prom).Want(t, terminal.ExitOK)
		text, err := os.ReadFile(prom)
		if err != nil || !strings.Contains(string(text), `oncehttp_journal_rejected{journal="`+want+`"} 0`) || strings.Contains(string(text), "@") {
			t.Errorf("%v, want %s in\n%s", err, want, text)
		}
	})
}
