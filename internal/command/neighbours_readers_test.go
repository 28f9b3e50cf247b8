package command_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// A role that may only read sees what others see also of journals that are empty, sealed or of several accounts, by each filter and
// format; and whatever it is told to write ends with a line and changes nothing.
func TestNeighbourReaders(t *testing.T) {
	t.Parallel()
	keys := commandtest.WriteFile(t, "seal.keys", "2026-11:"+strings.Repeat("A", 43)+"=\n")
	if _, err := seal.ReadFile(keys); err != nil {
		t.Fatal(err)
	}
	for i, c := range testrun.Some([]struct {
		name string
		fill func(t *testing.T, journal, target string)
		args []string // of each view
	}{
		{"empty", func(*testing.T, string, string) {}, nil},
		{"several accounts", func(t *testing.T, journal, target string) {
			for _, account := range []string{"a", "b"} {
				commandtest.Run(t, "send", "POST", target, "-d", "{}", "--key", "k", "--account", account, "--journal", journal).Want(t, terminal.ExitOK)
			}
		}, nil},
		{"one account", func(t *testing.T, journal, target string) {
			for _, account := range []string{"a", "b"} {
				commandtest.Run(t, "send", "POST", target, "-d", "{}", "--key", "k", "--account", account, "--journal", journal).Want(t, terminal.ExitOK)
			}
		}, []string{"--account", "a"}},
		{"sealed", func(t *testing.T, journal, target string) {
			commandtest.Run(t, "send", "POST", target, "-d", "{}", "--key", "k", "--seal-key", "@"+keys, "--journal", journal).Want(t, terminal.ExitOK)
		}, []string{"--seal-key", "@" + keys}},
		{"held and restored", func(t *testing.T, journal, _ string) {
			commandtest.EnqueueOne(t, journal, "http://127.0.0.1:1/", "k", "{}")
			restoredNow(t, journal).Want(t, terminal.ExitOK)
		}, nil},
	}, 3) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inTurn(t, i, func(t *testing.T, journal string) {
				s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
				c.fill(t, journal, s.URL)
				for role, as := range readersOf(t, journal) {
					seen := map[string]commandtest.Ran{}
					views := viewsMore(t)
					for view, args := range views {
						seen[view] = commandtest.Run(t, append(append(args, c.args...), "--journal", as)...)
					}
					for view, args := range views {
						if got, want := seen[view], commandtest.Run(t, append(append(args, c.args...), "--journal", journal)...); !commandtest.SameView(view, got, want) {
							t.Errorf("%s: %s ends with %d: %s%s\nand its owner's with %d: %s%s", role, view, got.Status, got.Err, got.Out, want.Status, want.Err, want.Out)
						}
					}
					before := commandtest.Run(t, "journal", "list", "--journal", journal, "--format", "json")
					for _, args := range [][]string{
						{"send", "POST", s.URL, "-d", "{}", "--key", "new"}, {"work", "--origin", "http://127.0.0.1:*"}, {"journal", "resume"}, {"journal", "abandon", "k", "--yes"}, {"journal", "assign", "--all", "--account", "z"},
						{"journal", "restored", "--taken", "2026-01-31T02:00:00Z"}, {"journal", "prune", "--older", "1h", "--yes"},
					} {
						sends := s.Sends.Load()
						got := commandtest.Run(t, append(append(args, c.args...), "--journal", as)...)
						if got.Status == terminal.ExitOK && (strings.Contains(got.Out, " 0 operations") || strings.Contains(got.Err, " 0 rows")) || c.name == "empty" && args[0] == "journal" {
							// there was nothing to write
							continue
						}
						if got.Status == terminal.ExitOK || s.Sends.Load() != sends {
							t.Errorf("%s: %v ends with %d: %q%q", role, args, got.Status, got.Out, got.Err)
						}
					}
					if now := commandtest.Run(t, "journal", "list", "--journal", journal, "--format", "json"); now.Out != before.Out {
						t.Errorf("%s: it has changed\n%s\ninto\n%s", role, before.Out, now.Out)
					}
				}
			})
		})
	}
}

// readersOf is readers, also of Redis.
func readersOf(t *testing.T, journal string) map[string]string {
	t.Helper()
	if !strings.HasPrefix(journal, "redis") {
		return commandtest.Readers(t, journal)
	}
	server := &commandtest.RedisServer{Address: strings.SplitN(strings.TrimPrefix(journal, "redis://"), "/", 2)[0]}
	as, set := redisUser(t, server)
	set("reset on >secret %R~{oncehttp* +@read +@connection +info")
	return map[string]string{"a user who may not write": as}
}

// viewsMore are views of other filters and formats.
func viewsMore(t *testing.T) map[string][]string {
	t.Helper()
	export := commandtest.WriteFile(t, "export.csv", "key\nk\n")
	return map[string][]string{
		"list": {"journal", "list"}, "list of a key": {"journal", "list", "k"}, "list, pending": {"journal", "list", "--state", "pending"}, "list, CSV": {"journal", "list", "--format", "csv"},
		"list, no such key": {"journal", "list", "none:*"}, "show": {"journal", "show", "k"}, "show, none": {"journal", "show", "none"}, "stuck": {"journal", "stuck", "--format", "json"},
		"stats": {"journal", "stats"}, "verify": {"journal", "verify"}, "export": {"journal", "export"}, "audit": {"audit", "--against", export, "--match", "key"},
		"report": {"journal", "report", "--out", commandtest.WriteFile(t, "report.html", "")}, "resume": {"journal", "resume", "--dry-run"},
	}
}
