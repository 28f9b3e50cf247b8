package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
)

// Resume has no caller's credentials, and says so; with -H it finishes.
func TestJournalResume(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	args := fast("journal", "resume", "--journal", j)
	sends := m.Ledger().Snapshot().Sends
	without := run(t, args...).want(t, exitUnknown)
	for _, l := range without.lines(t) {
		if l.Outcome != "unknown" || !strings.Contains(l.why(), "Authorization") {
			t.Errorf("without -H: %+v", l)
		}
	}
	changed := run(t, append(args, "-H", "Content-Type: text/plain", "-H", "Authorization: Bearer hidden")...).want(t, exitUnknown)
	if !strings.Contains(changed.out, "on record with another value") || m.Ledger().Snapshot().Sends != sends {
		t.Errorf("stdout %s after %d sends", changed.out, m.Ledger().Snapshot().Sends-sends)
	}
	got := run(t, append(args, "-H", "Authorization: Bearer hidden")...).want(t, exitOK)
	lines := got.lines(t)
	if len(lines) != 2 || !strings.Contains(got.err, "left: 0 pending, 0 held") {
		t.Errorf("stdout %s, stderr %s", got.out, got.err)
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
	m := startMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	var leaked []string
	var down atomic.Bool
	down.Store(true)
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		leaked = append(leaked, r.Header.Get("Authorization"))
	})
	run(t, fast("send", "POST", other.url, "-d", "{}", "--key", "k", "--journal", j, "--max-attempts", "1")...).want(t, exitUnknown)
	down.Store(false)
	args := fast("journal", "resume", "--journal", j, "-H", "Authorization: Bearer hidden")
	if got := run(t, args...).want(t, exitUsage); !strings.Contains(got.err, "--origin") {
		t.Errorf("stderr %q", got.err)
	}
	if got := run(t, append(args, "--origin", "http://h:1")...).want(t, exitUsage); !strings.Contains(got.err, "leads there") {
		t.Errorf("stderr %q", got.err)
	}
	got := run(t, append(args, "--origin", m.URL())...).want(t, exitUnknown)
	if !strings.Contains(got.err, "2 done (201), 1 unknown") || !strings.Contains(got.err, "left: 1 pending, 0 held") || len(leaked) > 0 {
		t.Errorf("stderr %q, the other server saw %q", got.err, leaked)
	}
}

// resume KEY sends that one only; --dry-run sends nothing and says what would be.
func TestResumeSomeKeys(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	before := m.Ledger().Snapshot().Sends
	dry := run(t, "journal", "resume", "--dry-run", "--journal", j).want(t, exitOK)
	if !strings.Contains(dry.out, "fail: it needs Authorization (-H)") || strings.Contains(dry.out, "idemp:o:c") {
		t.Errorf("dry run: %s", dry.out)
	}
	dry = run(t, "journal", "resume", "idemp:o:b", "--dry-run", "--journal", j, "-H", "Authorization: Bearer hidden").want(t, exitOK)
	if rows := strings.Split(strings.TrimSpace(dry.out), "\n"); len(rows) != 2 || !strings.Contains(rows[1], "  send  ") {
		t.Errorf("dry run: %s", dry.out)
	}
	run(t, "journal", "resume", "nobody", "--journal", j).want(t, exitUsage)
	if n := m.Ledger().Snapshot().Sends; n != before {
		t.Errorf("%d sends by dry runs", n-before)
	}
	got := run(t, fast("journal", "resume", "idemp:o:b", "--journal", j, "-H", "Authorization: Bearer hidden")...)
	if l := got.only(t); l.Key != "idemp:o:b" || l.Result != resultDone {
		t.Errorf("%+v", l)
	}
	if n := m.Ledger().Snapshot().Sends; n != before+1 {
		t.Errorf("%d sends, want 1", n-before)
	}
}
