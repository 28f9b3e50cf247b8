package journal_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
)

// route answers every request with the status, without a network.
type route int

// RoundTrip implements http.RoundTripper.
func (r route) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	return &http.Response{StatusCode: int(r), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"error":"no route"}`)), Request: req}, nil
}

// opened opens the journal.
func opened(t *testing.T, at string) persist.Journal {
	t.Helper()
	p, err := place.ParseSealed("--journal", at, "")
	if err != nil {
		t.Fatal(err)
	}
	j, err := place.Open(p, true)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// routed calls do with a client over the route.
func routed(t *testing.T, at string, r route, do func(c *oncehttp.Client)) {
	t.Helper()
	j := opened(t, at)
	c, err := oncehttp.New(oncehttp.Config{Journal: j, Transport: r, Origins: []string{"https://api.example.com"}, ResumeWorkers: 64})
	if err != nil {
		t.Fatal(err)
	}
	do(c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// payment is a request of an amount.
func payment(t *testing.T, amount, currency string) *http.Request {
	t.Helper()
	req, err := http.NewRequest("POST", "https://api.example.com/payments", strings.NewReader(fmt.Sprintf(`{"amount":%q,"currency":%q}`, amount, currency)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// passed enqueues the operations of these keys, and runs a pass.
func passed(t *testing.T, c *oncehttp.Client, currency string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := c.Enqueue(payment(t, "1.10", currency), oncehttp.Key(key)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range c.Resume(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedriveBulk: in bulk it takes what nobody was told, after it has printed totals; the rest is counted, and taken by name with --told.
func TestRedriveBulk(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "j.db")
	routed(t, at, 404, func(c *oncehttp.Client) {
		passed(t, c, "EUR", "e1", "e2", "asked")
		passed(t, c, "USD", "u1")
		for _, key := range []oncehttp.Key{"done", "asked"} { // a call ends the first, and asks for the end of the second
			resp, err := c.DoKey(payment(t, "1.10", "EUR"), key)
			if err != nil || resp.StatusCode != 404 {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	})
	routed(t, at, 402, func(c *oncehttp.Client) { passed(t, c, "EUR", "declined") })
	redrive := func(args ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"journal", "redrive", "--journal", at}, args...)...)
	}
	for _, wrong := range []struct{ args, err string }{
		{"", "say --status, or name each KEY"}, {"k --since 2h", "are for --status"}, {"--status 404 --told --reason r", "one by one"},
		{"--status abc --reason r", "want a whole number"}, {"--status 404", "say why"}, {"--status 404 --reason r --run x", "not the id of a run"}, {"--status 404 --dry-run --where a=b", "POINTER=VALUE"},
		{"--status 404 --reason r", "3 operations would be begun once more; to go ahead all the same: --yes"},
	} {
		redrive(strings.Fields(wrong.args)...).Want(t, terminal.ExitUsage).WantErr(t, wrong.err)
	}
	totals := "status 404: 3 operations to redrive\n  total /amount EUR: 2.20 in 2 operations = 2.20 in 2 invalid\n  total /amount USD: 1.10 in 1 operation = 1.10 in 1 invalid\n" +
		"left alone: 2 operations told, or maybe told, to a caller\n"
	got := redrive("--status", "404", "--since", "2h", "--sum", "/amount", "--currency", "/currency", "--dry-run").Want(t, terminal.ExitOK)
	if got.Out != totals {
		t.Errorf("dry run:\n%s\nwant\n%s", got.Out, totals)
	}
	got = redrive("--status", "404", "--where", "/currency=EUR", "--reason", "the route was wrong", "--yes").Want(t, terminal.ExitOK)
	if !strings.HasSuffix(got.Out, "redriven: 2 operations of 2\n") {
		t.Error(got.Out)
	}
	run := runOf(t, got.Err)
	got = redrive("--status", "404", "--reason", "r", "--yes", "--run", run).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Out, "left alone: 2 operations begun by this run already\n") || !strings.HasSuffix(got.Out, "redriven: 1 operation of 1\n") {
		t.Error(got.Out)
	}
	redrive("--status", "404", "--reason", "r", "--yes").Want(t, terminal.ExitRefused).WantErr(t, "nothing was begun: 2 ends may have been told to a program")
	redrive("done", "--reason", "r").WantErr(t, "a caller may have been told of its end, and have begun it once more; if nobody has, say --told")
	if got := commandtest.RunWith(t, "done\nasked\n", "journal", "redrive", "-", "--told", "--reason", "they agree", "--journal", at).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "redriven") {
		t.Error(got.Out)
	}
	if out := commandtest.Run(t, "journal", "show", "e1", "--journal", at).Out; !strings.Contains(out, "replaced  by e1:gen=2\n") {
		t.Error(out)
	}
	if out := commandtest.Run(t, "journal", "show", "e1:gen=2", "--journal", at).Out; !strings.Contains(out, "replaces  e1\n") || !strings.Contains(out, run) || !strings.Contains(out, "the route was wrong (") {
		t.Error(out)
	}
	routed(t, at, 404, func(c *oncehttp.Client) { passed(t, c, "EUR") }) // refused anew, after the run began
	if got := redrive("--status", "404", "--reason", "r", "--yes", "--run", run).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "nothing to redrive\n") {
		t.Error(got.Out)
	}
	redrive("e1", "--told", "--reason", "r").Want(t, terminal.ExitUsage).WantErr(t, `redrive "e1": e1:gen=2 stands in its place (confirmed, 404); redrive that one: oncehttp journal redrive e1:gen=2 --told --reason WHY --journal `)
	got = redrive("e1:gen=2", "--told", "--reason", "r").Want(t, terminal.ExitOK)
	if got.Out != "redriven: e1:gen=2\n" || !strings.HasPrefix(got.Err, "begun as e1:gen=3; a worker or the program sends it, or: oncehttp journal resume e1:gen=3 --journal ") {
		t.Errorf("stdout %q, stderr %q", got.Out, got.Err)
	}
	if again := redrive("e1:gen=2", "--told", "--reason", "r").Want(t, terminal.ExitOK); again.Out != "redriven: e1:gen=2\n" || again.Err != "" {
		t.Errorf("once more, while it is pending: stdout %q, stderr %q", again.Out, again.Err)
	}
}

// TestRedriveOfGenerations: an operation whose next generation a batch has begun is counted so, and nobody is asked to name its key. By its key
// alone it is refused as a wrong call; one of several is work that was refused.
func TestRedriveOfGenerations(t *testing.T) {
	t.Parallel()
	var found atomic.Bool
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !found.Load() {
			http.Error(w, "no such route", http.StatusNotFound)
		}
	})
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n2\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
	commandtest.Run(t, args...).Want(t, terminal.ExitRefused)
	found.Store(true)
	commandtest.Run(t, append(args, "--generation", "2")...).Want(t, terminal.ExitOK)
	redrive := func(args ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"journal", "redrive", "--reason", "r", "--journal", file + ".oncehttp.db"}, args...)...)
	}
	got := redrive("--status", "404", "--yes").Want(t, terminal.ExitOK)
	if want := "nothing to redrive\nleft alone: 2 operations whose next generation stands already\n"; got.Out != want || got.Err != "" {
		t.Errorf("stdout %q, want %q; stderr %q", got.Out, want, got.Err)
	}
	redrive("idemp:o:1", "--told").Want(t, terminal.ExitUsage)
	redrive("idemp:o:1", "idemp:o:2", "--told").Want(t, terminal.ExitRefused)
}

// runOf returns the id of the run that was printed.
func runOf(t *testing.T, errs string) string {
	t.Helper()
	m := regexp.MustCompile(`run (\S+);`).FindStringSubmatch(errs)
	if m == nil {
		t.Fatalf("no run in %q", errs)
	}
	return m[1]
}

var redriven = flag.Int("redriven", testrun.N(500, 1000), "the operations of TestRedriveKilled")

// TestRedriveKilled: a redrive in bulk is killed again and again, and goes on with its run. In the end each operation has exactly one
// successor, and all have. The time is logged: -args -redriven 30000.
func TestRedriveKilled(t *testing.T) {
	t.Parallel()
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		redriveKilled(t, filepath.Join(t.TempDir(), "j.db"))
	})
	commandtest.OnServers(t, redriveKilled)
}

func redriveKilled(t *testing.T, at string) {
	n := *redriven
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("order:%d", i)
	}
	routed(t, at, 404, func(c *oncehttp.Client) { passed(t, c, "EUR", keys...) })
	time.Sleep(2 * time.Second) // the clock of a client may be ahead of the journal's: it takes what ended before its start
	args := []string{"journal", "redrive", "--journal", at, "--status", "404", "--since", "2h", "--reason", "the route was wrong", "--yes"}
	began, killed := time.Now(), 0
	for range 4 {
		kill := make(chan struct{})
		timer := time.AfterFunc(time.Duration(20+rand.IntN(100+n/20))*time.Millisecond, func() { close(kill) })
		status, _, errs := commandtest.Command(t, kill, args...)
		if timer.Stop(); status == terminal.ExitOK {
			break
		}
		killed++
		if strings.Contains(errs, "run ") && args[len(args)-2] != "--run" {
			args = append(args, "--run", runOf(t, errs))
		}
	}
	status, out, errs := commandtest.Command(t, nil, args...)
	t.Logf("%d operations, %d kills: %v", n, killed, time.Since(began))
	if status != terminal.ExitOK {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	j := opened(t, at)
	defer j.Close()
	successors, runs := map[string]int{}, map[string]bool{}
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Replaces != "" {
			successors[rec.Replaces]++
			runs[rec.RedriveRun] = true
		} else if rec.ReplacedBy != rec.Key+":gen=2" {
			t.Errorf("%s is replaced by %q", rec.Key, rec.ReplacedBy)
		}
	}
	for _, key := range keys {
		if successors[key] != 1 {
			t.Errorf("%s has %d successors", key, successors[key])
		}
	}
	if len(runs) > 2 { // one more if a kill came before its id was printed
		t.Errorf("runs %v", runs)
	}
}

// TestUnsettle: a settlement is taken back, with the reason, and what callers were told meanwhile; it is refused where it goes on elsewhere.
func TestUnsettle(t *testing.T) {
	t.Parallel()
	at := commandtest.DoubtJournal(t)
	unsettle := func(args ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"journal", "unsettle", "--journal", at}, args...)...)
	}
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, at, "idemp:o:2"), "--absent", "--yes", "--reason", "not at the bank", "--journal", at).Want(t, terminal.ExitOK)
	unsettle("idemp:o:2").Usage(t, "oncehttp: say why, with --reason")
	got := unsettle("idemp:o:2", "--reason", "it is at the bank").Want(t, terminal.ExitOK)
	if got.Out != "held again: idemp:o:2\n" || !strings.Contains(got.Err, "idemp:o:2: settled as absent since ") || !strings.Contains(got.Err, "; no call has asked since") {
		t.Errorf("%q, %q", got.Out, got.Err)
	}
	if got := unsettle("idemp:o:2", "--reason", "r").Want(t, terminal.ExitOK); got.Out != "held again already: idemp:o:2\n" {
		t.Error(got.Out)
	}
	out := commandtest.Run(t, "journal", "show", "idemp:o:2", "--journal", at).Want(t, terminal.ExitOK).Out
	for _, want := range []string{"held (reopened)", "settled as absent: not at the bank (", "reopened: it is at the bank ("} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	commandtest.Run(t, "journal", "settle", "idemp:o:2", "--happened", "--journal", at).Want(t, terminal.ExitOK)
	unsettle("idemp:o:1", "--reason", "r").WantErr(t, "and not settled")

	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, at, "idemp:o:3"), "--absent", "--yes", "--journal", at).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "redrive", "idemp:o:3", "--told", "--reason", "again", "--journal", at).Want(t, terminal.ExitOK)
	unsettle("idemp:o:3", "--reason", "r").WantErr(t, `it is replaced by "idemp:o:3:gen=2"`)
}

// TestRedriveNamesTheForgotten: a row that was rejected with the status, and that needs a run again and no redrive, is named.
func TestRedriveNamesTheForgotten(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(map[string]int{"/a": 404, "/b": 404, "/c": 403}[r.URL.Path])
		_, _ = io.WriteString(w, "<html>no</html>")
	})
	j := filepath.Join(t.TempDir(), "j.db")
	for _, key := range []string{"a", "b", "c"} {
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL+"/"+key, "-d", "{}", "--key", key, "--journal", j, "--max-attempts", "1")...)
	}
	redrive := func(args ...string) string {
		return commandtest.Run(t, append([]string{"journal", "redrive", "--status", "404", "--reason", "r", "--yes", "--journal", j}, args...)...).Want(t, terminal.ExitOK).Out
	}
	const before, after = "nothing to redrive\nno redrive is needed for ", " that the journal has forgotten: run the batch or the send again: "
	lists := "; oncehttp journal stuck --rejected --journal " + j + " lists them\n"
	for _, args := range [][]string{nil, {"--dry-run"}, {"--since", "1h"}} {
		if got, want := redrive(args...), before+"2 rejected operations"+after+"a, b"+lists; got != want {
			t.Errorf("%v: %q, want %q", args, got, want)
		}
	}
	if got, want := redrive("b"), before+"1 rejected operation"+after+"b"+lists; got != want {
		t.Errorf("b: %q, want %q", got, want)
	}
	if got := redrive("--origin", "https://api.example.com:443"); got != "nothing to redrive\n" {
		t.Errorf("another server: %q", got)
	}
	s2 := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	commandtest.Run(t, "send", "POST", s2.URL, "-d", "{}", "--key", "shop:AU-29", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "redrive", "AU-29", "--reason", "r", "--journal", j).Usage(t, "oncehttp: journal "+j+`: no operation has the key "AU-29"; there is "shop:AU-29"`)
	commandtest.Run(t, "send", "POST", s2.URL, "-d", "{}", "--key", "mall:AU-29", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "redrive", "AU-29", "--reason", "r", "--journal", j).Usage(t, "oncehttp: journal "+j+`: no operation has the key "AU-29"`)
}
