package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
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
	run(t, "journal", "settle", seenAs(t, j, "k", "--account", "two|half"), "--absent", "--journal", j, "--account", "two|half", "--yes").want(t, exitOK)
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
	if got := run(t, "journal", "prune", "--journal", j, "--keep-answer", "-1s", "--yes").want(t, exitOK); got.out != "pruned: 2 records\n" {
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
	absent := []string{"journal", "settle", seenAs(t, j, "idemp:o:a"), "--absent", "--journal", j}
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
	if len(rows) != 3 || !strings.HasPrefix(rows[1], seenAs(t, j, "idemp:o:a")+"  pending") || strings.Contains(got.out, "idemp:o:c") || !strings.Contains(rows[1], "profile ") {
		t.Errorf("table\n%s", got.out)
	}
}

// What a client must have to go on with an operation is told by its name, also where the operation cannot be read.
func TestNeedsText(t *testing.T) {
	t.Parallel()
	for want, rec := range map[string]persist.Record{
		"Authorize, region eu, profile own@2":   {Omitted: []string{"Authorization"}, Region: "eu", Profile: "own", ProfileVersion: "2"},
		"the credential that it was begun with": {Credential: "sha256:ab"},
		"the key k1+k2 of the seal":             {Carrier: persist.CarrierSealed, SealedNeeds: "1 seal=k1+k2 hidden=x"},
		"to be sealed, profile own@2":           {Carrier: persist.CarrierSealed, SealedNeeds: "1 plain profile=own@2"},
		"a newer version":                       {Carrier: persist.CarrierSealed, SealedNeeds: "2 moon=full"},
	} {
		if got := needsText(&rec, nil); got != want {
			t.Errorf("%+v: %q, want %q", rec, got, want)
		}
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
