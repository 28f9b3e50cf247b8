package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/profile"
)

// onJournals runs the test with an empty journal of its own: a file, and on each server.
func onJournals(t *testing.T, test func(t *testing.T, journal string)) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "j.db"))
	})
	onServers(t, test)
}

// enqueue enqueues POSTs to target under the keys w:0 to w:n-1, and leaves the journal.
func enqueue(t *testing.T, journal, target string, n int, header ...string) {
	t.Helper()
	at, err := parsePlace(journal)
	if err != nil {
		t.Fatal(err)
	}
	ses, err := openSession(at, oncehttp.Config{Origins: []string{}, Authorize: func(*http.Request) error { return nil }}, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		req, err := http.NewRequest(http.MethodPost, target, strings.NewReader(fmt.Sprintf(`{"n":%d}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range header {
			req.Header.Set(name, "not kept")
		}
		if err := ses.client.Enqueue(req, oncehttp.Key(fmt.Sprintf("w:%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := ses.close(); err != nil {
		t.Fatal(err)
	}
}

// working is work in a process of its own.
type working struct {
	cmd    *osexec.Cmd
	health string // the URL of /healthz
	lines  *bufio.Reader
	errs   *lockedText
}

// lockedText is what a process has written so far.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends.
func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// await waits until what was written matches, and returns the last submatch.
func (l *lockedText) await(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if m := re.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("nothing that matches %s in:\n%s", pattern, text)
		}
	}
}

// toTestServers lets work send to the servers of tests, which it has to be told where the journal is on a database.
var toTestServers = []string{"--origin", "http://127.0.0.1:*"}

// startWork starts work with these arguments, and waits until it works. It sends to the servers of tests, unless the arguments say where.
func startWork(t *testing.T, args ...string) *working {
	t.Helper()
	if !slices.Contains(args, "--origin") && !slices.Contains(args, "--auth") {
		args = append(toTestServers, args...)
	}
	w := &working{errs: &lockedText{}}
	w.cmd, _ = child(t, append([]string{"work", "--listen", "127.0.0.1:0", "--lines"}, args...)...)
	w.cmd.Stderr = w.errs
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.lines = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() }) // it may have ended
	w.health = w.errs.await(t, `working on .*(http://.*/healthz)`)
	return w
}

// next is the next line, and false at the end.
func (w *working) next(t *testing.T) (line, bool) {
	t.Helper()
	text, err := w.lines.ReadString('\n')
	if err != nil {
		return line{}, false
	}
	return ran{out: text}.only(t), true
}

// ask asks /healthz.
func (w *working) ask(t *testing.T) (status int, now counts) {
	t.Helper()
	resp, err := http.Get(w.health)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&now); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, now
}

// stop sends the signal, reads what is left, and returns the exit status.
func (w *working) stop(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := w.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, w.lines)
	return status(t, w.cmd)
}

// Work sends what was enqueued, prints a line for each, says how it is, and stops with
// status 0 when it is told to.
func TestWork(t *testing.T) {
	t.Parallel()
	onJournals(t, func(t *testing.T, journal string) {
		const n = 20
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"for":"`+r.Header.Get("Idempotency-Key")+`"}`)
		})
		enqueue(t, journal, s.url, n)
		w := startWork(t, "--journal", journal)
		seen := map[string]bool{}
		for range n {
			l, more := w.next(t)
			if want := fmt.Sprintf(`{"for":"%s"}`, l.Key); !more || seen[l.Key] || l.Result != resultDone || l.Source != "wire" || string(l.Body) != want {
				t.Fatalf("line %+v, body %s", l, l.Body)
			}
			seen[l.Key] = true
		}
		if status, now := w.ask(t); status != http.StatusOK || now.Status != "ok" || now.Outcomes["confirmed"] != n || now.Attempts != n {
			t.Errorf("healthz answers %d: %+v", status, now)
		}
		if got := w.stop(t, syscall.SIGTERM); got != exitOK || s.sends.Load() != n {
			t.Errorf("status %d after %d sends: %s", got, s.sends.Load(), w.errs.await(t, "(?s).*"))
		}
		if out := run(t, "journal", "list", "--journal", journal, "--state", "pending,held").want(t, exitOK).out; strings.Contains(out, "w:") {
			t.Errorf("left:\n%s", out)
		}
	})
}

// Where a header parts one key into several operations, each line is that of its own.
func TestWorkLinesOfAccounts(t *testing.T) {
	t.Parallel()
	onJournals(t, func(t *testing.T, journal string) {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			account := r.Header.Get("Stripe-Account")
			if account == "acct_2" {
				w.WriteHeader(http.StatusPaymentRequired)
			}
			_, _ = io.WriteString(w, `{"account":"`+account+`"}`)
		})
		at, err := parsePlace(journal)
		if err != nil {
			t.Fatal(err)
		}
		ses, err := openSession(at, oncehttp.Config{Profile: profile.StripeV1()}, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, account := range []string{"acct_1", "acct_2", "acct_3"} {
			req, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader("a=1"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Stripe-Account", account)
			if err := ses.client.Enqueue(req, "k"); err != nil {
				t.Fatal(err)
			}
		}
		if err := ses.close(); err != nil {
			t.Fatal(err)
		}
		w := startWork(t, "--journal", journal)
		got := map[string]string{}
		for range 3 {
			l, more := w.next(t)
			if !more || l.Key != "k" {
				t.Fatalf("line %+v", l)
			}
			got[string(l.Body)] = fmt.Sprint(l.Result, " ", l.Status)
		}
		want := map[string]string{`{"account":"acct_1"}`: "done 200", `{"account":"acct_2"}`: "declined 402", `{"account":"acct_3"}`: "done 200"}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if got := w.stop(t, syscall.SIGTERM); got != exitOK {
			t.Errorf("status %d", got)
		}
	})
}

// Work is killed, and started again: each operation takes effect once, and none is lost.
func TestWorkKilled(t *testing.T) {
	t.Parallel()
	onJournals(t, func(t *testing.T, journal string) {
		const n, kills = 60, 3
		b := openBank(t, 7)
		enqueue(t, journal, b.url+"/payments", n)
		args := fast("--journal", journal, "--max-attempts", "40")
		for range kills {
			kill := b.killAt(15)
			w := startWork(t, args...)
			<-kill
			if got := w.stop(t, syscall.SIGKILL); got != -1 {
				t.Fatalf("status %d, want that of a killed process", got)
			}
			endLeases(t, journal)
		}
		b.killAt(-1)
		w := startWork(t, args...)
		for b.Ledger().Snapshot().Effects < n {
			if _, more := w.next(t); !more {
				t.Fatalf("it has ended: %s", w.errs.await(t, "(?s).*"))
			}
		}
		if got := w.stop(t, syscall.SIGTERM); got != exitOK {
			t.Errorf("status %d: %s", got, w.errs.await(t, "(?s).*"))
		}
		for key, c := range b.Ledger().Snapshot().Keys {
			if c.Effects != 1 {
				t.Errorf("%s: %d effects, want 1", key, c.Effects)
			}
		}
	})
}

// endLeases makes it so late that the leases of a process that was killed are over.
func endLeases(t *testing.T, journal string) {
	t.Helper()
	if !hasScheme.MatchString(journal) {
		return
	}
	db, table := records(t, journal)
	mustExec(t, db, "UPDATE "+table+" SET lease_until = 1 WHERE state = 0")
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
				s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					arrived <- struct{}{}
					<-answer
					w.WriteHeader(http.StatusCreated)
				})
				release := sync.OnceFunc(func() { close(answer) })
				t.Cleanup(release)
				enqueue(t, journal, s.url, 5)
				w := startWork(t, "--journal", journal, "--workers", "1")
				<-arrived
				if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				w.errs.await(t, "stopping")
				if signals == 2 {
					if got := killed(t, w.cmd); got != -1 {
						t.Errorf("status %d, want that of a killed process", got)
					}
					return
				}
				if status, now := w.ask(t); status != http.StatusServiceUnavailable || now.Status != "stopping" {
					t.Errorf("healthz answers %d: %+v", status, now)
				}
				release()
				if l, more := w.next(t); !more || l.Status != http.StatusCreated {
					t.Errorf("line %+v", l)
				}
				if got := status(t, w.cmd); got != exitOK || s.sends.Load() != 1 {
					t.Errorf("status %d after %d sends: %s", got, s.sends.Load(), w.errs.await(t, "(?s).*"))
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
	first, second, other := serve(t, note), serve(t, note), refusing(t)
	journal := filepath.Join(t.TempDir(), "j.db")
	enqueue(t, journal, first.url+"/a", 1, "Authorization")
	args := []string{"--journal", journal, "--auth", second.url + "=@" + writeFile(t, "auth", "Authorization: second\n"), "--origin", first.url, "-H", "Authorization: first"}
	w := startWork(t, args...)
	if l, _ := w.next(t); l.Result != resultDone {
		t.Errorf("line %+v", l)
	}
	if got := w.stop(t, syscall.SIGTERM); got != exitOK {
		t.Errorf("status %d", got)
	}
	if got, want := <-seen, strings.TrimPrefix(first.url, "http://")+" first"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	journal2 := filepath.Join(t.TempDir(), "j.db")
	enqueue(t, journal2, other.url, 1, "Authorization")
	w = startWork(t, "--journal", journal2, "--auth", second.url+"=")
	w.errs.await(t, `this client does not send to "`+other.url+`"; name it with --origin, or --auth`)
	if got := w.stop(t, syscall.SIGINT); got != exitOK {
		t.Errorf("status %d", got)
	}
	journal3 := filepath.Join(t.TempDir(), "j.db")
	enqueue(t, journal3, other.url, 1, "Authorization")
	w = startWork(t, "--journal", journal3)
	w.errs.await(t, "left alone: 1, .*Authorization")
	if got := w.stop(t, syscall.SIGHUP); got != exitOK {
		t.Errorf("status %d", got)
	}
}

func TestWorkUsage(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	enqueue(t, journal, refusing(t).url, 1)
	auth := writeFile(t, "auth", "Authorization: hidden\n")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no journal":     {nil, "--journal is required"},
		"no such file":   {[]string{"--journal", journal + ".not"}, "no such file"},
		"workers":        {[]string{"--journal", journal, "--workers", "0"}, "--workers must be from 1"},
		"listen":         {[]string{"--journal", journal, "--listen", "nowhere"}, "--listen nowhere"},
		"-H alone":       {[]string{"--journal", journal, "-H", "Authorization: hidden"}, "one --origin, which says whose"},
		"-H of two":      {[]string{"--journal", journal, "-H", "Authorization: hidden", "--origin", "https://a", "--origin", "https://b"}, "one --origin, which says whose"},
		"origin":         {[]string{"--journal", journal, "--origin", "https://a/p"}, "--origin https://a/p: want an origin"},
		"a database":     {[]string{"--journal", "postgres://u@h/db"}, "say where it sends, with --origin ORIGIN"},
		"auth, no file":  {[]string{"--journal", journal, "--auth", "https://a=hidden"}, "--auth number 1: want ORIGIN=@FILE"},
		"auth, origin":   {[]string{"--journal", journal, "--auth", "a=@" + auth}, "want an origin"},
		"auth, twice":    {[]string{"--journal", journal, "--auth", "https://a=@" + auth, "--auth", "https://a:443=@" + auth}, "has its headers already"},
		"auth, no lines": {[]string{"--journal", journal, "--auth", "https://a=@" + auth + ".not"}, "no such file"},
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
		"direct, no option": {append([]string{"--journal", "postgres://u@h/db", "--journal-direct", "postgres://u@h/db?sslmode=strange"}, toTestServers...), "--journal-direct cannot be read"},
	} {
		got := run(t, append([]string{"work"}, tt.args...)...).want(t, exitUsage)
		if !strings.Contains(got.err, tt.want) || strings.Count(got.err, "\n") != 1 || strings.Contains(got.err, "hidden") {
			t.Errorf("%s: %q, want a line with %q", name, got.err, tt.want)
		}
	}
}
