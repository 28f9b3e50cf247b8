package journal_test

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// TestAssign: what is in doubt under no account keeps a call of an account from sending, until it is assigned; then that call
// goes on with it. Saying it again is no error.
func TestAssign(t *testing.T) {
	t.Parallel()
	for _, to := range []struct {
		name, account string
		flags         []string
		send          []string // nil: no command has such an account
		byReference   bool
	}{
		{"an account", "shop", []string{"--account", "shop"}, []string{"--account", "shop"}, false},
		{"by a reference", "shop", []string{"--account", "shop"}, []string{"--account", "shop"}, true},
		{"one that is to be escaped", "a%7Cb%3Dc", []string{"--account", "a|b=c"}, []string{"--account", "a|b=c"}, false},
		{"inside no account", "|customer", []string{"--inside", "customer"}, nil, false},
		{"inside an account", "shop|customer", []string{"--account", "shop", "--inside", "customer"}, nil, false},
	} {
		t.Run(to.name, func(t *testing.T) {
			t.Parallel()
			m := commandtest.StartMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
			j := filepath.Join(t.TempDir(), "j.db")
			send := commandtest.Fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--journal", j, "--key", "k", "--max-attempts", "1")
			commandtest.Run(t, send...).Want(t, terminal.ExitUnknown)
			key := "k"
			if to.send != nil {
				got := commandtest.Run(t, append(send, to.send...)...).Want(t, terminal.ExitUnknown)
				reference := regexp.MustCompile(`oncehttp journal assign gives it .*(ref-[0-9a-f]{32})`).FindStringSubmatch(got.Err)
				if reference == nil || strings.Contains(got.Err, `"k"`) || m.Ledger().Snapshot().Sends != 1 {
					t.Fatalf("%d sends, stderr %q", m.Ledger().Snapshot().Sends, got.Err)
				}
				if to.byReference {
					key = reference[1]
				}
			}
			assign := append([]string{"journal", "assign", key, "--journal", j}, to.flags...)
			if got := commandtest.Run(t, assign...).Want(t, terminal.ExitOK); got.Out != "assigned: k\n" {
				t.Errorf("stdout %q", got.Out)
			}
			assign[2] = "-"
			if got := commandtest.RunWith(t, "k\n", assign...).Want(t, terminal.ExitOK); got.Out != "assigned already: k\n" {
				t.Errorf("again: stdout %q", got.Out)
			}
			if out := commandtest.Run(t, "journal", "list", "--json", "--journal", j).Want(t, terminal.ExitOK).Out; strings.Count(out, "\n") != 1 || !strings.Contains(out, `"account":"`+to.account+`"`) {
				t.Errorf("want account %s:\n%s", to.account, out)
			}
			if to.send != nil {
				commandtest.Run(t, append(send, to.send...)...).Want(t, terminal.ExitOK)
			}
			if n := m.Ledger().Effects("k"); n != 1 {
				t.Errorf("%d effects, want 1", n)
			}
		})
	}
}

