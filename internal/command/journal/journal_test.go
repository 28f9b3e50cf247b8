package journal_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/mockserver"
)

// pendingJournal is a journal in which the rows a and b are of unknown outcome
// and c is confirmed, begun with a credential.
func pendingJournal(t *testing.T, m *mockserver.Server) string {
	t.Helper()
	m.Inject(mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropBefore})
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\nc\n")
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", m.URL()+"/payments?q=hidden", "--key", "o:{id}", "--workers", "1", "--max-attempts", "1",
		"-H", "Authorization: Bearer hidden")...).Want(t, terminal.ExitUnknown)
	return file + ".oncehttp.db"
}

func TestJournalList(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	table := commandtest.Run(t, "journal", "list", "--journal", j).Want(t, terminal.ExitOK).Out
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != 4 || !strings.HasPrefix(rows[0], "KEY ") || !strings.Contains(rows[1], "pending") || !strings.Contains(rows[3], "confirmed  done     201") {
		t.Errorf("table\n%s", table)
	}
	out := commandtest.Run(t, "journal", "list", "--journal", j, "--json", "--state", "pending,held").Want(t, terminal.ExitOK).Out
	var keys []string
	for text := range strings.Lines(out) {
		var v view.Record
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
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	short := commandtest.Run(t, "journal", "show", "idemp:o:c", "--json", "--journal", j).Want(t, terminal.ExitOK).Out
	var v view.Record
	if err := json.Unmarshal([]byte(short), &v); err != nil {
		t.Fatal(err)
	}
	if v.State != "confirmed" || v.Answer.Status != 201 || v.Body != nil || v.Answer.Body != nil || v.BodyBytes != len(`{"id":"c"}`) {
		t.Errorf("%+v", v)
	}
	if strings.Contains(short, "hidden") {
		t.Errorf("without --body it shows %s", short)
	}
	whole := commandtest.Run(t, "journal", "show", "idemp:o:c", "--journal", j, "--body", "--json").Want(t, terminal.ExitOK).Out
	if !strings.Contains(whole, `"body":{"id":"c"}`) || !strings.Contains(whole, "?q=hidden") || strings.Contains(whole, "Bearer") {
		t.Errorf("with --body: %s", whole)
	}
	commandtest.Run(t, "journal", "show", "idemp:o:x", "--journal", j).Usage(t, "oncehttp: journal "+j+`: no operation has the key "idemp:o:x"`)
}

func TestJournalExport(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	bare := commandtest.Run(t, "journal", "export", "--journal", j).Want(t, terminal.ExitOK).Out
	if strings.Count(bare, "\n") != 3 || strings.Contains(bare, "hidden") || strings.Contains(bare, "body_base64") {
		t.Errorf("export\n%s", bare)
	}
	out := t.TempDir() + "/out"
	commandtest.Run(t, "journal", "export", "--journal", j, "--bodies", "--out", out).Want(t, terminal.ExitOK)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var v view.Record
	if err := json.Unmarshal(text[:slices.Index(text, '\n')], &v); err != nil || string(v.BodyBase64) != `{"id":"a"}` {
		t.Errorf("first record %+v, %v", v, err)
	}
	commandtest.Run(t, "journal", "export", "--journal", j, "--out", j).Usage(t, "oncehttp: --out "+j+" is the same file as "+j)
}

// A key that several accounts have is not changed by guess.
func TestJournalAccounts(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	j := t.TempDir() + "/j.db"
	for _, account := range []string{"one", "two|half"} {
		m.Inject(mockserver.Fault{Kind: mockserver.DropBefore})
		commandtest.Run(t, commandtest.Fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "k", "--journal", j, "--account", account, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	}
	if got := commandtest.Run(t, "journal", "abandon", "k", "--journal", j).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, `"one", "two%7Chalf"`) {
		t.Errorf("stderr %q", got.Err)
	}
	if got := commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", j)...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, `"one", "two|half"`) {
		t.Errorf("stderr %q", got.Err)
	}
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "k", "--account", "two|half"), "--absent", "--journal", j, "--account", "two|half", "--yes").Want(t, terminal.ExitOK)
	commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", j)...).Want(t, terminal.ExitOK)
	if n := m.Ledger().Effects("k"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// After its answers are gone a batch that is run again still sends nothing.
func TestJournalPrune(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
	batch := []string{"batch", file, "--url", m.URL() + "/payments", "--key", "o:{id}"}
	j := file + ".oncehttp.db"
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, "journal", "prune", "--journal", j).Want(t, terminal.ExitOK); got.Out != "pruned: 0 records\n" {
		t.Errorf("stdout %q", got.Out)
	}
	if got := commandtest.Run(t, "journal", "prune", "--journal", j, "--keep-answer", "-1s", "--yes").Want(t, terminal.ExitOK); got.Out != "pruned: 2 records\n" {
		t.Errorf("stdout %q", got.Out)
	}
	for _, l := range commandtest.Run(t, batch...).Want(t, terminal.ExitOK).Lines(t) {
		if l.Result != results.Done || l.Source != "journal" || l.Sends != 1 || l.Error != nil || l.Body != nil {
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
		commandtest.WriteFile(t, damagedFor(c), strings.Repeat("not a journal ", 2000))
	}
	before := commandtest.Tree(t, dir)
	t.Run("commands", func(t *testing.T) {
		for _, c := range commands {
			t.Run(c[0], func(t *testing.T) {
				t.Parallel()
				args := append([]string{"journal"}, c...)
				commandtest.Run(t, append(args, "--journal", dir+"/none.db")...).Usage(t, "oncehttp: journal "+dir+"/none.db: no such file or directory")
				commandtest.Run(t, append(args, "--journal", dir)...).Usage(t, "oncehttp: journal "+dir+": is a directory")
				damaged := damagedFor(c)
				got := commandtest.Run(t, append(args, "--journal", damaged)...).Want(t, terminal.ExitUsage)
				if strings.Count(got.Err, "\n") != 1 || strings.Count(got.Err, damaged) != 1 || got.Out != "" {
					t.Errorf("stdout %q, stderr %q", got.Out, got.Err)
				}
			})
		}
	})
	commandtest.Run(t, "journal", "list", "--journal", damagedFor(commands[0]), "--state", "accepted").Usage(t, `oncehttp: --state accepted: that is a result: say --result accepted; the states are pending, held, confirmed, mismatched, settled, abandoned`)
	commandtest.Run(t, "journal", "list", "--journal", damagedFor(commands[0]), "--state", "lost").Usage(t, `oncehttp: --state "lost" is not a state; the states are pending, held, confirmed, mismatched, settled, abandoned`)
	commandtest.Run(t, "journal", "burn").Usage(t, "oncehttp: journal: unknown command burn; see oncehttp journal --help")
	if after := commandtest.Tree(t, dir); !slices.Equal(before, after) {
		t.Error("a wrong call changed a file")
	}
}

// What may have been sent shows so, whatever the number of recorded attempts, and
// is not settled as absent without a word.
func TestJournalMaybeSent(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	j := pendingJournal(t, m)
	rows := strings.Split(commandtest.Run(t, "journal", "list", "--journal", j).Want(t, terminal.ExitOK).Out, "\n")
	if !strings.Contains(rows[0], "SENT") || !strings.Contains(rows[1], "yes") || !strings.Contains(rows[2], "maybe") && !strings.Contains(rows[2], "yes") {
		t.Errorf("table\n%s", strings.Join(rows, "\n"))
	}
	absent := []string{"journal", "settle", commandtest.SeenAs(t, j, "idemp:o:a"), "--absent", "--journal", j}
	got := commandtest.Run(t, absent...).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "may have been sent") || !strings.Contains(got.Err, "--yes") {
		t.Errorf("stderr %q", got.Err)
	}
	commandtest.Run(t, append(absent, "--yes", "--reason", "asked the bank")...).Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, "journal", "show", "idemp:o:a", "--journal", j).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "note      asked the bank (by ") || !strings.Contains(got.Out, "  history\n") {
		t.Errorf("show\n%s", got.Out)
	}
	commandtest.Run(t, append(absent, "--reason", strings.Repeat("x", 1001))...).Want(t, terminal.ExitUsage)
}

