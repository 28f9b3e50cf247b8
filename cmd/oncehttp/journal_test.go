package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// pendingJournal is a journal in which the rows a and b are of unknown outcome
// and c is confirmed, begun with a credential.
func pendingJournal(t *testing.T, m *mockserver.Server) string {
	t.Helper()
	m.Inject(mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropBefore})
	file := writeFile(t, "in.csv", "id\na\nb\nc\n")
	run(t, fast("batch", file, "--url", m.URL()+"/payments?q=hidden", "--key", "o:{id}", "--workers", "1", "--max-attempts", "1",
		"-H", "Authorization: Bearer hidden")...).want(t, exitUnknown)
	return file + ".oncehttp.db"
}

func TestJournalList(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	table := run(t, "journal", "list", "--journal", j).want(t, exitOK).out
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != 4 || !strings.HasPrefix(rows[0], "KEY ") || !strings.Contains(rows[1], "pending") || !strings.Contains(rows[3], "confirmed  done     201") {
		t.Errorf("table\n%s", table)
	}
	out := run(t, "journal", "list", "--journal", j, "--json", "--state", "pending,held").want(t, exitOK).out
	var keys []string
	for text := range strings.Lines(out) {
		var v recordView
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, v.Key+" "+v.State)
	}
	if want := []string{"idemp:o:a pending", "idemp:o:b pending"}; !slices.Equal(keys, want) {
		t.Errorf("got %q, want %q", keys, want)
	}
	if strings.Contains(table+out, "hidden") {
		t.Error("a listing shows a query string or a credential")
	}
}

func TestJournalShow(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	short := run(t, "journal", "show", "idemp:o:c", "--json", "--journal", j).want(t, exitOK).out
	var v recordView
	if err := json.Unmarshal([]byte(short), &v); err != nil {
		t.Fatal(err)
	}
	if v.State != "confirmed" || v.Answer.Status != 201 || v.Body != nil || v.Answer.Body != nil || v.BodyBytes != len(`{"id":"c"}`) {
		t.Errorf("%+v", v)
	}
	if strings.Contains(short, "hidden") {
		t.Errorf("without --body it shows %s", short)
	}
	whole := run(t, "journal", "show", "idemp:o:c", "--journal", j, "--body", "--json").want(t, exitOK).out
	if !strings.Contains(whole, `"body":{"id":"c"}`) || !strings.Contains(whole, "?q=hidden") || strings.Contains(whole, "Bearer") {
		t.Errorf("with --body: %s", whole)
	}
	run(t, "journal", "show", "idemp:o:x", "--journal", j).usage(t, "oncehttp: journal "+j+`: no operation has the key "idemp:o:x"`)
}

func TestJournalExport(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	bare := run(t, "journal", "export", "--journal", j).want(t, exitOK).out
	if strings.Count(bare, "\n") != 3 || strings.Contains(bare, "hidden") || strings.Contains(bare, "body_base64") {
		t.Errorf("export\n%s", bare)
	}
	out := t.TempDir() + "/out"
	run(t, "journal", "export", "--journal", j, "--bodies", "--out", out).want(t, exitOK)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var v recordView
	if err := json.Unmarshal(text[:slices.Index(text, '\n')], &v); err != nil || string(v.BodyBase64) != `{"id":"a"}` {
		t.Errorf("first record %+v, %v", v, err)
	}
	run(t, "journal", "export", "--journal", j, "--out", j).usage(t, "oncehttp: --out "+j+" is the same file as "+j)
}

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
	run(t, rekey("idemp:o:a", "idemp:o:a:gen=2", "--reason", "r")...).want(t, exitUsage).wantErr(t, "settle it as absent first")
	run(t, "journal", "settle", "idemp:o:a", "--absent", "--yes", "--journal", j).want(t, exitOK)
	for range 2 {
		got := run(t, rekey("idemp:o:a", "idemp:o:a:gen=2", "--reason", "the bank has none")...).want(t, exitOK)
		if got.out != "to be sent as idemp:o:a:gen=2: idemp:o:a\n" {
			t.Errorf("stdout %q", got.out)
		}
	}
	run(t, rekey("idemp:o:a", "idemp:o:a:gen=3", "--reason", "r")...).wantErr(t, `under the key "idemp:o:a:gen=2" already`)
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

