package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

// A journal in use can be listed, shown, exported and counted through its holder;
// whoever would change it is told who holds it.
func TestJournalInUse(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(arrived) })
		<-release
		w.WriteHeader(http.StatusCreated)
	})
	file := filepath.Join(shortDir(t), "in.csv")
	writeFile(t, file, "id\na\nb\n")
	done := make(chan ran)
	go func() {
		var out, errs strings.Builder
		status := exec(context.Background(), []string{"batch", file, "--url", s.url, "--key", "o:{id}", "--workers", "1"}, strings.NewReader(""), &out, &errs)
		done <- ran{status, out.String(), errs.String()}
	}()
	<-arrived
	j := file + ".oncehttp.db"
	if got := run(t, "journal", "list", "--journal", j).want(t, exitOK); !strings.Contains(got.out, "idemp:o:a") || !strings.Contains(got.out, "maybe") {
		t.Errorf("list: %s", got.out)
	}
	run(t, "journal", "show", "idemp:o:a", "--journal", j).want(t, exitOK)
	run(t, "journal", "export", "--journal", j).want(t, exitOK)
	if got := run(t, "journal", "stuck", "--journal", j).want(t, exitOK); !strings.Contains(got.out, "pending") {
		t.Errorf("stuck: %s", got.out)
	}
	run(t, "journal", "show", "nobody", "--journal", j).want(t, exitUsage)
	got := run(t, "journal", "abandon", "idemp:o:a", "--journal", j).want(t, exitLocked)
	for _, part := range []string{"this process has it open already: ", ": process ", "since 20", "; wait for that process, or look with oncehttp journal list, which works meanwhile\n"} {
		if !strings.Contains(got.err, part) {
			t.Errorf("stderr %q, want it to hold %q", got.err, part)
		}
	}
	close(release)
	(<-done).want(t, exitOK)
	if left, _ := filepath.Glob(j + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	run(t, "journal", "list", "--journal", j).want(t, exitOK)
}

// A holder that lets nobody read, such as a program with the client inside, is not
// said to: journal list has to wait as everything else.
func TestJournalHeldByAnotherProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "j.db")
	held, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	got := run(t, "journal", "list", "--journal", path).want(t, exitLocked)
	if !strings.HasSuffix(got.err, "; wait for that process\n") || strings.Contains(got.err, "look with") {
		t.Errorf("stderr %q", got.err)
	}
}

// shortDir is a folder whose name leaves room for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "once")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Several send commands on one journal do not wait for each other's requests, and
// the same key is not sent by two of them at once.
func TestSendsShareAJournal(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	under := map[string]int{}
	both, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		under[r.Header.Get("Idempotency-Key")]++
		if len(under) == 2 {
			close(both)
		}
		mu.Unlock()
		<-release
		w.WriteHeader(http.StatusCreated)
	})
	j := journalIn(t)
	send := func(key string) ran {
		var out, errs strings.Builder
		status := exec(context.Background(), []string{"send", "POST", s.url, "-d", "{}", "--key", key, "--journal", j}, strings.NewReader(""), &out, &errs)
		return ran{status, out.String(), errs.String()}
	}
	results := make(chan ran, 2)
	for _, key := range []string{"a", "b"} {
		go func() { results <- send(key) }()
	}
	select {
	case <-both:
	case <-time.After(time.Minute):
		t.Fatal("the second send waited for the first one's request")
	}
	if got := run(t, "journal", "stuck", "--journal", j).want(t, exitOK); strings.Count(got.out, "pending") != 2 {
		t.Errorf("stuck: %s", got.out)
	}
	if got := send("a"); got.status != exitUnknown || !strings.Contains(got.err, "in flight") {
		t.Errorf("the same key at once: exit %d, stderr %q", got.status, got.err)
	}
	close(release)
	for range 2 {
		(<-results).want(t, exitOK)
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
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
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
	j := journalIn(t)
	args := []string{"send", "POST", s.url, "-d", "{}", "--key", "k", "--journal", j}
	cmd, _ := child(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	block.Store("on", false)
	run(t, args...).want(t, exitOK)
}