// TestAssignInput: a wrong call is one line, and nothing is changed.
func TestAssignInput(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	begin := func(args ...string) {
		send := commandtest.Fast("send", "POST", s.URL, "--profile", "stripe", "--journal", j, "--max-attempts", "1", "-d", "a=1")
		commandtest.Run(t, append(send, args...)...).Want(t, terminal.ExitUnknown)
	}
	begin("--key", "two", "-H", "Stripe-Account: acct_1")
	begin("--key", "two", "-H", "Stripe-Account: acct_2")
	begin("--key", "bobs", "--account", "bob")
	for _, call := range []struct{ args, want string }{
		{"two", "oncehttp: say with --account, or --inside, to which account"},
		{"two --account ", "oncehttp: say with --account, or --inside, to which account"},
		{"two --inside ", "oncehttp: --inside is empty"},
		{"--account shop", "oncehttp: KEY or --all is missing; see oncehttp journal assign --help"},
		{"two --all --account shop", "oncehttp: say KEY or --all, not both"},
		{"- --account shop", "oncehttp: no key on stdin"},
		{"nobody --account shop", "oncehttp: journal " + j + `: no operation with the key "nobody" is without an account`},
		{"bobs --account shop", "oncehttp: journal " + j + `: no operation with the key "bobs" is without an account`},
		{"--all --account shop", `oncehttp: 2 operations under no account would be given to "shop" for good: one that is another account's would be sent again there; to go ahead all the same: --yes`},
	} {
		commandtest.Run(t, append(append([]string{"journal", "assign"}, strings.Split(call.args, " ")...), "--journal", j)...).Usage(t, call.want)
	}
	// A key of two operations: each has a reference, by which it is assigned with the header that selects its account.
	got := commandtest.Run(t, "journal", "assign", "two", "--account", "shop", "--journal", j).Want(t, terminal.ExitUsage)
	found := regexp.MustCompile(`"\|Stripe-Account=acct_2" is (ref-[0-9a-f]{32})`).FindStringSubmatch(got.Err)
	if found == nil || !strings.Contains(got.Err, "2 operations under no account have the key") {
		t.Fatalf("stderr %q", got.Err)
	}
	if out := commandtest.Run(t, "journal", "list", "--json", "--account", "shop", "--journal", j).Out; out != "" {
		t.Errorf("something was assigned: %s", out)
	}
	commandtest.Run(t, "journal", "assign", found[1], "--account", "shop", "--journal", j).Want(t, terminal.ExitOK)
	if out := commandtest.Run(t, "journal", "list", "--json", "--account", "shop", "--journal", j).Out; !strings.Contains(out, `"account":"shop|Stripe-Account=acct_2"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("%s", out)
	}
}

// TestAssignAll: all that stands under none is assigned, whatever became of it; one whose key the account has already is named, and
// the counts add up. An operation of another account stays.
func TestAssignAll(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
	j := filepath.Join(t.TempDir(), "j.db")
	send := func(key string, args ...string) []string {
		return append(commandtest.Fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--journal", j, "--key", key, "--max-attempts", "1"), args...)
	}
	commandtest.Run(t, send("doubt")...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, send("both", "--account", "shop")...).Want(t, terminal.ExitOK)
	for _, key := range []string{"both", "done", "settled"} {
		commandtest.Run(t, send(key, "--account", "")...).Want(t, terminal.ExitOK)
	}
	commandtest.Run(t, send("bobs", "--account", "bob")...).Want(t, terminal.ExitOK)
	all := []string{"journal", "assign", "--all", "--account", "shop", "--yes", "--journal", j}
	for i, assigned := range []string{"assigned: 3 operations\n", "assigned: 0 operations\n"} {
		got := commandtest.Run(t, all...).Want(t, terminal.ExitRefused)
		want := []string{"1 of 4 not assigned\n", "1 of 1 not assigned\n"}[i]
		if got.Out != assigned || !strings.HasSuffix(got.Err, want) || strings.Count(got.Err, "\n") != 2 || !strings.Contains(got.Err, `"both"`) {
			t.Errorf("stdout %q, stderr %q; want %q and %q", got.Out, got.Err, assigned, want)
		}
	}
	commandtest.Run(t, "journal", "assign", "both", "--account", "shop", "--journal", j).Want(t, terminal.ExitUsage).WantErr(t, `the account "shop" has an operation of this key already`)
	for account, n := range map[string]int{"shop": 4, "bob": 1, "": 1} {
		if out := commandtest.Run(t, "journal", "list", "--json", "--account", account, "--journal", j).Want(t, terminal.ExitOK).Out; strings.Count(out, "\n") != n {
			t.Errorf("account %q: want %d\n%s", account, n, out)
		}
	}
	sends := m.Ledger().Snapshot().Sends
	commandtest.Run(t, send("done", "--account", "shop")...).Want(t, terminal.ExitOK)
	commandtest.Run(t, send("doubt", "--account", "shop")...).Want(t, terminal.ExitOK)
	if now := m.Ledger().Snapshot(); now.Sends != sends+1 || m.Ledger().Effects("doubt") != 1 {
		t.Errorf("%d sends more, %d effects", now.Sends-sends, m.Ledger().Effects("doubt"))
	}
}

// TestAssignBesideWorker: while a worker sends, what it has a lease of is named and stays, with status 3; the rest is assigned, and
// the same call again assigns what was left. Each operation is sent once.
func TestAssignBesideWorker(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		arrived, answer := make(chan struct{}, 1), make(chan struct{})
		s := commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/done" {
				arrived <- struct{}{}
				<-answer
			}
			w.WriteHeader(http.StatusCreated)
		})
		release := sync.OnceFunc(func() { close(answer) })
		t.Cleanup(release)
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL+"/done", "-d", "{}", "--journal", journal, "--key", "done")...).Want(t, terminal.ExitOK)
		commandtest.Enqueue(t, journal, s.URL, 1)
		w := commandtest.StartWork(t, "--journal", journal, "--workers", "2")
		<-arrived
		assign := []string{"journal", "assign", "--all", "--account", "shop", "--yes", "--journal", journal}
		got := commandtest.Run(t, assign...).Want(t, terminal.ExitUnknown)
		if got.Out != "assigned: 1 operation\n" || !strings.Contains(got.Err, "w:0") || !strings.HasSuffix(got.Err, "1 of 2 not assigned\n") {
			t.Errorf("stdout %q, stderr %q", got.Out, got.Err)
		}
		if got := commandtest.Run(t, "journal", "assign", "w:0", "--account", "shop", "--journal", journal).Want(t, terminal.ExitUnknown); got.Out != "" || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("stdout %q, stderr %q", got.Out, got.Err)
		}
		release()
		if l, more := w.Next(t); !more || l.Result != results.Done {
			t.Fatalf("line %+v", l)
		}
		if status := w.Stop(t, syscall.SIGTERM); status != terminal.ExitOK {
			t.Errorf("status %d", status)
		}
		if got := commandtest.Run(t, assign...).Want(t, terminal.ExitOK); got.Out != "assigned: 1 operation\n" {
			t.Errorf("stdout %q", got.Out)
		}
		if s.Sends.Load() != 2 {
			t.Errorf("%d sends", s.Sends.Load())
		}
	})
}

// TestWorkTellsOfNone: a worker of an account says what stands under none, and how to assign it; it is not sent before.
func TestWorkTellsOfNone(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	j := filepath.Join(t.TempDir(), "j.db")
	commandtest.EnqueueOne(t, j, s.URL, "k", "{}")
	w := commandtest.StartWork(t, "--journal", j, "--account", "shop")
	reference := w.Errs.Await(t, `(ref-[0-9a-f]{32}): .*1 unfinished under no account, .* "shop"; give each .* with oncehttp journal assign`)
	if status := w.Stop(t, syscall.SIGTERM); status != terminal.ExitOK || s.Sends.Load() != 0 {
		t.Errorf("status %d after %d sends", status, s.Sends.Load())
	}
	commandtest.Run(t, "journal", "assign", reference, "--account", "shop", "--journal", j).Want(t, terminal.ExitOK)
	w = commandtest.StartWork(t, "--journal", j, "--account", "shop")
	if l, more := w.Next(t); !more || l.Key != "k" || l.Result != results.Done {
		t.Errorf("line %+v", l)
	}
	if status := w.Stop(t, syscall.SIGTERM); status != terminal.ExitOK || s.Sends.Load() != 1 {
		t.Errorf("status %d after %d sends", status, s.Sends.Load())
	}
}

// TestResumeTellsOfNone: journal resume of an account counts the unfinished operations under none, and does not send them.
func TestResumeTellsOfNone(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	j := filepath.Join(t.TempDir(), "j.db")
	commandtest.EnqueueOne(t, j, s.URL, "k", "{}")
	resume := func(args ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"journal", "resume", "--journal", j}, args...)...)
	}
	told := `left alone: 1 unfinished operation under no account, beside "shop"; give each to the one to which it belongs with oncehttp journal assign`
	for _, more := range [][]string{nil, {"--dry-run"}} {
		if got := resume(append(more, "--account", "shop")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, told) {
			t.Errorf("resume %q: stderr %s", more, got.Err)
		}
	}
	if s.Sends.Load() != 0 {
		t.Errorf("%d sends", s.Sends.Load())
	}
	if got := resume("--account", "").Want(t, terminal.ExitOK); strings.Contains(got.Err, "no account") || s.Sends.Load() != 1 {
		t.Errorf("stderr %s after %d sends", got.Err, s.Sends.Load())
	}
	if got := resume("--account", "shop").Want(t, terminal.ExitOK); strings.Contains(got.Err, "no account") {
		t.Errorf("stderr %s, though nothing is unfinished", got.Err)
	}
}

// TestAssignWhatHasMoved: what was sent since it was listed is left alone and printed with its new KEY@SEEN, also with --yes; from
// stdin an unfinished one needs SEEN; the others are assigned.
func TestAssignWhatHasMoved(t *testing.T) {
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
	assign := []string{"journal", "assign", "-", "--account", "shop", "--yes", "--journal", j}
	commandtest.RunWith(t, "a\nb\n", assign...).Want(t, terminal.ExitUsage).WantErr(t, "say KEY@SEEN")
	now := commandtest.SeenAs(t, j, "a")
	got := commandtest.RunWith(t, list, assign...).Want(t, terminal.ExitUnknown)
	got.WantErr(t, "1 operation left alone: being sent, or not as seen; look at it as it stands now")
	if want := "assigned: b\nleft alone, @" + strings.TrimPrefix(old, "a@") + " is not how it stands, since it has moved or that is another's SEEN: " + now + "\n"; got.Out != want {
		t.Errorf("stdout %q, want %q", got.Out, want)
	}
	if after := commandtest.SeenAs(t, j, "a"); after != now {
		t.Errorf("%s is %s: it was not left alone", now, after)
	}
	assign[2] = strings.Split(list, "\n")[0]
	commandtest.Run(t, assign...).Want(t, terminal.ExitUnknown)
	assign[2] = now
	if got := commandtest.Run(t, assign...).Want(t, terminal.ExitOK); got.Out != "assigned: a\n" {
		t.Errorf("stdout %q", got.Out)
	}
	if out := commandtest.Run(t, "journal", "list", "--json", "--account", "shop", "--journal", j).Out; strings.Count(out, "\n") != 2 {
		t.Errorf("want both assigned:\n%s", out)
	}
}