// A key that several accounts have is not changed by guess.
func TestJournalAccounts(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	j := t.TempDir() + "/j.db"
	for _, account := range []string{"one", "two|half"} {
		m.Inject(mockserver.Fault{Kind: mockserver.DropBefore})
		run(t, fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "k", "--journal", j, "--account", account, "--max-attempts", "1")...).want(t, exitUnknown)
	}
	if got := run(t, "journal", "abandon", "k", "--journal", j).want(t, exitUsage); !strings.Contains(got.err, `"one", "two%7Chalf"`) {
		t.Errorf("stderr %q", got.err)
	}
	if got := run(t, fast("journal", "resume", "--journal", j)...).want(t, exitUsage); !strings.Contains(got.err, `"one", "two|half"`) {
		t.Errorf("stderr %q", got.err)
	}
	run(t, "journal", "settle", "k", "--absent", "--journal", j, "--account", "two|half", "--yes").want(t, exitOK)
	run(t, fast("journal", "resume", "--journal", j)...).want(t, exitOK)
	if n := m.Ledger().Effects("k"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// After its answers are gone a batch that is run again still sends nothing.
func TestJournalPrune(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	file := writeFile(t, "in.csv", "id\na\nb\n")
	batch := []string{"batch", file, "--url", m.URL() + "/payments", "--key", "o:{id}"}
	j := file + ".oncehttp.db"
	run(t, batch...).want(t, exitOK)
	if got := run(t, "journal", "prune", "--journal", j).want(t, exitOK); got.out != "pruned: 0 records\n" {
		t.Errorf("stdout %q", got.out)
	}
	if got := run(t, "journal", "prune", "--journal", j, "--keep-answer", "-1s").want(t, exitOK); got.out != "pruned: 2 records\n" {
		t.Errorf("stdout %q", got.out)
	}
	for _, l := range run(t, batch...).want(t, exitOK).lines(t) {
		if l.Result != resultDone || l.Source != "journal" || l.Sends != 0 || l.Error != nil || l.Body != nil {
			t.Errorf("%+v", l)
		}
	}
	if n := m.Ledger().Snapshot().Sends; n != 2 {
		t.Errorf("%d sends, want 2", n)
	}
}

// No journal command makes a journal, or touches one that is not sound.
func TestJournalUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	commands := [][]string{
		{"list"}, {"stuck"}, {"show", "k"}, {"resume"}, {"settle", "k", "--absent"}, {"abandon", "k"}, {"prune"}, {"export"},
	}
	damagedFor := func(c []string) string { return dir + "/damaged-" + c[0] + ".db" }
	for _, c := range commands {
		writeFile(t, damagedFor(c), strings.Repeat("not a journal ", 2000))
	}
	before := tree(t, dir)
	t.Run("commands", func(t *testing.T) {
		for _, c := range commands {
			t.Run(c[0], func(t *testing.T) {
				t.Parallel()
				args := append([]string{"journal"}, c...)
				run(t, args...).usage(t, "oncehttp: --journal is required")
				run(t, append(args, "--journal", dir+"/none.db")...).usage(t, "oncehttp: journal "+dir+"/none.db: no such file or directory")
				run(t, append(args, "--journal", dir)...).usage(t, "oncehttp: journal "+dir+": is a directory")
				damaged := damagedFor(c)
				got := run(t, append(args, "--journal", damaged)...).want(t, exitUsage)
				if strings.Count(got.err, "\n") != 1 || strings.Count(got.err, damaged) != 1 || got.out != "" {
					t.Errorf("stdout %q, stderr %q", got.out, got.err)
				}
			})
		}
	})
	run(t, "journal", "list", "--journal", damagedFor(commands[0]), "--state", "lost").usage(t, `oncehttp: --state "lost" is not a state`)
	run(t, "journal", "burn").usage(t, "oncehttp: journal: unknown command burn; see oncehttp journal --help")
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Error("a wrong call changed a file")
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

// What may have been sent shows so, whatever the number of recorded attempts, and
// is not settled as absent without a word.
func TestJournalMaybeSent(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	rows := strings.Split(run(t, "journal", "list", "--journal", j).want(t, exitOK).out, "\n")
	if !strings.Contains(rows[0], "SENT") || !strings.Contains(rows[1], "yes") || !strings.Contains(rows[2], "maybe") && !strings.Contains(rows[2], "yes") {
		t.Errorf("table\n%s", strings.Join(rows, "\n"))
	}
	absent := []string{"journal", "settle", "idemp:o:a", "--absent", "--journal", j}
	got := run(t, absent...).want(t, exitUsage)
	if !strings.Contains(got.err, "may have been sent") || !strings.Contains(got.err, "--yes") {
		t.Errorf("stderr %q", got.err)
	}
	run(t, append(absent, "--yes", "--reason", "asked the bank")...).want(t, exitOK)
	if got := run(t, "journal", "show", "idemp:o:a", "--journal", j).want(t, exitOK); !strings.Contains(got.out, "note      asked the bank\n") || !strings.Contains(got.out, "  history\n") {
		t.Errorf("show\n%s", got.out)
	}
	run(t, append(absent, "--reason", strings.Repeat("x", 1001))...).want(t, exitUsage)
}

// Used keys are not forgotten without a word: they could be sent again.
func TestJournalPruneOfKeysAsks(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	file := writeFile(t, "in.csv", "id\na\nb\n")
	run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}").want(t, exitOK)
	prune := []string{"journal", "prune", "--journal", file + ".oncehttp.db", "--keep-answer", "-1s", "--keep-key", "-1s"}
	got := run(t, prune...).want(t, exitUsage)
	if !strings.Contains(got.err, "sent again") || !strings.Contains(got.err, "--yes") {
		t.Errorf("stderr %q", got.err)
	}
	if got := run(t, append(prune, "--yes")...).want(t, exitOK); got.out != "pruned: 2 records\n" {
		t.Errorf("stdout %q", got.out)
	}
}

