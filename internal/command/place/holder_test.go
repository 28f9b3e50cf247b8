package place_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// A journal in use can be listed, shown, exported and counted through its holder;
// whoever would change it is told who holds it.
func TestJournalInUse(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(arrived) })
		<-release
		w.WriteHeader(http.StatusCreated)
	})
	file := filepath.Join(commandtest.ShortDir(t), "in.csv")
	commandtest.WriteFile(t, file, "id\na\nb\n")
	done := make(chan commandtest.Ran)
	go func() {
		var out, errs strings.Builder
		status := command.Run(context.Background(), []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "1"}, strings.NewReader(""), &out, &errs)
		done <- commandtest.Ran{Status: status, Out: out.String(), Err: errs.String()}
	}()
	<-arrived
	j := file + ".oncehttp.db"
	if got := commandtest.Run(t, "journal", "list", "--journal", j).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "idemp:o:a") || !strings.Contains(got.Out, "maybe") {
		t.Errorf("list: %s", got.Out)
	}
	commandtest.Run(t, "journal", "show", "idemp:o:a", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "export", "--journal", j).Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, "journal", "stuck", "--journal", j).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "pending") {
		t.Errorf("stuck: %s", got.Out)
	}
	commandtest.Run(t, "journal", "show", "nobody", "--journal", j).Want(t, terminal.ExitUsage)
	got := commandtest.Run(t, "journal", "abandon", "idemp:o:a", "--journal", j).Want(t, terminal.ExitLocked)
	for _, part := range []string{"this process has it open already: ", ": process ", "since 20", "; wait for that process, or look with oncehttp journal list, which works meanwhile\n"} {
		if !strings.Contains(got.Err, part) {
			t.Errorf("stderr %q, want it to hold %q", got.Err, part)
		}
	}
	close(release)
	(<-done).Want(t, terminal.ExitOK)
	if left, _ := filepath.Glob(j + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	commandtest.Run(t, "journal", "list", "--journal", j).Want(t, terminal.ExitOK)
}

// A holder that lets nobody read, such as a program with the client inside, is not
// said to: journal list has to wait as everything else.
func TestJournalHeldByAnotherProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join(commandtest.ShortDir(t), "j.db")
	held, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	got := commandtest.Run(t, "journal", "list", "--journal", path).Want(t, terminal.ExitLocked)
	if !strings.HasSuffix(got.Err, "; wait for that process\n") || strings.Contains(got.Err, "look with") {
		t.Errorf("stderr %q", got.Err)
	}
}

// Several send commands on one journal do not wait for each other's requests, and
// the same key is not sent by two of them at once.
func TestSendsShareAJournal(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	under := map[string]int{}
	both, release := make(chan struct{}), make(chan struct{})
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		under[r.Header.Get("Idempotency-Key")]++
		if len(under) == 2 {
			close(both)
		}
		mu.Unlock()
		<-release
		w.WriteHeader(http.StatusCreated)
	})
	j := commandtest.JournalIn(t)
	send := func(key string) commandtest.Ran {
		var out, errs strings.Builder
		status := command.Run(context.Background(), []string{"send", "POST", s.URL, "-d", "{}", "--key", key, "--journal", j}, strings.NewReader(""), &out, &errs)
		return commandtest.Ran{Status: status, Out: out.String(), Err: errs.String()}
	}
	results := make(chan commandtest.Ran, 2)
	for _, key := range []string{"a", "b"} {
		go func() { results <- send(key) }()
	}
	select {
	case <-both:
	case <-time.After(time.Minute):
		t.Fatal("the second send waited for the first one's request")
	}
	if got := commandtest.Run(t, "journal", "stuck", "--journal", j).Want(t, terminal.ExitOK); strings.Count(got.Out, "pending") != 2 {
		t.Errorf("stuck: %s", got.Out)
	}
	if got := send("a"); got.Status != terminal.ExitUnknown || !strings.Contains(got.Err, "in flight") {
		t.Errorf("the same key at once: exit %d, stderr %q", got.Status, got.Err)
	}
	close(release)
	for range 2 {
		(<-results).Want(t, terminal.ExitOK)
	}
	if under["a"] != 1 || under["b"] != 1 {
		t.Errorf("sends %v", under)
	}
	if left, _ := filepath.Glob(j + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A send that was killed does not stop the next one with its lease.
func TestSendAfterAKilledOne(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	var block sync.Map
	block.Store("on", true)
	stop := make(chan struct{})
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		if on, _ := block.Load("on"); on == true {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	t.Cleanup(func() { close(stop) })
	j := commandtest.JournalIn(t)
	args := []string{"send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j}
	cmd, _ := commandtest.Child(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	block.Store("on", false)
	commandtest.Run(t, args...).Want(t, terminal.ExitOK)
}
