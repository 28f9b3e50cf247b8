package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// TestJournalRekey: what was settled as absent is begun under another key, which the next resume sends; what was not, is not.
func TestJournalRekey(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	before := m.Ledger().Snapshot().Effects
	rekey := func(args ...string) []string {
		return append(append([]string{"journal", "rekey"}, args...), "--journal", j)
	}
	run(t, rekey("idemp:o:a", "idemp:o:a:gen=2")...).usage(t, "oncehttp: say why, with --reason")
	run(t, rekey("idemp:o:a", "--reason", "r")...).want(t, exitUsage).wantErr(t, "want KEY and NEWKEY")
	run(t, rekey("idemp:o:a", "idemp:o:a:gen=2", "--reason", "r")...).want(t, exitUsage).wantErr(t, "say KEY@SEEN")
	a := seenAs(t, j, "idemp:o:a")
	run(t, rekey(a, "idemp:o:a:gen=2", "--reason", "r")...).want(t, exitUsage).wantErr(t, "settle it as absent first")
	run(t, "journal", "settle", a, "--absent", "--yes", "--journal", j).want(t, exitOK)
	for range 2 {
		got := run(t, rekey(a, "idemp:o:a:gen=2", "--reason", "the bank has none")...).want(t, exitOK)
		if got.out != "to be sent as idemp:o:a:gen=2: idemp:o:a\n" {
			t.Errorf("stdout %q", got.out)
		}
	}
	run(t, rekey(seenAs(t, j, "idemp:o:a"), "idemp:o:a:gen=3", "--reason", "r")...).wantErr(t, `under the key "idemp:o:a:gen=2" already`)
	if out := run(t, "journal", "show", "idemp:o:a:gen=2", "--journal", j).want(t, exitOK).out; !strings.Contains(out, "replaces  idemp:o:a\n") || !strings.Contains(out, "the bank has none") {
		t.Error(out)
	}
	run(t, "journal", "abandon", "idemp:o:b", "--yes", "--journal", j).want(t, exitOK)
	run(t, fast("journal", "resume", "--journal", j, "-H", "Authorization: Bearer hidden", "--origin", m.URL())...)
	if n := m.Ledger().Effects("idemp:o:a:gen=2"); n != 1 || m.Ledger().Snapshot().Effects != before+1 {
		t.Errorf("%d effects under the new key, %d before, %d now", n, before, m.Ledger().Snapshot().Effects)
	}
}

// TestJournalUndo: abandon --undo asks the API with the headers that are given, records its answer, and is no error when
// it is said again; where the profile does not say how, nothing changes.
func TestJournalUndo(t *testing.T) {
	t.Parallel()
	p, _ := profile.ByName("square")
	var asked atomic.Value
	m := startMock(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.DropAfter}}, Verify: func(req *http.Request, _ []byte) error {
		if strings.HasSuffix(req.URL.Path, "/cancel") {
			asked.Store(req.Header.Get("Authorization"))
		}
		return nil
	}})
	j := filepath.Join(t.TempDir(), "j.db")
	for key, path := range map[string]string{"k": "/v2/payments", "r": "/v2/refunds"} {
		body := `{"idempotency_key":"` + key + `"}`
		run(t, fast("send", "POST", m.URL()+path, "-d", body, "-H", "Authorization: Bearer hidden", "--profile", "square", "--journal", j, "--key", key, "--max-attempts", "1")...).want(t, exitUnknown)
	}
	abandon := func(args ...string) []string { return append([]string{"journal", "abandon", "--journal", j}, args...) }
	run(t, abandon("k", "--undo")...).want(t, exitUsage).wantErr(t, "credentials that no journal keeps")
	run(t, abandon("k", "-H", "A: b")...).want(t, exitUsage).wantErr(t, "-H is for --undo")
	run(t, abandon("r", "--undo", "-H", "Authorization: Bearer hidden")...).want(t, exitUsage).wantErr(t, "does not say how to undo")
	for range 2 {
		run(t, abandon("k", "--undo", "-H", "Authorization: Bearer hidden", "--reason", "cancelled")...).want(t, exitOK)
	}
	if out := run(t, "journal", "show", "k", "--journal", j).want(t, exitOK).out; !strings.Contains(out, "abandoned") || !strings.Contains(out, "undo answered 200; cancelled") {
		t.Error(out)
	}
	if !m.Undone("k") || asked.Load() != "Bearer hidden" {
		t.Errorf("undone %t, asked as %v", m.Undone("k"), asked.Load())
	}
}

