package journal_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// restoredNow says that the journal was restored from a backup of now.
func restoredNow(t *testing.T, journal string) {
	t.Helper()
	commandtest.Run(t, "journal", "restored", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano)).Want(t, terminal.ExitOK)
}

// TestReleaseOrigin: a person who has audited one server releases the operations of that server alone. What leads to another server
// stays held, also under the next resume.
func TestReleaseOrigin(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, testReleaseOrigin)
	testReleaseOrigin(t, commandtest.JournalIn(t))
}

func testReleaseOrigin(t *testing.T, journal string) {
	a, b := commandtest.StartMock(t, mockserver.Config{}), commandtest.StartMock(t, mockserver.Config{})
	commandtest.EnqueueOne(t, journal, a.URL()+"/payments", "idemp:o:a", `{}`)
	commandtest.EnqueueOne(t, journal, a.URL()+"/payments", "idemp:o:a2", `{}`)
	commandtest.EnqueueOne(t, journal, b.URL()+"/payments", "idemp:o:b", `{}`)
	restoredNow(t, journal)
	run := func(status int, args ...string) commandtest.Ran {
		t.Helper()
		return commandtest.Run(t, append([]string{"journal", "resume", "--journal", journal}, args...)...).Want(t, status)
	}
	left := "still held as restored: 1 operation: this resume does not send to " + b.URL() + "\n"
	dry := run(terminal.ExitOK, "--restored", "--origin", a.URL(), "--dry-run")
	if strings.Count(dry.Out, "  send  ") != 2 || !strings.Contains(dry.Out, "idemp:o:b   leave it held: this resume does not send to "+b.URL()+"  held (restored)") || !strings.Contains(dry.Err, left) {
		t.Errorf("dry run\n%s%s", dry.Out, dry.Err)
	}
	if dry := run(terminal.ExitOK, "--restored", "--origin", a.URL(), "--dry-run", "idemp:o:a2"); strings.Count(dry.Out, "\n") != 2 || !strings.Contains(dry.Out, "idemp:o:a2  send") || strings.Contains(dry.Err, "still held") {
		t.Errorf("dry run of a2\n%s%s", dry.Out, dry.Err)
	}
	held := func(want string) {
		t.Helper()
		list := commandtest.Run(t, "journal", "list", "--state", "held", "--journal", journal, "--format", "csv", "--columns", "state,key").Want(t, terminal.ExitOK)
		var keys []string
		for _, line := range strings.Split(strings.TrimSpace(list.Out), "\n")[1:] {
			key, _, _ := strings.Cut(strings.TrimPrefix(line, "held (restored),idemp:o:"), "@")
			keys = append(keys, key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("held as restored are %s, want %s\n%s", got, want, list.Out)
		}
	}
	run(terminal.ExitOK, "--restored", "--origin", a.URL(), "idemp:o:a2")
	held("a b")
	got := run(terminal.ExitUnknown, "--restored", "--origin", a.URL())
	if !strings.Contains(got.Err, left) || !strings.Contains(got.Err, "left: 0 pending, 1 held") {
		t.Errorf("stderr %s", got.Err)
	}
	held("b")
	run(terminal.ExitUnknown)
	if sends := b.Ledger().Snapshot().Sends; sends != 0 {
		t.Errorf("%d sends to the server that nobody has audited", sends)
	}
	run(terminal.ExitOK, "--restored")
	for key, m := range map[string]*mockserver.Server{"a": a, "a2": a, "b": b} {
		if n := m.Ledger().Effects("idemp:o:" + key); n != 1 {
			t.Errorf("%s: %d effects, want 1", key, n)
		}
	}
}

// TestReleaseGate: what the client of a resume lacks something for stays held as restored, and stderr and --dry-run say for what.
func TestReleaseGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*persist.Record)
		said   string
		flags  []string // with them nothing is lacking
	}{
		"region": {func(rec *persist.Record) { rec.Region = "eu" }, `begun for the region "eu"`, []string{"--region", "eu"}},
		"credential": {func(rec *persist.Record) { rec.Credential = "sha256:" + strings.Repeat("ab", 32) }, "begun with another credential",
			[]string{"--credential", "sha256:" + strings.Repeat("ab", 32)}},
		"authorization": {func(rec *persist.Record) { rec.Omitted = []string{"Authorization"} }, "it needs Authorization (-H)", []string{"-H", "Authorization: Bearer x"}},
		"profile":       {func(rec *persist.Record) { rec.Profile, rec.ProfileVersion = "own", "3" }, `begun under profile "own" version "3"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
			journal := filepath.Join(t.TempDir(), "j.db")
			begin(t, journal, s.URL+"/payments", time.Minute, c.change)
			restoredNow(t, journal)
			resume := []string{"journal", "resume", "--restored", "--journal", journal}
			said := "still held as restored: 1 operation: " + c.said + "\n"
			if dry := commandtest.Run(t, append(resume, "--dry-run")...).Want(t, terminal.ExitOK); !strings.Contains(dry.Out, "leave it held: "+c.said+"  held (restored)") || !strings.Contains(dry.Err, said) {
				t.Errorf("dry run\n%s%s", dry.Out, dry.Err)
			}
			if got := commandtest.Run(t, resume...).Want(t, terminal.ExitUnknown); got.Out != "" || !strings.Contains(got.Err, said) {
				t.Errorf("stdout %q, stderr %s", got.Out, got.Err)
			}
			if out := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "held (restored)") {
				t.Errorf("list\n%s", out)
			}
			if c.flags == nil {
				return
			}
			if got := commandtest.Run(t, append(resume, c.flags...)...).Want(t, terminal.ExitOK); s.Sends.Load() != 1 || strings.Contains(got.Err, "still held") {
				t.Errorf("%d sends; stderr %s", s.Sends.Load(), got.Err)
			}
		})
	}
}
