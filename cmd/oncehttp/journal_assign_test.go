package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

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
			m := startMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
			j := filepath.Join(t.TempDir(), "j.db")
			send := fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--journal", j, "--key", "k", "--max-attempts", "1")
			run(t, send...).want(t, exitUnknown)
			key := "k"
			if to.send != nil {
				got := run(t, append(send, to.send...)...).want(t, exitUnknown)
				reference := regexp.MustCompile(`oncehttp journal assign gives it .*(ref-[0-9a-f]{32})`).FindStringSubmatch(got.err)
				if reference == nil || strings.Contains(got.err, `"k"`) || m.Ledger().Snapshot().Sends != 1 {
					t.Fatalf("%d sends, stderr %q", m.Ledger().Snapshot().Sends, got.err)
				}
				if to.byReference {
					key = reference[1]
				}
			}
			assign := append([]string{"journal", "assign", key, "--journal", j}, to.flags...)
			if got := run(t, assign...).want(t, exitOK); got.out != "assigned: k\n" {
				t.Errorf("stdout %q", got.out)
			}
			assign[2] = "-"
			if got := runWith(t, "k\n", assign...).want(t, exitOK); got.out != "assigned already: k\n" {
				t.Errorf("again: stdout %q", got.out)
			}
			if out := run(t, "journal", "list", "--json", "--journal", j).want(t, exitOK).out; strings.Count(out, "\n") != 1 || !strings.Contains(out, `"account":"`+to.account+`"`) {
				t.Errorf("want account %s:\n%s", to.account, out)
			}
			if to.send != nil {
				run(t, append(send, to.send...)...).want(t, exitOK)
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
	s := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	begin := func(args ...string) {
		send := fast("send", "POST", s.url, "--profile", "stripe", "--journal", j, "--max-attempts", "1", "-d", "a=1")
		run(t, append(send, args...)...).want(t, exitUnknown)
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
		{"nobody --account shop", "oncehttp: journal " + j + `: nothing with the key "nobody" stands under no account`},
		{"bobs --account shop", "oncehttp: journal " + j + `: nothing with the key "bobs" stands under no account`},
		{"--all --account shop", `oncehttp: 2 operations under no account would be given to "shop" for good: one that is another account's would be sent again there; to go ahead all the same: --yes`},
	} {
		run(t, append(append([]string{"journal", "assign"}, strings.Split(call.args, " ")...), "--journal", j)...).usage(t, call.want)
	}
	// A key of two operations: each has a reference, by which it is assigned with the header that selects its account.
	got := run(t, "journal", "assign", "two", "--account", "shop", "--journal", j).want(t, exitUsage)
	found := regexp.MustCompile(`"\|Stripe-Account=acct_2" is (ref-[0-9a-f]{32})`).FindStringSubmatch(got.err)
	if found == nil || !strings.Contains(got.err, "2 operations under no account have the key") {
		t.Fatalf("stderr %q", got.err)
	}
	if out := run(t, "journal", "list", "--json", "--account", "shop", "--journal", j).out; out != "" {
		t.Errorf("something was assigned: %s", out)
	}
	run(t, "journal", "assign", found[1], "--account", "shop", "--journal", j).want(t, exitOK)
	if out := run(t, "journal", "list", "--json", "--account", "shop", "--journal", j).out; !strings.Contains(out, `"account":"shop|Stripe-Account=acct_2"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("%s", out)
	}
}

// TestAssignAll: all that stands under none is assigned, whatever became of it; one whose key the account has already is named, and
// the counts add up. An operation of another account stays.
func TestAssignAll(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
	j := filepath.Join(t.TempDir(), "j.db")
	send := func(key string, args ...string) []string {
		return append(fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--journal", j, "--key", key, "--max-attempts", "1"), args...)
	}
	run(t, send("doubt")...).want(t, exitUnknown)
	run(t, send("both", "--account", "shop")...).want(t, exitOK)
	for _, key := range []string{"both", "done", "settled"} {
		run(t, send(key)...).want(t, exitOK)
	}
	run(t, send("bobs", "--account", "bob")...).want(t, exitOK)
	all := []string{"journal", "assign", "--all", "--account", "shop", "--yes", "--journal", j}
	for i, assigned := range []string{"assigned: 3 operations\n", "assigned: 0 operations\n"} {
		got := run(t, all...).want(t, exitRefused)
		want := []string{"1 of 4 not assigned\n", "1 of 1 not assigned\n"}[i]
		if got.out != assigned || !strings.HasSuffix(got.err, want) || strings.Count(got.err, "\n") != 2 || !strings.Contains(got.err, `"both"`) {
			t.Errorf("stdout %q, stderr %q; want %q and %q", got.out, got.err, assigned, want)
		}
	}
	run(t, "journal", "assign", "both", "--account", "shop", "--journal", j).want(t, exitUsage).wantErr(t, `the account "shop" has an operation of this key already`)
	for account, n := range map[string]int{"shop": 4, "bob": 1, "": 1} {
		if out := run(t, "journal", "list", "--json", "--account", account, "--journal", j).want(t, exitOK).out; strings.Count(out, "\n") != n {
			t.Errorf("account %q: want %d\n%s", account, n, out)
		}
	}
	sends := m.Ledger().Snapshot().Sends
	run(t, send("done", "--account", "shop")...).want(t, exitOK)
	run(t, send("doubt", "--account", "shop")...).want(t, exitOK)
	if now := m.Ledger().Snapshot(); now.Sends != sends+1 || m.Ledger().Effects("doubt") != 1 {
		t.Errorf("%d sends more, %d effects", now.Sends-sends, m.Ledger().Effects("doubt"))
	}
}

// TestAssignBesideWorker: while a worker sends, what it has a lease of is named and stays, with status 3; the rest is assigned, and
// the same call again assigns what was left. Each operation is sent once.
func TestAssignBesideWorker(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		arrived, answer := make(chan struct{}, 1), make(chan struct{})
		s := serve(t, func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/done" {
				arrived <- struct{}{}
				<-answer
			}
			w.WriteHeader(http.StatusCreated)
		})
		release := sync.OnceFunc(func() { close(answer) })
		t.Cleanup(release)
		run(t, fast("send", "POST", s.url+"/done", "-d", "{}", "--journal", journal, "--key", "done")...).want(t, exitOK)
		enqueue(t, journal, s.url, 1)
		w := startWork(t, "--journal", journal, "--workers", "2")
		<-arrived
		assign := []string{"journal", "assign", "--all", "--account", "shop", "--yes", "--journal", journal}
		got := run(t, assign...).want(t, exitUnknown)
		if got.out != "assigned: 1 operation\n" || !strings.Contains(got.err, "w:0") || !strings.HasSuffix(got.err, "1 of 2 not assigned\n") {
			t.Errorf("stdout %q, stderr %q", got.out, got.err)
		}
		if got := run(t, "journal", "assign", "w:0", "--account", "shop", "--journal", journal).want(t, exitUnknown); got.out != "" || strings.Count(got.err, "\n") != 1 {
			t.Errorf("stdout %q, stderr %q", got.out, got.err)
		}
		release()
		if l, more := w.next(t); !more || l.Result != resultDone {
			t.Fatalf("line %+v", l)
		}
		if status := w.stop(t, syscall.SIGTERM); status != exitOK {
			t.Errorf("status %d", status)
		}
		if got := run(t, assign...).want(t, exitOK); got.out != "assigned: 1 operation\n" {
			t.Errorf("stdout %q", got.out)
		}
		if s.sends.Load() != 2 {
			t.Errorf("%d sends", s.sends.Load())
		}
	})
}

// TestWorkTellsOfNone: a worker of an account says what stands under none, and how to assign it; it is not sent before.
func TestWorkTellsOfNone(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	j := filepath.Join(t.TempDir(), "j.db")
	enqueueOne(t, j, s.url, "k", "{}")
	w := startWork(t, "--journal", j, "--account", "shop")
	reference := w.errs.await(t, `(ref-[0-9a-f]{32}): .*1 unfinished under no account, .* "shop"; give each .* with oncehttp journal assign`)
	if status := w.stop(t, syscall.SIGTERM); status != exitOK || s.sends.Load() != 0 {
		t.Errorf("status %d after %d sends", status, s.sends.Load())
	}
	run(t, "journal", "assign", reference, "--account", "shop", "--journal", j).want(t, exitOK)
	w = startWork(t, "--journal", j, "--account", "shop")
	if l, more := w.next(t); !more || l.Key != "k" || l.Result != resultDone {
		t.Errorf("line %+v", l)
	}
	if status := w.stop(t, syscall.SIGTERM); status != exitOK || s.sends.Load() != 1 {
		t.Errorf("status %d after %d sends", status, s.sends.Load())
	}
}

// TestResumeTellsOfNone: journal resume of an account counts the unfinished operations under none, and does not send them.
func TestResumeTellsOfNone(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	j := filepath.Join(t.TempDir(), "j.db")
	enqueueOne(t, j, s.url, "k", "{}")
	resume := func(args ...string) ran {
		return run(t, append([]string{"journal", "resume", "--journal", j}, args...)...)
	}
	told := `left alone: 1 unfinished operation under no account, beside "shop"; give each to the one to which it belongs with oncehttp journal assign`
	for _, more := range [][]string{nil, {"--dry-run"}} {
		if got := resume(append(more, "--account", "shop")...).want(t, exitOK); !strings.Contains(got.err, told) {
			t.Errorf("resume %q: stderr %s", more, got.err)
		}
	}
	if s.sends.Load() != 0 {
		t.Errorf("%d sends", s.sends.Load())
	}
	if got := resume("--account", "").want(t, exitOK); strings.Contains(got.err, "no account") || s.sends.Load() != 1 {
		t.Errorf("stderr %s after %d sends", got.err, s.sends.Load())
	}
	if got := resume("--account", "shop").want(t, exitOK); strings.Contains(got.err, "no account") {
		t.Errorf("stderr %s, though nothing is unfinished", got.err)
	}
}

// TestAssignWhatHasMoved: what was sent since it was listed is left alone and printed with its new KEY@SEEN, also with --yes; from
// stdin an unfinished one needs SEEN; the others are assigned.
func TestAssignWhatHasMoved(t *testing.T) {
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
	assign := []string{"journal", "assign", "-", "--account", "shop", "--yes", "--journal", j}
	runWith(t, "a\nb\n", assign...).want(t, exitUsage).wantErr(t, "say KEY@SEEN")
	now := seenAs(t, j, "a")
	got := runWith(t, list, assign...).want(t, exitUnknown)
	got.wantErr(t, "1 operation moved since they were seen; look again")
	if want := "assigned: b\nleft alone, it has moved since it was seen: " + now + "\n"; got.out != want {
		t.Errorf("stdout %q, want %q", got.out, want)
	}
	if after := seenAs(t, j, "a"); after != now {
		t.Errorf("%s is %s: it was not left alone", now, after)
	}
	assign[2] = strings.Split(list, "\n")[0]
	run(t, assign...).want(t, exitUnknown)
	assign[2] = now
	if got := run(t, assign...).want(t, exitOK); got.out != "assigned: a\n" {
		t.Errorf("stdout %q", got.out)
	}
	if out := run(t, "journal", "list", "--json", "--account", "shop", "--journal", j).out; strings.Count(out, "\n") != 2 {
		t.Errorf("want both assigned:\n%s", out)
	}
}
