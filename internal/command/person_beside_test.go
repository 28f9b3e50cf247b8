package command_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	osexec "os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/testrun"
)

// ledger is an API that counts sends by key. One key in three takes effect, and its answers are lost: the first, and where it is
// not calm, all. Until open is closed it serves most keys; nil: any number.
type ledger struct {
	mu    sync.Mutex
	sends map[string]int
	calm  bool
	most  int
	open  chan struct{}
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	l.mu.Lock()
	l.sends[key]++
	answers := l.calm && l.sends[key] > 1 || lostFirst(key) == 0
	waits := l.open != nil && len(l.sends) > l.most
	l.mu.Unlock()
	if waits {
		<-l.open
	}
	time.Sleep(20 * time.Millisecond)
	if !answers {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
}

// lostFirst is 1 for a key whose first answer is lost, else 0.
func lostFirst(key string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key))
	if sum.Sum32()%3 == 0 {
		return 1
	}
	return 0
}

func (l *ledger) of(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sends[key]
}

func (l *ledger) keys() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sends)
}

// enqueueAll enqueues n operations w:0, w:1 and so on, 8 at a time.
func enqueueAll(t *testing.T, journal, target string, n int) {
	t.Helper()
	at, err := place.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	ses, err := session.CreateSession(at, oncehttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < n; i += 8 {
				req, err := http.NewRequest(http.MethodPost, target, strings.NewReader("{}"))
				if err == nil {
					err = ses.Client.Enqueue(req, oncehttp.Key(fmt.Sprintf("w:%d", i)))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := ses.Close(); err != nil {
		t.Fatal(err)
	}
}

// listedViews are the operations of a listing, by key.
func listedViews(t *testing.T, journal string, flags ...string) map[string]view.Record {
	t.Helper()
	all := map[string]view.Record{}
	text := json.NewDecoder(strings.NewReader(commandtest.Run(t, append([]string{"journal", "list", "--json", "--journal", journal}, flags...)...).Want(t, terminal.ExitOK).Out))
	for text.More() {
		var v view.Record
		if err := text.Decode(&v); err != nil {
			t.Fatal(err)
		}
		all[v.Key] = v
	}
	return all
}

// keysBehind are the keys that a command named behind a word.
func keysBehind(got commandtest.Ran, word string) (keys []string) {
	for text := range strings.Lines(got.Out) {
		if key, found := strings.CutPrefix(strings.TrimSpace(text), word+": "); found {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestPersonBesideWorkers: a person lists 1,500 operations that nobody has sent. While two workers, processes of their own, send them, the
// person settles, abandons and begins anew by that list, prunes, and says restored. What is settled as absent was never sent, by the
// API's own count; what was sent is left alone.
func TestPersonBesideWorkers(t *testing.T) {
	t.Parallel()
	n := testrun.N(300, 1500)
	third := n / 3
	books := &ledger{sends: map[string]int{}, most: third + third/5, open: make(chan struct{})} // however slow the person is, some are left
	s := commandtest.Serve(t, books.ServeHTTP)
	open := sync.OnceFunc(func() { close(books.open) })
	t.Cleanup(open) // before s ends, which waits for what it serves
	server := commandtest.Servers()["postgres"]
	journal := server.Database(t, server.URL(t))
	commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
	enqueueAll(t, journal, s.URL, n)
	seen := listedViews(t, journal)
	list := func(from int) string { // the last first: the workers begin with the oldest
		var b strings.Builder
		for i := from + third - 1; i >= from; i-- {
			b.WriteString(seen[fmt.Sprintf("w:%d", i)].Seen + "\n")
		}
		return b.String()
	}
	stop := startWorkers(t, journal, 2)
	for deadline := time.Now().Add(time.Minute); books.keys() < 20; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the workers send nothing")
		}
	}
	absent := func(from int) commandtest.Ran {
		return commandtest.RunWith(t, list(from), "journal", "settle", "-", "--absent", "--yes", "--journal", journal)
	}
	var settled, abandoned, late commandtest.Ran
	var acts sync.WaitGroup
	acts.Go(func() { // one after the other, since each opens 16 connections, and other tests open theirs
		late = absent(0)
		abandoned = commandtest.RunWith(t, list(third), "journal", "abandon", "-", "--yes", "--journal", journal)
		settled = absent(2 * third)
	})
	acts.Go(func() {
		for range 3 {
			for what, want := range map[string]int{"prune": terminal.ExitOK, "compact": terminal.ExitUsage, "restored": terminal.ExitUnknown} {
				args := []string{"journal", what, "--journal", journal}
				if what == "restored" {
					args = append(args, "--taken", time.Now().UTC().Format(time.RFC3339Nano))
				}
				if got := commandtest.Run(t, args...); got.Status != want {
					t.Errorf("%s beside workers: status %d, want %d: %s%s", what, got.Status, want, got.Out, got.Err)
				}
			}
		}
	})
	acts.Wait()
	open()
	ended := append(keysBehind(settled, "settled as absent"), keysBehind(late, "settled as absent")...)
	given := keysBehind(abandoned, "abandoned")
	if len(ended) == 0 || len(ended) == 2*third || len(given) == 0 || !strings.Contains(settled.Out+late.Out, "left alone, ") {
		t.Errorf("%d settled, %d abandoned; want some of each, and some left alone. stderr %q", len(ended), len(given), words.Clip(settled.Err+late.Err+abandoned.Err))
	}
	var again []string
	for _, key := range ended[:min(len(ended), 20)] {
		again = append(again, key+":gen=2")
		commandtest.Run(t, "journal", "rekey", seen[key].Seen, key+":gen=2", "--reason", "nobody had sent it", "--journal", journal).Want(t, terminal.ExitOK)
	}
	drained(t, journal)
	stop()
	now := listedViews(t, journal)
	for key, v := range now {
		switch sends := books.of(key); {
		case v.State == "settled" && sends != 0:
			t.Errorf("%s was settled as absent, and was sent %d times", key, sends)
		case v.State == "settled" != slices.Contains(ended, key):
			t.Errorf("%s is %s", key, v.State)
		case v.State == "abandoned" && sends != 0 && !v.MaybeSent:
			t.Errorf("%s was abandoned as never sent, and was sent %d times", key, sends)
		case v.State == "confirmed" && sends == 0:
			t.Errorf("%s is confirmed, and was never sent", key)
		}
	}
	for _, key := range again {
		if state := now[key].State; state != "confirmed" && lostFirst(key) == 0 {
			t.Errorf("%s is %q, want confirmed", key, state)
		}
	}
	if len(now) != n+len(again) {
		t.Errorf("%d operations, want %d", len(now), n+len(again))
	}
	commandtest.Run(t, "journal", "restored", "--journal", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano)).Want(t, terminal.ExitOK)
}

// startWorkers starts workers, processes of their own. stop ends them.
func startWorkers(t *testing.T, journal string, n int) (stop func()) {
	t.Helper()
	var all []*osexec.Cmd
	for range n {
		cmd, _ := commandtest.Child(t, "work", "--origin", "http://127.0.0.1:*", "--listen", "127.0.0.1:0", "--journal", journal, "--workers", "4", "--max-attempts", "1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
		all = append(all, cmd)
	}
	return func() {
		t.Helper()
		for _, cmd := range all {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			if got := commandtest.Status(t, cmd); got != terminal.ExitOK {
				t.Errorf("a worker ends with %d", got)
			}
		}
	}
}

// drained waits until nothing is pending but what gets no answer.
func drained(t *testing.T, journal string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		left := ""
		for key := range listedViews(t, journal, "--state", "pending") {
			if lostFirst(key) == 0 {
				left = key
			}
		}
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still pending", left)
		}
	}
}

// TestTwoBatchesOfOneFile: two processes run one file beside each other, and a third time comes later. Each row is sent once, and
// what is in doubt, again under its key.
func TestTwoBatchesOfOneFile(t *testing.T) {
	t.Parallel()
	n := testrun.N(100, 200)
	books := &ledger{sends: map[string]int{}, calm: true}
	s := commandtest.Serve(t, books.ServeHTTP)
	server := commandtest.Servers()["postgres"]
	journal := server.Database(t, server.URL(t))
	commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
	rows := "id\n"
	for i := range n {
		rows += fmt.Sprintf("%d\n", i)
	}
	file := commandtest.WriteFile(t, "in.csv", rows)
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "8", "--journal", journal, "--quiet"}
	var both []*osexec.Cmd
	for range 2 {
		cmd, _ := commandtest.Child(t, batch...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		both = append(both, cmd)
	}
	for _, cmd := range both {
		if got := commandtest.Status(t, cmd); got != terminal.ExitOK && got != terminal.ExitUnknown {
			t.Errorf("status %d", got)
		}
	}
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	books.mu.Lock()
	defer books.mu.Unlock()
	if len(books.sends) != n {
		t.Errorf("%d keys were sent, want %d", len(books.sends), n)
	}
	for key, sends := range books.sends {
		if sends > 1+lostFirst(key) {
			t.Errorf("%s was sent %d times", key, sends)
		}
	}
}
