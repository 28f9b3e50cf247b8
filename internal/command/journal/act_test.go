package journal_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// TestJournalRekey: what was settled as absent is begun under another key, which the next resume sends; what was not, is not.
func TestJournalRekey(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	before := m.Ledger().Snapshot().Effects
	rekey := func(args ...string) []string {
		return append(append([]string{"journal", "rekey"}, args...), "--journal", j)
	}
	commandtest.Run(t, rekey("idemp:o:a", "idemp:o:a:gen=2")...).Usage(t, "oncehttp: say why, with --reason")
	commandtest.Run(t, rekey("idemp:o:a", "--reason", "r")...).Want(t, terminal.ExitUsage).WantErr(t, "want KEY and NEWKEY")
	commandtest.Run(t, rekey("idemp:o:a", "idemp:o:a:gen=2", "--reason", "r")...).Want(t, terminal.ExitUsage).WantErr(t, "say KEY@SEEN")
	a := commandtest.SeenAs(t, j, "idemp:o:a")
	commandtest.Run(t, rekey(a, "idemp:o:a:gen=2", "--reason", "r")...).Want(t, terminal.ExitUsage).WantErr(t, "settle it as absent first")
	commandtest.Run(t, "journal", "settle", a, "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	for _, newKey := range []string{"idemp:o:a:gen=2", "o:a:gen=2"} {
		got := commandtest.Run(t, rekey(a, newKey, "--reason", "the bank has none")...).Want(t, terminal.ExitOK)
		if got.Out != "to be sent as idemp:o:a:gen=2: idemp:o:a\n" {
			t.Errorf("stdout %q", got.Out)
		}
	}
	commandtest.Run(t, rekey(commandtest.SeenAs(t, j, "idemp:o:a"), "idemp:o:a:gen=3", "--reason", "r")...).WantErr(t, `the earlier operation "idemp:o:a:gen=2" has not ended; go on with that one, or settle it`)
	if out := commandtest.Run(t, "journal", "show", "idemp:o:a:gen=2", "--journal", j).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "replaces  idemp:o:a\n") || !strings.Contains(out, "the bank has none") {
		t.Error(out)
	}
	commandtest.Run(t, "journal", "abandon", "idemp:o:b", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", j, "-H", "Authorization: Bearer hidden", "--origin", m.URL())...)
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
	m := commandtest.StartMock(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.DropAfter}}, Verify: func(req *http.Request, _ []byte) error {
		if strings.HasSuffix(req.URL.Path, "/cancel") {
			asked.Store(req.Header.Get("Authorization"))
		}
		return nil
	}})
	j := filepath.Join(t.TempDir(), "j.db")
	for key, path := range map[string]string{"k": "/v2/payments", "r": "/v2/refunds"} {
		body := `{"idempotency_key":"` + key + `"}`
		commandtest.Run(t, commandtest.Fast("send", "POST", m.URL()+path, "-d", body, "-H", "Authorization: Bearer hidden", "--profile", "square", "--journal", j, "--key", key, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	}
	abandon := func(args ...string) []string {
		return append([]string{"journal", "abandon", "--yes", "--journal", j}, args...)
	}
	commandtest.Run(t, abandon("k", "--undo")...).Want(t, terminal.ExitUsage).WantErr(t, "credentials that no journal keeps")
	commandtest.Run(t, abandon("k", "-H", "A: b")...).Want(t, terminal.ExitUsage).WantErr(t, "-H is for --undo")
	commandtest.Run(t, abandon("r", "--undo", "-H", "Authorization: Bearer hidden")...).Want(t, terminal.ExitUsage).WantErr(t, "does not say how to undo")
	for range 2 {
		commandtest.Run(t, abandon("k", "--undo", "-H", "Authorization: Bearer hidden", "--reason", "cancelled")...).Want(t, terminal.ExitOK)
	}
	if out := commandtest.Run(t, "journal", "show", "k", "--journal", j).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "abandoned") || !strings.Contains(out, "undo answered 200; cancelled") {
		t.Error(out)
	}
	if !m.Undone("k") || asked.Load() != "Bearer hidden" {
		t.Errorf("undone %t, asked as %v", m.Undone("k"), asked.Load())
	}
}

// TestJournalPinned: what was begun for one region and credential is not resumed for another; show says what it is pinned to.
func TestJournalPinned(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
	j := filepath.Join(t.TempDir(), "j.db")
	const hash = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	send := commandtest.Fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--journal", j, "--key", "k", "--max-attempts", "1", "--region", "eu")
	commandtest.Run(t, append(send, "--credential", "sk_live")...).Want(t, terminal.ExitUsage).WantErr(t, "no hash")
	commandtest.Run(t, append(send, "--credential", hash)...).Want(t, terminal.ExitUnknown)
	resume := commandtest.Fast("journal", "resume", "k", "--journal", j, "--credential", hash)
	if got := commandtest.Run(t, append(resume, "--region", "us")...).Want(t, terminal.ExitUnknown); !strings.Contains(got.Out, "begun for the region") {
		t.Errorf("stdout %q", got.Out)
	}
	if m.Ledger().Snapshot().Effects != 0 {
		t.Error("it was sent to another region")
	}
	if out := commandtest.Run(t, "journal", "show", "k", "--journal", j).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "region eu, credential "+hash) {
		t.Error(out)
	}
	time.Sleep(10 * time.Millisecond) // fast's waits are shorter: it is due
	commandtest.Run(t, append(resume, "--region", "eu")...).Want(t, terminal.ExitOK)
	if m.Ledger().Snapshot().Effects != 1 {
		t.Errorf("%d effects", m.Ledger().Snapshot().Effects)
	}
}