// TestJournalPinned: what was begun for one region and credential is not resumed for another; show says what it is pinned to.
func TestJournalPinned(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
	j := filepath.Join(t.TempDir(), "j.db")
	const hash = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	send := fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--journal", j, "--key", "k", "--max-attempts", "1", "--region", "eu")
	run(t, append(send, "--credential", "sk_live")...).want(t, exitUsage).wantErr(t, "no hash")
	run(t, append(send, "--credential", hash)...).want(t, exitUnknown)
	resume := fast("journal", "resume", "k", "--journal", j, "--credential", hash)
	if got := run(t, append(resume, "--region", "us")...).want(t, exitUnknown); !strings.Contains(got.out, "begun for the region") {
		t.Errorf("stdout %q", got.out)
	}
	if m.Ledger().Snapshot().Effects != 0 {
		t.Error("it was sent to another region")
	}
	if out := run(t, "journal", "show", "k", "--journal", j).want(t, exitOK).out; !strings.Contains(out, "region eu, credential "+hash) {
		t.Error(out)
	}
	time.Sleep(10 * time.Millisecond) // fast's waits are shorter: it is due
	run(t, append(resume, "--region", "eu")...).want(t, exitOK)
	if m.Ledger().Snapshot().Effects != 1 {
		t.Errorf("%d effects", m.Ledger().Snapshot().Effects)
	}
}

// seenAs is KEY@SEEN of an operation, as a listing shows it.
func seenAs(t *testing.T, journal, key string, flags ...string) string {
	t.Helper()
	var v recordView
	if err := json.Unmarshal([]byte(run(t, append([]string{"journal", "list", key, "--json", "--journal", journal}, flags...)...).want(t, exitOK).out), &v); err != nil || v.Seen == "" {
		t.Fatalf("%s is listed as %q: %v", key, v.Seen, err)
	}
	return v.Seen
}

// TestActOnWhatHasMoved: what was sent since it was listed is left alone and printed with its new KEY@SEEN, also with --yes, and is
// no word about the others.
func TestActOnWhatHasMoved(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	send := func(key string) {
		run(t, fast("send", "POST", s.url, "--key", key, "--journal", j, "--max-attempts", "1")...).want(t, exitUnknown)
	}
	send("a")
	send("b")
	list := seenAs(t, j, "a") + "\n" + seenAs(t, j, "b") + "\n"
	send("a") // a worker
	for _, act := range [][]string{{"settle", "-", "--absent", "--yes"}, {"settle", "-", "--happened", "--yes"}, {"abandon", "-", "--yes"}} {
		before := seenAs(t, j, "a")
		got := runWith(t, list, append(append([]string{"journal"}, act...), "--journal", j)...)
		if !strings.Contains(got.out, "left alone, it has moved since it was seen: "+before+"\n") {
			t.Errorf("%v: status %d, stdout %q, stderr %q", act, got.status, got.out, got.err)
		}
		if strings.Contains(got.out, "settled as absent: b\n") != (act[2] == "--absent") || got.status != exitUnknown && act[2] == "--absent" {
			t.Errorf("%v: status %d, stdout %q", act, got.status, got.out)
		}
	}
	runWith(t, "a\n", "journal", "settle", "-", "--happened", "--journal", j).want(t, exitUsage).wantErr(t, "say KEY@SEEN")
	run(t, "journal", "settle", "a", "--absent", "--yes", "--journal", j).want(t, exitUsage).wantErr(t, "say KEY@SEEN")
	run(t, "journal", "settle", strings.Split(list, "\n")[0], "--absent", "--yes", "--journal", j).want(t, exitUnknown)
	for _, format := range [][]string{{"list"}, {"stuck"}, {"list", "--format", "csv"}, {"show", "a"}} {
		if out := run(t, append(append([]string{"journal"}, format...), "--journal", j)...).out; !strings.Contains(out, seenAs(t, j, "a")) {
			t.Errorf("%v does not show it:\n%s", format, out)
		}
	}
	run(t, "journal", "show", seenAs(t, j, "a"), "--journal", j).want(t, exitOK)
	run(t, "journal", "settle", seenAs(t, j, "a"), "--absent", "--yes", "--journal", j).want(t, exitOK)
}

func TestJournalSettle(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	sends := m.Ledger().Snapshot().Sends
	run(t, "journal", "settle", "idemp:o:a", "--journal", j).usage(t, "oncehttp: say one of --happened and --absent")
	got := run(t, "journal", "settle", "idemp:o:a", "--happened", "--journal", j).want(t, exitOK)
	if got.out != "settled as happened: idemp:o:a\n" {
		t.Errorf("stdout %q", got.out)
	}
	if got := run(t, "journal", "settle", "idemp:o:a", "--absent", "--journal", j).want(t, exitUsage); !strings.Contains(got.err, "settled") {
		t.Errorf("stderr %q", got.err)
	}
	run(t, "journal", "abandon", "idemp:o:b", "--journal", j).want(t, exitOK)
	run(t, "journal", "abandon", "idemp:o:c", "--journal", j).want(t, exitUsage)
	run(t, "journal", "abandon", "nobody", "--journal", j).usage(t, "oncehttp: journal "+j+`: no operation has the key "nobody"`)

	file := strings.TrimSuffix(j, ".oncehttp.db")
	again := run(t, "batch", file, "--url", m.URL()+"/payments?q=hidden", "--key", "o:{id}").want(t, exitUnknown)
	lines := again.lines(t)
	if l := lines[0]; l.State != "settled" || l.Outcome != "confirmed" || l.Error != nil {
		t.Errorf("settled: %+v", l)
	}
	if l := lines[1]; l.State != "abandoned" || l.Outcome != "unknown" {
		t.Errorf("abandoned: %+v", l)
	}
	if n := m.Ledger().Snapshot().Sends; n != sends {
		t.Errorf("%d sends after all was settled", n-sends)
	}
}

