package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// role is what the test binary is to do as a second process, to the journal that its
// argument names. If it is empty, it tests.
var role = roleOnFirstThread()

// roleOnFirstThread keeps a process whose system calls are recorded on its first thread, so that the number of a call is
// the same each time. That has to be said before main begins.
func roleOnFirstThread() string {
	r := os.Getenv("ONCEHTTP_BOLT_ROLE")
	if r != "" {
		runtime.LockOSThread()
	}
	return r
}

// TestMain lets the test binary be a second process.
func TestMain(m *testing.M) {
	if role == "" {
		testrun.AtOnce(6) // they wait for the disk and for processes
		os.Exit(m.Run())
	}
	roles := map[string]func(path string) error{"hold": hold, "work": work, "full": full, "full-matrix": fullMatrix, "flip": flip, "script": runScript}
	if err := roles[role](os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// spawn starts the test binary in a role, and returns its output.
func spawn(t *testing.T, role, path string) (*exec.Cmd, *bufio.Reader, io.WriteCloser) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	cmd := exec.CommandContext(ctx, exe, path)
	cmd.Env = append(os.Environ(), "ONCEHTTP_BOLT_ROLE="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out), in
}

// hold opens a journal and keeps it until its input ends.
func hold(path string) error {
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return j.Close()
}

func TestLocked(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	cmd, out, in := spawn(t, "hold", path)
	if s, err := out.ReadString('\n'); s != "open\n" {
		t.Fatalf("the other process said %q, %v", s, err)
	}
	start := time.Now()
	_, err := tryOpen(path, bolt.Options{LockWait: 100 * time.Millisecond})
	wantErr(t, err, persist.ErrLocked, path)
	if !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v, want it to say who holds the file", err)
	}
	if d := time.Since(start); d < 100*time.Millisecond || d > 10*time.Second {
		t.Errorf("Open gave up after %v, want 100 ms", d)
	}
	_, err = tryOpen(path, bolt.Options{LockWait: -1})
	wantErr(t, err, persist.ErrLocked, path)
	// It waits for somebody who lets go in time.
	opened := make(chan error, 1)
	go func() {
		j, err := tryOpen(path, bolt.Options{LockWait: 30 * time.Second})
		if err == nil {
			err = j.Close()
		}
		opened <- err
	}()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("Open after the other process has let go: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
	// A second journal in this process is another holder.
	j := open(t, path)
	_, err = tryOpen(path, bolt.Options{LockWait: -1})
	wantErr(t, err, persist.ErrLocked, path)
	if _, shown := os.Stat("/dev/fd"); shown == nil && !strings.Contains(err.Error(), "this process has it open") {
		t.Errorf("%v, want it to say who holds the file", err)
	}
	begin(t, j, record("k"))
	closeIt(t, j)
	closeIt(t, open(t, path))
}

// work begins and finishes records for ever, and says which begins were
// acknowledged, and which finishes were flushed.
func work(path string) error {
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return err
	}
	ctx, pid := context.Background(), os.Getpid()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				r, created, err := j.Begin(ctx, sized(fmt.Sprintf("%d-%d-%d", pid, w, i), 20+i%50*i%900))
				if err == nil && !created {
					err = errors.New("it stands already")
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Println("begun", r.Key)
				mu.Unlock()
				if i%2 == 1 || j.Finish(ctx, confirmed(r)) != nil || i%8 != 0 || j.Flush(ctx) != nil {
					continue
				}
				mu.Lock()
				fmt.Println("finished", r.Key)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

// TestKill kills a process in the middle of its work, again and again, and
// checks that everything that it acknowledged is there.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db") // on a disk
	acknowledged, finished := map[string]bool{}, map[string]bool{}
	for round := range 8 {
		cmd, out, _ := spawn(t, "work", path)
		for n := 0; ; n++ {
			s, err := out.ReadString('\n')
			if err != nil {
				break
			}
			what, key, _ := strings.Cut(strings.TrimSpace(s), " ")
			acknowledged[key] = true
			if what == "finished" {
				finished[key] = true
			}
			if n == 40+round*67 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait()
		j := open(t, path)
		seen := map[string]persist.State{}
		for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
			if err != nil {
				t.Fatalf("List after kill %d: %v", round, err)
			}
			if want := sized(r.Key, len(r.Body)); !slices.Equal(r.Body, want.Body) {
				t.Errorf("after kill %d the body of %q is not what was begun", round, r.Key)
			}
			seen[r.Key] = r.State
		}
		for key := range acknowledged {
			if _, ok := seen[key]; !ok {
				t.Errorf("after kill %d, %q is lost", round, key)
			}
		}
		for key := range finished {
			if seen[key] != persist.StateConfirmed {
				t.Errorf("after kill %d, %q, which was finished and flushed, is %v", round, key, seen[key])
			}
		}
		closeIt(t, j)
	}
	if len(acknowledged) < 500 || len(finished) == 0 {
		t.Errorf("only %d begins and %d finishes were acknowledged", len(acknowledged), len(finished))
	}
}
