package journal_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// Resume has no caller's credentials, and says so; with -H it finishes.
func TestJournalResume(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	args := commandtest.Fast("journal", "resume", "--journal", j)
	sends := m.Ledger().Snapshot().Sends
	without := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	for _, l := range without.Lines(t) {
		if l.Outcome != "unknown" || !strings.Contains(l.Why(), "Authorization") {
			t.Errorf("without -H: %+v", l)
		}
	}
	changed := commandtest.Run(t, append(args, "-H", "Content-Type: text/plain", "-H", "Authorization: Bearer hidden")...).Want(t, terminal.ExitUnknown)
	if !strings.Contains(changed.Out, "on record with another value") || m.Ledger().Snapshot().Sends != sends {
		t.Errorf("stdout %s after %d sends", changed.Out, m.Ledger().Snapshot().Sends-sends)
	}
	got := commandtest.Run(t, append(args, "-H", "Authorization: Bearer hidden")...).Want(t, terminal.ExitOK)
	lines := got.Lines(t)
	if len(lines) != 2 || !strings.Contains(got.Err, "left: 0 pending, 0 held") {
		t.Errorf("stdout %s, stderr %s", got.Out, got.Err)
	}
	for _, l := range lines {
		if l.Outcome != "confirmed" || l.Status != 201 || len(l.Body) == 0 {
			t.Errorf("%+v", l)
		}
	}
	for key, c := range m.Ledger().Snapshot().Keys {
		if c.Effects != 1 {
			t.Errorf("%s: %d effects", key, c.Effects)
		}
	}
}

// One server's credentials are not shown to another.
func TestJournalResumeOrigins(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	var leaked []string
	var down atomic.Bool
	down.Store(true)
	other := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		leaked = append(leaked, r.Header.Get("Authorization"))
	})
	commandtest.Run(t, commandtest.Fast("send", "POST", other.URL, "-d", "{}", "--key", "k", "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	down.Store(false)
	args := commandtest.Fast("journal", "resume", "--journal", j, "-H", "Authorization: Bearer hidden")
	if got := commandtest.Run(t, args...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "--origin") {
		t.Errorf("stderr %q", got.Err)
	}
	if got := commandtest.Run(t, append(args, "--origin", "http://h:1")...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "leads there") {
		t.Errorf("stderr %q", got.Err)
	}
	got := commandtest.Run(t, append(args, "--origin", m.URL())...).Want(t, terminal.ExitUnknown)
	if !strings.Contains(got.Err, "2 done (201), 1 pending") || !strings.Contains(got.Err, "left: 1 pending, 0 held") || len(leaked) > 0 {
		t.Errorf("stderr %q, the other server saw %q", got.Err, leaked)
	}
}

// resume KEY sends that one only; --dry-run sends nothing and says what would be.
func TestResumeSomeKeys(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	before := m.Ledger().Snapshot().Sends
	dry := commandtest.Run(t, "journal", "resume", "--dry-run", "--journal", j).Want(t, terminal.ExitOK)
	if !strings.Contains(dry.Out, "fail: it needs Authorization (-H)") || strings.Contains(dry.Out, "idemp:o:c") {
		t.Errorf("dry run: %s", dry.Out)
	}
	dry = commandtest.Run(t, "journal", "resume", "idemp:o:b", "--dry-run", "--journal", j, "-H", "Authorization: Bearer hidden").Want(t, terminal.ExitOK)
	if rows := strings.Split(strings.TrimSpace(dry.Out), "\n"); len(rows) != 2 || !strings.Contains(rows[1], "  send  ") {
		t.Errorf("dry run: %s", dry.Out)
	}
	commandtest.Run(t, "journal", "resume", "nobody", "--journal", j).Want(t, terminal.ExitUsage)
	if n := m.Ledger().Snapshot().Sends; n != before {
		t.Errorf("%d sends by dry runs", n-before)
	}
	got := commandtest.Run(t, commandtest.Fast("journal", "resume", "idemp:o:b", "--journal", j, "-H", "Authorization: Bearer hidden")...)
	if l := got.Only(t); l.Key != "idemp:o:b" || l.Result != results.Done {
		t.Errorf("%+v", l)
	}
	if n := m.Ledger().Snapshot().Sends; n != before+1 {
		t.Errorf("%d sends, want 1", n-before)
	}
}

// TestResumeCountsItsOwnAttempts: the summary has the attempts of this run. Those on record are of earlier ones, too.
func TestResumeCountsItsOwnAttempts(t *testing.T) {
	t.Parallel()
	var well atomic.Bool
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !well.Load() {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
	})
	j := t.TempDir() + "/j.db"
	for _, key := range []string{"a", "b"} {
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", key, "--journal", j, "--max-attempts", "3")...).Want(t, terminal.ExitUnknown)
	}
	well.Store(true)
	got := commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", j)...).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, "2 rows: 2 done (201); 2 requests sent; left: 0 pending, 0 held\n") {
		t.Errorf("stderr %q", got.Err)
	}
	for _, l := range got.Lines(t) {
		if l.Attempts != 4 {
			t.Errorf("%s: %d attempts, want all of the operation's life", l.Key, l.Attempts)
		}
	}
}

// TestResumeOfNothing: where nothing is pending, --origin is no mistake, and stderr says that nothing is.
func TestResumeOfNothing(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	j := t.TempDir() + "/j.db"
	commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "a", "--journal", j).Want(t, terminal.ExitOK)
	for _, args := range [][]string{nil, {"-H", "Authorization: Bearer hidden"}, {"--dry-run"}} {
		got := commandtest.Run(t, append([]string{"journal", "resume", "--journal", j, "--origin", s.URL}, args...)...).Want(t, terminal.ExitOK)
		if said := strings.HasSuffix(got.Err, "nothing is pending, so nothing was sent to "+s.URL+"\n"); args == nil && !said || strings.Contains(got.Err, "lead to") {
			t.Errorf("%v: stderr %q", args, got.Err)
		}
	}
}