// A server that keeps its 500 holds the row; once a person has looked and
// settled it, the batch is all well.
func TestHeldThenSettled(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Stripe-Should-Retry", "false")
		w.WriteHeader(http.StatusInternalServerError)
	})
	file := writeFile(t, "in.csv", "id\na\n")
	j := file + ".oncehttp.db"
	batch := fast("batch", file, "--url", s.url, "--key", "o:{id}", "--profile", "stripe")
	for range 2 {
		if l := run(t, batch...).want(t, exitUnknown).only(t); l.State != "held" || l.Outcome != "unknown" {
			t.Errorf("%+v", l)
		}
	}
	if got := run(t, "journal", "list", "--journal", j); !strings.Contains(got.out, "held (stored error)") {
		t.Errorf("stdout %s", got.out)
	}
	if got := run(t, fast("journal", "resume", "--journal", j)...).want(t, exitUnknown); got.out != "" || !strings.Contains(got.err, "left: 0 pending, 1 held") {
		t.Errorf("stdout %q, stderr %q", got.out, got.err)
	}
	run(t, "journal", "settle", "idemp:o:a", "--happened", "--journal", j).want(t, exitOK)
	if l := run(t, batch...).want(t, exitOK).only(t); l.State != "settled" || l.Outcome != "confirmed" {
		t.Errorf("%+v", l)
	}
	if n := s.sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}

// settle and abandon take many keys, also from stdin, change nothing where one is
// not there, and saying the same again is no error.
func TestActOnManyKeys(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	settle := []string{"journal", "settle", "-", "--absent", "--journal", j}
	a, b := seenAs(t, j, "idemp:o:a"), seenAs(t, j, "idemp:o:b")
	if got := runWith(t, a+"\nnobody\n", append(settle, "--yes")...).want(t, exitUsage); got.out != "" {
		t.Errorf("stdout %q", got.out)
	}
	if got := runWith(t, "\n", settle...).want(t, exitUsage); !strings.Contains(got.err, "no key on stdin") {
		t.Errorf("stderr %q", got.err)
	}
	got := runWith(t, a+"\n"+b+"\n", settle...).want(t, exitUsage)
	if !strings.Contains(got.err, "idemp:o:b: pending, POST ") || !strings.Contains(got.err, "and 1 more like it; to go ahead all the same: --yes") {
		t.Errorf("stderr %q", got.err)
	}
	for _, want := range []string{"settled as absent: idemp:o:a\nsettled as absent: idemp:o:b\n", "settled as absent already: idemp:o:a\nsettled as absent already: idemp:o:b\n"} {
		if got := runWith(t, a+"\n "+b+"\n", append(settle, "--yes")...).want(t, exitOK); got.out != want {
			t.Errorf("stdout %q, want %q", got.out, want)
		}
	}
	// One that is confirmed cannot be abandoned; the others' state is said.
	mixed := run(t, "journal", "abandon", "idemp:o:a", "idemp:o:c", "--journal", j).want(t, exitRefused)
	if mixed.out != "" || !strings.Contains(mixed.err, "2 of 2 not changed") || !strings.Contains(mixed.err, "confirmed") {
		t.Errorf("stdout %q, stderr %q", mixed.out, mixed.err)
	}
}

// A line on stdin that is too long, or cannot be read, does not end the keys in silence.
func TestActLongLine(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	for _, key := range []string{"a", "b"} {
		run(t, fast("send", "POST", s.url, "--key", key, "--journal", j, "--max-attempts", "1")...).want(t, exitUnknown)
	}
	for _, args := range [][]string{{"settle", "-", "--happened"}, {"abandon", "-"}} {
		got := runWith(t, "a\n"+strings.Repeat("x", 70_000)+"\nb\n", append(append([]string{"journal"}, args...), "--journal", j)...)
		got.usage(t, "oncehttp: stdin: line 2 is longer than 65536 bytes, which no key is; nothing was changed")
	}
	if got := run(t, "journal", "list", "--state", "pending", "--json", "--journal", j).want(t, exitOK); strings.Count(got.out, "\n") != 2 {
		t.Errorf("left pending:\n%s", got.out)
	}
}

// What stands in a reason cannot steer the terminal of whoever looks at it.
func TestShowReason(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	run(t, fast("send", "POST", s.url, "--key", "a", "--journal", j, "--max-attempts", "1")...).want(t, exitUnknown)
	run(t, "journal", "abandon", "a", "--reason", "a\nb \x1b[31mr\u00e9d\u202e \u009b1m", "--journal", j).want(t, exitOK)
	got := run(t, "journal", "show", "a", "--journal", j).want(t, exitOK)
	if !strings.Contains(got.out, `a b \x1b[31mréd\u202e \u009b1m`) || strings.ContainsAny(got.out, "\x1b\u009b\u202e") {
		t.Errorf("%q", got.out)
	}
}
