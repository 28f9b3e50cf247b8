package main

import (
	"fmt"
	"net/http"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// busy is a server whose answers wait, and a journal with something on the wire to it.
type busy struct {
	*counted
	arrived chan struct{}
	letGo   func()
}

func serveBusy(t *testing.T) busy {
	t.Helper()
	arrived, answer := make(chan struct{}, 100), make(chan struct{})
	b := busy{arrived: arrived, letGo: sync.OnceFunc(func() { close(answer) })}
	b.counted = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusCreated)
	})
	t.Cleanup(b.letGo)
	return b
}

// onShared runs the test with an empty journal on each server.
func onShared(t *testing.T, test func(t *testing.T, journal string)) {
	onServers(t, test)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, ownRedis(t, durable()...).journal())
	})
}

// startChild starts the command in a process of its own.
func startChild(t *testing.T, args ...string) *osexec.Cmd {
	t.Helper()
	cmd, _ := child(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	return cmd
}

// Whoever has an operation of the journal, or has died or been frozen with it, restored changes nothing, of whatever account, and
// ends with 3. Once nobody has, it holds what is left, and nothing of that is sent.
func TestNeighbourRestoredBeside(t *testing.T) {
	t.Parallel()
	holders := map[string]func(t *testing.T, journal, target string) *osexec.Cmd{
		"work": func(t *testing.T, journal, target string) *osexec.Cmd {
			enqueue(t, journal, target, 3)
			return startChild(t, "work", "--origin", "http://127.0.0.1:*", "--journal", journal, "--workers", "1")
		},
		"batch": func(t *testing.T, journal, target string) *osexec.Cmd {
			rows := writeFile(t, "in.csv", "id\na\nb\nc\n")
			return startChild(t, "batch", rows, "--url", target, "--key", "o:{id}", "--workers", "1", "--journal", journal)
		},
		"send": func(t *testing.T, journal, target string) *osexec.Cmd {
			enqueue(t, journal, target, 2)
			return startChild(t, "send", "POST", target, "-d", "{}", "--key", "s", "--journal", journal)
		},
		"send of an account": func(t *testing.T, journal, target string) *osexec.Cmd {
			enqueue(t, journal, target, 2)
			return startChild(t, "send", "POST", target, "-d", "{}", "--key", "s", "--account", "a", "--journal", journal)
		},
		"journal resume": func(t *testing.T, journal, target string) *osexec.Cmd {
			enqueue(t, journal, target, 2)
			return startChild(t, "journal", "resume", "w:1", "--journal", journal)
		},
	}
	for who, start := range holders {
		for _, end := range []string{"stops", "is killed", "is frozen"} {
			if end != "stops" && who != "work" && who != "send of an account" {
				continue
			}
			t.Run(who+", "+end, func(t *testing.T) {
				t.Parallel()
				onShared(t, func(t *testing.T, journal string) {
					restoredBeside(t, journal, end, func(target string) *osexec.Cmd { return start(t, journal, target) })
				})
			})
		}
	}
}

// restoredBeside says restored beside the process that start starts, while it has the operation, and after its end.
func restoredBeside(t *testing.T, journal, end string, start func(target string) *osexec.Cmd) {
	s := serveBusy(t)
	cmd := start(s.url)
	<-s.arrived
	switch end {
	case "is killed":
		sendSignal(t, cmd, syscall.SIGKILL)
		_ = cmd.Wait()
	case "is frozen":
		sendSignal(t, cmd, syscall.SIGSTOP)
		t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGCONT) })
	}
	list := func() string {
		return run(t, "journal", "list", "--journal", journal, "--format", "csv").want(t, exitOK).out
	}
	before := strings.Count(list(), "\n")
	for range 2 {
		got := restoredNow(t, journal).want(t, exitUnknown)
		if got.out != "" || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "leased until") {
			t.Errorf("stdout %q, stderr %q; want a line that says until when leases last", got.out, got.err)
		}
	}
	if now := list(); strings.Contains(now, "restored") || strings.Count(now, "\n") != before {
		t.Errorf("it has changed something:\n%s", now)
	}
	if end == "stops" {
		if strings.Contains(fmt.Sprint(cmd.Args), " work ") {
			sendSignal(t, cmd, syscall.SIGTERM)
		}
		s.letGo()
		_ = cmd.Wait()
	} else if strings.HasPrefix(journal, "redis") {
		return // half a minute, until the leases are over
	} else {
		endLeases(t, journal)
	}
	sends := s.sends.Load()
	unfinished := strings.Count(run(t, "journal", "list", "--state", "pending", "--journal", journal, "--format", "csv").want(t, exitOK).out, "\n") - 1
	if got := restoredNow(t, journal).want(t, exitOK); unfinished > 0 && !strings.HasPrefix(got.out, fmt.Sprintf("held: %d operation", unfinished)) {
		t.Errorf("%q, want %d held", got.out, unfinished)
	}
	if end == "is frozen" {
		s.letGo()
		sendSignal(t, cmd, syscall.SIGTERM)
		sendSignal(t, cmd, syscall.SIGCONT)
		_ = cmd.Wait()
		if now := list(); strings.Count(now, "restored") < unfinished {
			t.Errorf("what was frozen has gone on: %d were held, now\n%s", unfinished, now)
		}
	}
	s.letGo()
	run(t, "journal", "resume", "--journal", journal)
	if n := s.sends.Load() - sends; n > 0 && !(end == "is frozen" && n == 1) { // who was frozen sends once more at most
		t.Errorf("%d sends more", n)
	}
}

func sendSignal(t *testing.T, cmd *osexec.Cmd, sig os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func restoredNow(t *testing.T, journal string) ran {
	t.Helper()
	return run(t, "journal", "restored", "--journal", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano))
}

// A worker that has nothing in hand keeps nobody from saying that the journal was restored, and sends nothing of what is held.
func TestNeighbourRestoredBesideIdle(t *testing.T) {
	t.Parallel()
	onShared(t, func(t *testing.T, journal string) {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		enqueue(t, journal, s.url, 3)
		w := startWork(t, "--journal", journal, "--max-attempts", "1")
		for start := time.Now(); s.sends.Load() < 3 || strings.Contains(run(t, "journal", "list", "--journal", journal, "--format", "json").out, `"lease`); time.Sleep(20 * time.Millisecond) {
			if time.Since(start) > 20*time.Second {
				t.Fatal("the worker is not idle")
			}
		}
		for start := time.Now(); restoredNow(t, journal).status == exitUnknown; time.Sleep(20 * time.Millisecond) {
			if time.Since(start) > 20*time.Second {
				t.Fatal("the worker has leases still")
			}
		}
		sends := s.sends.Load()
		if out := run(t, "journal", "list", "--state", "held", "--journal", journal, "--format", "csv").want(t, exitOK).out; strings.Count(out, "restored") != 3 {
			t.Errorf("held are\n%s", out)
		}
		time.Sleep(3 * time.Second) // the second sends are due by then
		if got := w.stop(t, syscall.SIGTERM); got != exitOK || s.sends.Load() != sends {
			t.Errorf("status %d, and %d sends more", got, s.sends.Load()-sends)
		}
	})
}