// TestActOnWhatHasMoved: what was sent since it was listed is left alone and printed with its new KEY@SEEN, also with --yes, and is
// no word about the others.
func TestActOnWhatHasMoved(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	send := func(key string) {
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "--key", key, "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	}
	send("a")
	send("b")
	old := commandtest.SeenAs(t, j, "a")
	list := old + "\n" + commandtest.SeenAs(t, j, "b") + "\n"
	send("a") // a worker
	for _, act := range [][]string{{"settle", "-", "--absent", "--yes"}, {"settle", "-", "--happened", "--yes"}, {"abandon", "-", "--yes"}} {
		before := commandtest.SeenAs(t, j, "a")
		got := commandtest.RunWith(t, list, append(append([]string{"journal"}, act...), "--journal", j)...)
		if !strings.Contains(got.Out, "left alone, @"+strings.TrimPrefix(old, "a@")+" is not how it stands, since it has moved or that is another's SEEN: "+before+"\n") {
			t.Errorf("%v: status %d, stdout %q, stderr %q", act, got.Status, got.Out, got.Err)
		}
		if strings.Contains(got.Out, "settled as absent: b\n") != (act[2] == "--absent") || got.Status != terminal.ExitUnknown && act[2] == "--absent" {
			t.Errorf("%v: status %d, stdout %q", act, got.Status, got.Out)
		}
	}
	commandtest.RunWith(t, "a\n", "journal", "settle", "-", "--happened", "--journal", j).Want(t, terminal.ExitUsage).WantErr(t, "say KEY@SEEN")
	commandtest.Run(t, "journal", "settle", "a", "--absent", "--yes", "--journal", j).Want(t, terminal.ExitUsage).WantErr(t, "say KEY@SEEN")
	commandtest.Run(t, "journal", "settle", strings.Split(list, "\n")[0], "--absent", "--yes", "--journal", j).Want(t, terminal.ExitUnknown)
	for _, format := range [][]string{{"list"}, {"stuck"}, {"list", "--format", "csv"}, {"show", "a"}} {
		if out := commandtest.Run(t, append(append([]string{"journal"}, format...), "--journal", j)...).Out; !strings.Contains(out, commandtest.SeenAs(t, j, "a")) {
			t.Errorf("%v does not show it:\n%s", format, out)
		}
	}
	commandtest.Run(t, "journal", "show", commandtest.SeenAs(t, j, "a"), "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "a"), "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
}

func TestJournalSettle(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	sends := m.Ledger().Snapshot().Sends
	commandtest.Run(t, "journal", "settle", "idemp:o:a", "--journal", j).Usage(t, "oncehttp: say one of --happened and --absent")
	got := commandtest.Run(t, "journal", "settle", "idemp:o:a", "--happened", "--journal", j).Want(t, terminal.ExitOK)
	if got.Out != "settled as happened: idemp:o:a\n" {
		t.Errorf("stdout %q", got.Out)
	}
	if got := commandtest.Run(t, "journal", "settle", "idemp:o:a", "--absent", "--journal", j).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "settled") {
		t.Errorf("stderr %q", got.Err)
	}
	commandtest.Run(t, "journal", "abandon", "idemp:o:b", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "abandon", "idemp:o:c", "--journal", j).Want(t, terminal.ExitUsage)
	commandtest.Run(t, "journal", "abandon", "nobody", "--journal", j).Usage(t, "oncehttp: journal "+j+`: no operation has the key "nobody"`)

	file := strings.TrimSuffix(j, ".oncehttp.db")
	again := commandtest.Run(t, "batch", file, "--url", m.URL()+"/payments?q=hidden", "--key", "o:{id}").Want(t, terminal.ExitUnknown)
	lines := again.Lines(t)
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
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Stripe-Should-Retry", "false")
		w.WriteHeader(http.StatusInternalServerError)
	})
	file := commandtest.WriteFile(t, "in.csv", "id\na\n")
	j := file + ".oncehttp.db"
	batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", "stripe")
	for range 2 {
		if l := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown).Only(t); l.State != "held" || l.Outcome != "unknown" {
			t.Errorf("%+v", l)
		}
	}
	if got := commandtest.Run(t, "journal", "list", "--journal", j); !strings.Contains(got.Out, "held (stored error)") {
		t.Errorf("stdout %s", got.Out)
	}
	if got := commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", j)...).Want(t, terminal.ExitUnknown); got.Out != "" || !strings.Contains(got.Err, "left: 0 pending, 1 held") {
		t.Errorf("stdout %q, stderr %q", got.Out, got.Err)
	}
	commandtest.Run(t, "journal", "settle", "idemp:o:a", "--happened", "--journal", j).Want(t, terminal.ExitOK)
	if l := commandtest.Run(t, batch...).Want(t, terminal.ExitOK).Only(t); l.State != "settled" || l.Outcome != "confirmed" {
		t.Errorf("%+v", l)
	}
	if n := s.Sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}

