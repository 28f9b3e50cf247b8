package work_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/profile"
)

// onJournals runs the test with an empty journal of its own: a file, and on each server.
func onJournals(t *testing.T, test func(t *testing.T, journal string)) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "j.db"))
	})
	commandtest.OnServers(t, test)
}

// Work sends what was enqueued, prints a line for each, says how it is, and stops with
// status 0 when it is told to.
func TestWork(t *testing.T) {
	t.Parallel()
	onJournals(t, func(t *testing.T, journal string) {
		const n = 20
		s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"for":"`+r.Header.Get("Idempotency-Key")+`"}`)
		})
		commandtest.Enqueue(t, journal, s.URL, n)
		w := commandtest.StartWork(t, "--journal", journal)
		seen := map[string]bool{}
		for range n {
			l, more := w.Next(t)
			if want := fmt.Sprintf(`{"for":"%s"}`, l.Key); !more || seen[l.Key] || l.Result != results.Done || l.Source != "wire" || string(l.Body) != want {
				t.Fatalf("line %+v, body %s", l, l.Body)
			}
			seen[l.Key] = true
		}
		if status, now := w.Ask(t); status != http.StatusOK || now.Status != "ok" || now.Outcomes["confirmed"] != n || now.Attempts != n {
			t.Errorf("healthz answers %d: %+v", status, now)
		}
		if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK || s.Sends.Load() != n {
			t.Errorf("status %d after %d sends: %s", got, s.Sends.Load(), w.Errs.Await(t, "(?s).*"))
		}
		if out := commandtest.Run(t, "journal", "list", "--journal", journal, "--state", "pending,held").Want(t, terminal.ExitOK).Out; strings.Contains(out, "w:") {
			t.Errorf("left:\n%s", out)
		}
	})
}

// Where a header parts one key into several operations, each line is that of its own.
func TestWorkLinesOfAccounts(t *testing.T) {
	t.Parallel()
	onJournals(t, func(t *testing.T, journal string) {
		s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			account := r.Header.Get("Stripe-Account")
			if account == "acct_2" {
				w.WriteHeader(http.StatusPaymentRequired)
			}
			_, _ = io.WriteString(w, `{"account":"`+account+`"}`)
		})
		at, err := place.Parse(journal)
		if err != nil {
			t.Fatal(err)
		}
		ses, err := session.CreateSession(at, oncehttp.Config{Profile: profile.StripeV1()})
		if err != nil {
			t.Fatal(err)
		}
		for _, account := range []string{"acct_1", "acct_2", "acct_3"} {
			req, err := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("a=1"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Stripe-Account", account)
			if err := ses.Client.Enqueue(req, "k"); err != nil {
				t.Fatal(err)
			}
		}
		if err := ses.Close(); err != nil {
			t.Fatal(err)
		}
		w := commandtest.StartWork(t, "--journal", journal)
		got := map[string]string{}
		for range 3 {
			l, more := w.Next(t)
			if !more || l.Key != "k" {
				t.Fatalf("line %+v", l)
			}
			got[string(l.Body)] = fmt.Sprint(l.Result, " ", l.Status)
		}
		want := map[string]string{`{"account":"acct_1"}`: "done 200", `{"account":"acct_2"}`: "declined 402", `{"account":"acct_3"}`: "done 200"}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
			t.Errorf("status %d", got)
		}
	})
}

// Work is killed, and started again: each operation takes effect once, and none is lost.
func TestWorkKilled(t *testing.T) {
	t.Parallel()
	onJournals(t, func(t *testing.T, journal string) {
		const n, kills = 60, 3
		b := commandtest.OpenBank(t, 7)
		commandtest.Enqueue(t, journal, b.URL+"/payments", n)
		args := commandtest.Fast("--journal", journal, "--max-attempts", "40")
		for range kills {
			kill := b.KillAt(15)
			w := commandtest.StartWork(t, args...)
			<-kill
			if got := w.Stop(t, syscall.SIGKILL); got != -1 {
				t.Fatalf("status %d, want that of a killed process", got)
			}
			commandtest.EndLeases(t, journal)
		}
		b.KillAt(-1)
		w := commandtest.StartWork(t, args...)
		for b.Ledger().Snapshot().Effects < n {
			if _, more := w.Next(t); !more {
				t.Fatalf("it has ended: %s", w.Errs.Await(t, "(?s).*"))
			}
		}
		if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
			t.Errorf("status %d: %s", got, w.Errs.Await(t, "(?s).*"))
		}
		for key, c := range b.Ledger().Snapshot().Keys {
			if c.Effects != 1 {
				t.Errorf("%s: %d effects, want 1", key, c.Effects)
			}
		}
	})
}

// The first signal begins nothing more, and lets the attempt on the wire come to its end;
// the second ends the process.
func TestWorkStops(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string]int{"one": 1, "two": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onJournals(t, func(t *testing.T, journal string) {
				arrived, answer := make(chan struct{}, 10), make(chan struct{})
				s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
					arrived <- struct{}{}
					<-answer
					w.WriteHeader(http.StatusCreated)
				})
				release := sync.OnceFunc(func() { close(answer) })
				t.Cleanup(release)
				commandtest.Enqueue(t, journal, s.URL, 5)
				w := commandtest.StartWork(t, "--journal", journal, "--workers", "1")
				<-arrived
				if err := w.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				w.Errs.Await(t, "stopping")
				if signals == 2 {
					if got := commandtest.Killed(t, w.Cmd, os.Interrupt); got != -1 {
						t.Errorf("status %d, want that of a killed process", got)
					}
					return
				}
				if status, now := w.Ask(t); status != http.StatusServiceUnavailable || now.Status != "stopping" {
					t.Errorf("healthz answers %d: %+v", status, now)
				}
				release()
				if l, more := w.Next(t); !more || l.Status != http.StatusCreated {
					t.Errorf("line %+v", l)
				}
				if got := commandtest.Status(t, w.Cmd); got != terminal.ExitOK || s.Sends.Load() != 1 {
					t.Errorf("status %d after %d sends: %s", got, s.Sends.Load(), w.Errs.Await(t, "(?s).*"))
				}
			})
		})
	}
}

// Each origin gets its own credentials, and what has none stays pending.
func TestWorkCredentials(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	note := func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Host + " " + r.Header.Get("Authorization")
		w.WriteHeader(http.StatusCreated)
	}
	first, second, other := commandtest.Serve(t, note), commandtest.Serve(t, note), commandtest.Refusing(t)
	journal := filepath.Join(t.TempDir(), "j.db")
	commandtest.Enqueue(t, journal, first.URL+"/a", 1, "Authorization")
	args := []string{"--journal", journal, "--auth", second.URL + "=@" + commandtest.WriteFile(t, "auth", "Authorization: second\n"), "--origin", first.URL, "-H", "Authorization: first"}
	w := commandtest.StartWork(t, args...)
	if l, _ := w.Next(t); l.Result != results.Done {
		t.Errorf("line %+v", l)
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
	if got, want := <-seen, strings.TrimPrefix(first.URL, "http://")+" first"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	journal2 := filepath.Join(t.TempDir(), "j.db")
	commandtest.Enqueue(t, journal2, other.URL, 1, "Authorization")
	w = commandtest.StartWork(t, "--journal", journal2, "--auth", second.URL+"=")
	w.Errs.Await(t, `this client does not send to "`+other.URL+`"; name it with --origin, or --auth`)
	if got := w.Stop(t, syscall.SIGINT); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
	journal3 := filepath.Join(t.TempDir(), "j.db")
	commandtest.Enqueue(t, journal3, other.URL, 1, "Authorization")
	w = commandtest.StartWork(t, "--journal", journal3)
	w.Errs.Await(t, "left alone: 1, .*Authorization")
	if got := w.Stop(t, syscall.SIGHUP); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
}

func TestWorkUsage(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	commandtest.Enqueue(t, journal, commandtest.Refusing(t).URL, 1)
	auth := commandtest.WriteFile(t, "auth", "Authorization: hidden\n")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no journal":     {nil, "--journal is required"},
		"no such file":   {[]string{"--journal", journal + ".not"}, "no such file"},
		"workers":        {[]string{"--journal", journal, "--workers", "0"}, "--workers must be from 1"},
		"lease":          {[]string{"--journal", journal, "--lease", "99ms"}, "--lease must be at least 100ms"},
		"pause":          {[]string{"--journal", journal, "--max-pause", "1s"}, "a --max-pause of 1s is below the --max-delay of 30s"},
		"no pause":       {[]string{"--journal", journal, "--max-pause", "-1s"}, "--max-pause must not be negative"},
		"listen":         {[]string{"--journal", journal, "--listen", "nowhere"}, "--listen nowhere"},
		"-H alone":       {[]string{"--journal", journal, "-H", "Authorization: hidden"}, "one --origin, which says whose"},
		"-H of two":      {[]string{"--journal", journal, "-H", "Authorization: hidden", "--origin", "https://a", "--origin", "https://b"}, "one --origin, which says whose"},
		"origin":         {[]string{"--journal", journal, "--origin", "https://a/p"}, "--origin https://a/p: want an origin"},
		"a database":     {[]string{"--journal", "postgres://u@h/db"}, "say where it sends, with --origin ORIGIN"},
		"auth, no file":  {[]string{"--journal", journal, "--auth", "https://a=hidden"}, "--auth number 1: want ORIGIN=@FILE"},
		"auth, origin":   {[]string{"--journal", journal, "--auth", "a=@" + auth}, "want an origin"},
		"auth, twice":    {[]string{"--journal", journal, "--auth", "https://a=@" + auth, "--auth", "https://a:443=@" + auth}, "has its headers already"},
		"auth, no lines": {[]string{"--journal", journal, "--auth", "https://a=@" + auth + ".not"}, "no such file"},
		"command, none":  {[]string{"--journal", journal, "--auth-command", "https://a="}, "--auth-command number 1: want ORIGIN=PROGRAM and its arguments"},
		"command, gone":  {[]string{"--journal", journal, "--auth-command", "https://a=/no/such/program"}, "--auth-command number 1: fork/exec /no/such/program: no such file"},
		"command, fails": {[]string{"--journal", journal, "--auth-command", "https://a=false"}, "--auth-command number 1: exit status 1"},
		"command, quiet": {[]string{"--journal", journal, "--auth-command", "https://a=true"}, "--auth-command number 1: it printed no header"},
		"command, text":  {[]string{"--journal", journal, "--auth-command", "https://a=echo hidden"}, `--auth-command number 1: what it printed: line 1: want "Name: value"`},
		"command, twice": {[]string{"--journal", journal, "--auth", "https://a=@" + auth, "--auth-command", "https://a=echo A: hidden"}, "has its headers already"},
		"an argument":    {[]string{"x"}, "it takes no arguments"},

		"direct, a file":    {[]string{"--journal", journal, "--journal-direct", "postgres://u@h/db"}, "--journal-direct is for journals on PostgreSQL"},
		"direct, MariaDB":   {[]string{"--journal", "mysql://u@h/db", "--journal-direct", "postgres://u@h/db"}, "--journal-direct is for journals on PostgreSQL"},
		"direct, no URL":    {[]string{"--journal", "postgres://u@h/db", "--journal-direct", "host=h password=hidden"}, "--journal-direct: that is how a driver is told where a database is; want a URL"},
		"direct, empty":     {[]string{"--journal", "postgres://u@h/db", "--journal-direct", ""}, "--journal-direct is empty"},
		"direct, password":  {[]string{"--journal", "postgres://u@h/db", "--journal-direct", "postgres://u:hidden@h/db"}, "--journal-direct: a password there"},
		"direct, broken":    {[]string{"--journal", "postgres://u@h/db", "--journal-direct", "postgres://u@h@/db#x"}, "--journal-direct: the URL cannot be read"},
		"direct, elsewhere": {[]string{"--journal", "postgres://u@h/db", "--journal-direct", "redis://h"}, "--journal-direct: want a URL"},
		"direct, a schema":  {[]string{"--journal", "postgres://u@h/db", "--journal-direct", "postgres://u@h/db?schema=other"}, "leave that to --journal"},
		"direct, no file":   {[]string{"--journal", "postgres://u@h/db", "--journal-direct", "@" + auth + ".not"}, "--journal-direct: "},
		"direct, no option": {append([]string{"--journal", "postgres://u@h/db", "--journal-direct", "postgres://u@h/db?sslmode=strange"}, commandtest.ToTestServers...), "--journal-direct cannot be read"},
	} {
		got := commandtest.Run(t, append([]string{"work"}, tt.args...)...).Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, tt.want) || strings.Count(got.Err, "\n") != 1 || strings.Contains(got.Err, "hidden") {
			t.Errorf("%s: %q, want a line with %q", name, got.Err, tt.want)
		}
	}
}

// A worker that was not told of --declined has the values of earlier runs on its journal.
func TestWorkKnowsDeclined(t *testing.T) {
	t.Parallel()
	onJournals(t, func(t *testing.T, journal string) {
		s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"status":"failed"}`)
		})
		commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", journal, "--declined", "/status=failed").Want(t, terminal.ExitRefused)
		commandtest.EnqueueOne(t, journal, s.URL, "later", `{"id":"b"}`)
		w := commandtest.StartWork(t, "--journal", journal)
		w.Errs.Await(t, "(declined is also /status=failed)")
		if l, more := w.Next(t); !more || l.Result != results.Declined {
			t.Errorf("line %+v, want declined", l)
		}
		w.Stop(t, syscall.SIGTERM)
	})
}

// TestWorkLinesHaveDoubts: a line of --lines has the word against a success, as a line of batch does.
func TestWorkLinesHaveDoubts(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"resultCode":"Refused"}`)
	})
	journal := filepath.Join(t.TempDir(), "j.db")
	commandtest.Enqueue(t, journal, s.URL, 1)
	w := commandtest.StartWork(t, "--journal", journal)
	if l, more := w.Next(t); !more || l.Result != results.Done || l.Doubt != "/resultCode=Refused" {
		t.Errorf("line %+v", l)
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
}
