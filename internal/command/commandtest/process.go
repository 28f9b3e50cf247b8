package commandtest

import (
	"bytes"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/testrun"
)

// AsCommand makes the test binary be the command, so a test can kill one.
const AsCommand = "ONCEHTTP_TEST_AS_COMMAND"

// RunTests is called as TestMain by each package with tests of the command. In a process that a test has started as the command, it runs the command instead of tests.
// It hides the user's configuration from the tests.
func RunTests(m *testing.M) {
	if os.Getenv(AsCommand) != "" {
		command.Main() // ends the process
	}
	testrun.AtOnce(testrun.N(12, 5)) // so many tests, 5 in a whole run: they wait for servers and for other processes
	testrun.InMemory()               // temporary folders are in memory
	// The tests see no configuration of the user.
	dir, err := os.MkdirTemp("", "oncehttp-config")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_CONFIG_HOME", dir)
	_ = os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	for _, name := range []string{"ONCEHTTP_CONFIG", "ONCEHTTP_JOURNAL"} {
		_ = os.Unsetenv(name)
	}
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// Command runs the command in a process of its own, and kills it with SIGKILL
// when kill is closed. status is -1 if it was killed.
func Command(t *testing.T, kill <-chan struct{}, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), AsCommand+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-kill:
			_ = cmd.Process.Kill() // it may have ended just now
		case <-ended:
		}
	})
	err := cmd.Wait()
	close(ended)
	watching.Wait()
	if ee := (*osexec.ExitError)(nil); err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Child returns a process that runs the command with args, not yet started, and the buffer that gets its stderr.
func Child(t *testing.T, args ...string) (*osexec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), AsCommand+"=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	return cmd, &errs
}

// Status waits for the end of a started command, and returns its exit status; -1 if a signal has killed it.
func Status(t *testing.T, cmd *osexec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	if ee := (*osexec.ExitError)(nil); err != nil && !errors.As(err, &ee) {
		t.Error(err)
	}
	return cmd.ProcessState.ExitCode()
}

// Killed waits for the command's end, and returns its exit status. Until then it repeats a signal every 5 ms, like an impatient user.
func Killed(t *testing.T, cmd *osexec.Cmd, again os.Signal) int {
	t.Helper()
	ended := make(chan int, 1)
	go func() { ended <- Status(t, cmd) }()
	for {
		_ = cmd.Process.Signal(again) // it may have ended just now
		select {
		case code := <-ended:
			return code
		case <-time.After(5 * time.Millisecond):
		}
	}
}