// settle and abandon take many keys, also from stdin, change nothing where one is
// not there, and saying the same again is no error.
func TestActOnManyKeys(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	settle := []string{"journal", "settle", "-", "--absent", "--journal", j}
	a, b := commandtest.SeenAs(t, j, "idemp:o:a"), commandtest.SeenAs(t, j, "idemp:o:b")
	if got := commandtest.RunWith(t, a+"\nnobody\n", append(settle, "--yes")...).Want(t, terminal.ExitUsage); got.Out != "" {
		t.Errorf("stdout %q", got.Out)
	}
	if got := commandtest.RunWith(t, "\n", settle...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "no key on stdin") {
		t.Errorf("stderr %q", got.Err)
	}
	got := commandtest.RunWith(t, a+"\n"+b+"\n", settle...).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "idemp:o:b: pending, POST ") || !strings.Contains(got.Err, "and 1 more like it; to go ahead all the same: --yes") {
		t.Errorf("stderr %q", got.Err)
	}
	for _, want := range []string{"settled as absent: idemp:o:a\nsettled as absent: idemp:o:b\n", "settled as absent already: idemp:o:a\nsettled as absent already: idemp:o:b\n"} {
		if got := commandtest.RunWith(t, a+"\n "+b+"\n"+a+"\n", append(settle, "--yes")...).Want(t, terminal.ExitOK); got.Out != want {
			t.Errorf("stdout %q, want %q", got.Out, want)
		}
	}
	// One that is confirmed cannot be abandoned; the others' state is said.
	mixed := commandtest.Run(t, "journal", "abandon", "idemp:o:a", "idemp:o:c", "--journal", j).Want(t, terminal.ExitRefused)
	if mixed.Out != "" || !strings.Contains(mixed.Err, "2 of 2 not changed") || !strings.Contains(mixed.Err, "confirmed") {
		t.Errorf("stdout %q, stderr %q", mixed.Out, mixed.Err)
	}
}

// A line on stdin that is too long, or cannot be read, does not end the keys in silence.
func TestActLongLine(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	for _, key := range []string{"a", "b"} {
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "--key", key, "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	}
	for _, args := range [][]string{{"settle", "-", "--happened"}, {"abandon", "-"}} {
		got := commandtest.RunWith(t, "a\n"+strings.Repeat("x", 70_000)+"\nb\n", append(append([]string{"journal"}, args...), "--journal", j)...)
		got.Usage(t, "oncehttp: stdin: line 2 is longer than 65536 bytes, which no key is; nothing was changed")
	}
	if got := commandtest.Run(t, "journal", "list", "--state", "pending", "--json", "--journal", j).Want(t, terminal.ExitOK); strings.Count(got.Out, "\n") != 2 {
		t.Errorf("left pending:\n%s", got.Out)
	}
}

// What stands in a reason cannot steer the terminal of whoever looks at it.
func TestShowReason(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "--key", "a", "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "abandon", "a", "--yes", "--reason", "a\nb \x1b[31mr\u00e9d\u202e \u009b1m", "--journal", j).Want(t, terminal.ExitOK)
	got := commandtest.Run(t, "journal", "show", "a", "--journal", j).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Out, `a b \x1b[31mréd\u202e \u009b1m`) || strings.ContainsAny(got.Out, "\x1b\u009b\u202e") {
		t.Errorf("%q", got.Out)
	}
}

// TestActOnAWrongSeen: a SEEN that the operation never had is not said to be a move of it, and the right one is named; nor is what is no SEEN
// said to be part of a key.
func TestActOnAWrongSeen(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "--key", "a", "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	now := commandtest.SeenAs(t, j, "a")
	for _, act := range []string{"settle", "unsettle"} {
		flags := map[string][]string{"settle": {"--happened"}, "unsettle": {"--reason", "why"}}[act]
		got := commandtest.Run(t, append([]string{"journal", act, "a@0123456789ab", "--journal", j}, flags...)...).Want(t, terminal.ExitUnknown)
		if want := "left alone, @0123456789ab is not how it stands, since it has moved or that is another's SEEN: " + now + "\n"; got.Out != want {
			t.Errorf("%s: stdout %q, want %q", act, got.Out, want)
		}
		for _, wrong := range []string{"a@123", "a@0123456789AB"} {
			got := commandtest.Run(t, append([]string{"journal", act, wrong, "--journal", j}, flags...)...).Want(t, terminal.ExitUsage)
			got.WantErr(t, "no SEEN, which is 12 digits of 0-9 and a-f; the operation is "+now)
		}
	}
}