// What is stuck is listed with its reason, and nothing that is done.
func TestJournalStuck(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	got := run(t, "journal", "stuck", "--journal", j).want(t, exitOK)
	rows := strings.Split(strings.TrimSpace(got.out), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[1], "idemp:o:a  pending") || strings.Contains(got.out, "idemp:o:c") {
		t.Errorf("table\n%s", got.out)
	}
}

// Times are relative on a terminal, and carry their zone anywhere else.
func TestClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "0s ago", -59 * time.Second: "59s ago", -90 * time.Minute: "1h ago", -72 * time.Hour: "3d ago", 5 * time.Minute: "in 5m",
	} {
		if got := (clock{now, true}).when(now.Add(d), "-"); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := (clock{now: now}).when(now.Add(time.Hour), "-"); got != "2026-11-21T21:00:00Z" {
		t.Errorf("elsewhere: %q", got)
	}
	if got := (clock{now: now}).when(time.Time{}, "now"); got != "now" {
		t.Errorf("no time: %q", got)
	}
}

// settle and abandon take many keys, also from stdin, change nothing where one is
// not there, and saying the same again is no error.
func TestActOnManyKeys(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, startMock(t, mockserver.Config{}))
	settle := []string{"journal", "settle", "-", "--absent", "--journal", j}
	if got := runWith(t, "idemp:o:a\nnobody\n", append(settle, "--yes")...).want(t, exitUsage); got.out != "" {
		t.Errorf("stdout %q", got.out)
	}
	if got := runWith(t, "\n", settle...).want(t, exitUsage); !strings.Contains(got.err, "no key on stdin") {
		t.Errorf("stderr %q", got.err)
	}
	got := runWith(t, "idemp:o:a\nidemp:o:b\n", settle...).want(t, exitUsage)
	if !strings.Contains(got.err, "idemp:o:b: pending, POST ") || !strings.Contains(got.err, "and 1 more like it; to go ahead all the same: --yes") {
		t.Errorf("stderr %q", got.err)
	}
	for _, want := range []string{"settled as absent: idemp:o:a\nsettled as absent: idemp:o:b\n", "settled as absent already: idemp:o:a\nsettled as absent already: idemp:o:b\n"} {
		if got := runWith(t, "idemp:o:a\n idemp:o:b\n", append(settle, "--yes")...).want(t, exitOK); got.out != want {
			t.Errorf("stdout %q, want %q", got.out, want)
		}
	}
	// One that is confirmed cannot be abandoned; the others' state is said.
	mixed := run(t, "journal", "abandon", "idemp:o:a", "idemp:o:c", "--journal", j).want(t, exitRefused)
	if mixed.out != "" || !strings.Contains(mixed.err, "2 of 2 not changed") || !strings.Contains(mixed.err, "confirmed") {
		t.Errorf("stdout %q, stderr %q", mixed.out, mixed.err)
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