// Used keys are not forgotten without a word: they could be sent again.
func TestJournalPruneOfKeysAsks(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
	commandtest.Run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}").Want(t, terminal.ExitOK)
	prune := []string{"journal", "prune", "--journal", file + ".oncehttp.db", "--keep-answer", "-1s", "--keep-key", "-1s"}
	got := commandtest.Run(t, prune...).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "sent again") || !strings.Contains(got.Err, "--yes") {
		t.Errorf("stderr %q", got.Err)
	}
	if got := commandtest.Run(t, append(prune, "--yes")...).Want(t, terminal.ExitOK); got.Out != "pruned: 2 records\n" {
		t.Errorf("stdout %q", got.Out)
	}
}

// What is stuck is listed with its reason, and nothing that is done.
func TestJournalStuck(t *testing.T) {
	t.Parallel()
	j := pendingJournal(t, commandtest.StartMock(t, mockserver.Config{}))
	got := commandtest.Run(t, "journal", "stuck", "--journal", j).Want(t, terminal.ExitOK)
	rows := strings.Split(strings.TrimSpace(got.Out), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[1], commandtest.SeenAs(t, j, "idemp:o:a")+"  -        pending") || strings.Contains(got.Out, "idemp:o:c") || !strings.Contains(rows[1], "profile ") {
		t.Errorf("table\n%s", got.Out)
	}
}
