package command_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	osexec "os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/testrun"
)

// busy is a server whose answers wait, and a journal with something on the wire to it.
type busy struct {
	*commandtest.Counted
	arrived chan struct{}
	letGo   func()
}

func serveBusy(t *testing.T) busy {
	t.Helper()
	arrived, answer := make(chan struct{}, 100), make(chan struct{})
	b := busy{arrived: arrived, letGo: sync.OnceFunc(func() { close(answer) })}
	b.Counted = commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusCreated)
	})
	t.Cleanup(b.letGo)
	return b
}

// onShared runs the test with an empty journal on each server.
func onShared(t *testing.T, test func(t *testing.T, journal string)) {
	commandtest.OnServers(t, test)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, commandtest.OwnRedis(t, commandtest.Durable()...).Journal())
	})
}

// inTurn runs the test of the n-th row as onShared does: on each server if [testrun.Whole], else on one of them, in turn.
func inTurn(t *testing.T, n int, test func(t *testing.T, journal string)) {
	if testrun.Whole() {
		onShared(t, test)
		return
	}
	names := slices.Sorted(maps.Keys(commandtest.Servers()))
	if n %= len(names) + 1; n == len(names) {
		t.Run("redis", func(t *testing.T) { test(t, commandtest.OwnRedis(t, commandtest.Durable()...).Journal()) })
		return
	}
	t.Run(names[n], func(t *testing.T) {
		s := commandtest.Servers()[names[n]]
		journal := s.Database(t, s.URL(t))
		commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
		test(t, journal)
	})
}

// startChild starts the command in a process of its own.
func startChild(t *testing.T, args ...string) *osexec.Cmd {
	t.Helper()
	cmd, _ := commandtest.Child(t, args...)
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
			commandtest.Enqueue(t, journal, target, 3)
			return startChild(t, "work", "--origin", "http://127.0.0.1:*", "--journal", journal, "--workers", "1")
		},
		"batch": func(t *testing.T, journal, target string) *osexec.Cmd {
			rows := commandtest.WriteFile(t, "in.csv", "id\na\nb\nc\n")
			return startChild(t, "batch", rows, "--url", target, "--key", "o:{id}", "--workers", "1", "--journal", journal)
		},
		"send": func(t *testing.T, journal, target string) *osexec.Cmd {
			commandtest.Enqueue(t, journal, target, 2)
			return startChild(t, "send", "POST", target, "-d", "{}", "--key", "s", "--journal", journal)
		},
		"send of an account": func(t *testing.T, journal, target string) *osexec.Cmd {
			commandtest.Enqueue(t, journal, target, 2)
			return startChild(t, "send", "POST", target, "-d", "{}", "--key", "s", "--account", "a", "--journal", journal)
		},
		"journal resume": func(t *testing.T, journal, target string) *osexec.Cmd {
			commandtest.Enqueue(t, journal, target, 2)
			return startChild(t, "journal", "resume", "w:1", "--journal", journal)
		},
	}
	row := 0
	for _, who := range slices.Sorted(maps.Keys(holders)) {
		start := holders[who]
		for _, end := range []string{"stops", "is killed", "is frozen"} {
			if end != "stops" && who != "work" && who != "send of an account" {
				continue
			}
			n := row
			row++
			t.Run(who+", "+end, func(t *testing.T) {
				t.Parallel()
				inTurn(t, n, func(t *testing.T, journal string) {
					restoredBeside(t, journal, end, func(target string) *osexec.Cmd { return start(t, journal, target) })
				})
			})
		}
	}
}

// restoredBeside says restored beside the process that start starts, while it has the operation, and after its end.
func restoredBeside(t *testing.T, journal, end string, start func(target string) *osexec.Cmd) {
	s := serveBusy(t)
	cmd := start(s.URL)
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
		return commandtest.Run(t, "journal", "list", "--journal", journal, "--format", "csv").Want(t, terminal.ExitOK).Out
	}
	before := strings.Count(list(), "\n")
	for range 2 {
		got := restoredNow(t, journal).Want(t, terminal.ExitUnknown)
		if got.Out != "" || strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, "leased until") {
			t.Errorf("stdout %q, stderr %q; want a line that says until when leases last", got.Out, got.Err)
		}
	}
	if now := list(); strings.Contains(now, "restored") || strings.Count(now, "\n") != before {
		t.Errorf("it has changed something:\n%s", now)
	}
	leased := 0
	if end == "stops" {
		if strings.Contains(fmt.Sprint(cmd.Args), " work ") {
			sendSignal(t, cmd, syscall.SIGTERM)
		}
		s.letGo()
		_ = cmd.Wait()
	} else if strings.HasPrefix(journal, "redis") {
		return // half a minute, until the leases are over
	} else {
		leased = commandtest.EndLeases(t, journal)
	}
	sends := s.Sends.Load()
	unfinished := strings.Count(commandtest.Run(t, "journal", "list", "--state", "pending", "--journal", journal, "--format", "csv").Want(t, terminal.ExitOK).Out, "\n") - 1
	if got := restoredNow(t, journal).Want(t, terminal.ExitOK); unfinished > 0 && !strings.HasPrefix(got.Out, fmt.Sprintf("held: %d operation", unfinished)) {
		t.Errorf("%q, want %d held", got.Out, unfinished)
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
	commandtest.Run(t, "journal", "resume", "--journal", journal)
	// Who was frozen sends what it has claimed once more at most: the test has ended its leases, which last by its own clock.
	if n := int(s.Sends.Load() - sends); n > 0 && !(end == "is frozen" && n <= leased) {
		t.Errorf("%d sends more, of %d that were leased", n, leased)
	}
}

func sendSignal(t *testing.T, cmd *osexec.Cmd, sig os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func restoredNow(t *testing.T, journal string) commandtest.Ran {
	t.Helper()
	return commandtest.Run(t, "journal", "restored", "--journal", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano))
}

// A worker that has nothing in hand keeps nobody from saying that the journal was restored, and sends nothing of what is held.
func TestNeighbourRestoredBesideIdle(t *testing.T) {
	t.Parallel()
	onShared(t, func(t *testing.T, journal string) {
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		commandtest.Enqueue(t, journal, s.URL, 3)
		w := commandtest.StartWork(t, "--journal", journal, "--max-attempts", "1")
		for start := time.Now(); s.Sends.Load() < 3 || strings.Contains(commandtest.Run(t, "journal", "list", "--journal", journal, "--format", "json").Out, `"lease`); time.Sleep(20 * time.Millisecond) {
			if time.Since(start) > 20*time.Second {
				t.Fatal("the worker is not idle")
			}
		}
		for start := time.Now(); restoredNow(t, journal).Status == terminal.ExitUnknown; time.Sleep(20 * time.Millisecond) {
			if time.Since(start) > 20*time.Second {
				t.Fatal("the worker has leases still")
			}
		}
		sends := s.Sends.Load()
		if out := commandtest.Run(t, "journal", "list", "--state", "held", "--journal", journal, "--format", "csv").Want(t, terminal.ExitOK).Out; strings.Count(out, "restored") != 3 {
			t.Errorf("held are\n%s", out)
		}
		time.Sleep(3 * time.Second) // the second sends are due by then
		if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK || s.Sends.Load() != sends {
			t.Errorf("status %d, and %d sends more", got, s.Sends.Load()-sends)
		}
	})
}
