package sqltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testport"
)

// OwnServer is a database server that one test has for itself, so that it may crash.
type OwnServer struct {
	Address string
	Dir     string // the folder of its data

	OwnCommands
	t   testing.TB
	cmd *exec.Cmd
}

// OwnCommands are how a server is installed and started.
type OwnCommands struct {
	User    string   // who runs them, if this process is root's
	Install []string // makes the folder
	Serve   []string
	Crash   os.Signal // ends the server at once
	Stop    os.Signal // ends it in good order
	Ready   func(ctx context.Context) error
}

// Missing skips a test that lacks a program of a server, and says so; it fails it where
// ONCEHTTP_REQUIRE_SERVICES is 1.
func Missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
		t.Fatalf("%v, and ONCEHTTP_REQUIRE_SERVICES is 1", err)
	}
	t.Skipf("nothing was tested: %v", err)
}

// installed are the folders that servers were installed into, by their commands. To install takes a second of CPU time, so each further
// server has a copy.
var installed struct {
	sync.Mutex
	dirs map[string]string
}

// removeInstalled removes the data folder of which the folders of the tests' servers are copies.
func removeInstalled() {
	installed.Lock()
	defer installed.Unlock()
	for _, dir := range installed.dirs {
		_ = os.RemoveAll(filepath.Dir(dir)) // it is in the folder for temporary files
	}
}

// install makes the data folder of the server. The first test of a run makes it; the others copy it: installed.dirs has the made folder by the command, with
// BASE in the place of the test's own folder. So tests of different engines or settings do not share one.
func (s *OwnServer) install() error {
	within := func(base string) (args []string) {
		for _, arg := range s.Install {
			args = append(args, strings.ReplaceAll(arg, filepath.Dir(s.Dir), base))
		}
		return args
	}
	key := strings.Join(within("BASE"), " ")
	installed.Lock()
	defer installed.Unlock()
	if from := installed.dirs[key]; from != "" {
		return output(exec.Command("cp", "-a", from, s.Dir)) // with its owner
	}
	base, err := os.MkdirTemp("", "oncehttp-installed-")
	if err != nil {
		return err
	}
	from := filepath.Join(base, "data")
	if err := s.give(base); err != nil {
		return err
	}
	if err := output(s.command(within(base))); err != nil {
		return errors.Join(err, os.RemoveAll(base))
	}
	if installed.dirs == nil {
		installed.dirs = map[string]string{}
	}
	installed.dirs[key] = from
	return output(exec.Command("cp", "-a", from, s.Dir))
}

// output runs a command. Its error has what it printed.
func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Args[0], err, out)
	}
	return nil
}

// StartOwn starts a database server of the test's own, on a free port and with a data folder of its own. commands returns the commands for this folder and
// port. The server ends, by a crash, with the test.
func StartOwn(t testing.TB, commands func(dir, port string) OwnCommands) *OwnServer {
	t.Helper()
	port := testport.Take(t)
	base, err := os.MkdirTemp("", "oncehttp-server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	dir := filepath.Join(base, "data")
	s := &OwnServer{Address: "127.0.0.1:" + port, Dir: dir, OwnCommands: commands(dir, port), t: t}
	if err := s.give(base); err != nil {
		t.Fatal(err)
	}
	if err := s.install(); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(func() { s.end(s.Crash) })
	return s
}

// command returns a command that runs as the user of the database server.
func (s *OwnServer) command(args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = os.TempDir()
	s.as(cmd)
	return cmd
}

// start starts the server, and returns when it answers (s.Ready), or after two minutes with an error of the test.
func (s *OwnServer) start() {
	s.cmd = s.command(s.Serve)
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, io.Discard
	if err := s.cmd.Start(); err != nil {
		s.t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for err := s.Ready(ctx); err != nil; err = s.Ready(ctx) {
		if ctx.Err() != nil {
			s.t.Errorf("the server at %s does not start: %v", s.Address, err)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// end ends the server by a signal, and waits for it.
func (s *OwnServer) end(signal os.Signal) {
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Errorf("the server has ended by itself: %v", err)
	}
	_ = s.cmd.Wait() // it was told to end
}

// Restart lets the server crash, and starts it again.
func (s *OwnServer) Restart() {
	s.RestartAfter(func() { time.Sleep(500 * time.Millisecond) })
}

// RestartAfter lets the server crash, and starts it again after what do does meanwhile, such
// as with its files.
func (s *OwnServer) RestartAfter(do func()) {
	s.end(s.Crash)
	do()
	s.start()
}
