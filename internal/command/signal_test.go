package command_test

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// The first Ctrl-C or Ctrl-\ lets the attempt on the wire come to its end; the second kills.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		signal  os.Signal
		signals int
		want    int
	}{
		{"one", os.Interrupt, 1, terminal.ExitUnknown}, {"two", os.Interrupt, 2, -1},
		{"one quit", syscall.SIGQUIT, 1, terminal.ExitUnknown}, {"two quits", syscall.SIGQUIT, 2, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			arrived, answer := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				once.Do(func() { close(arrived) })
				<-answer
				w.WriteHeader(http.StatusCreated)
			})
			release := sync.OnceFunc(func() { close(answer) })
			t.Cleanup(release)
			file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(50))
			cmd, _ := commandtest.Child(t, "batch", file, "--url", s.URL, "--key", commandtest.OrderKey, "--workers", "1")
			noted := &watchedWriter{want: "interrupted", seen: make(chan struct{})}
			cmd.Stderr = noted
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-arrived
			if err := cmd.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			<-noted.seen
			end := func() int { return commandtest.Killed(t, cmd, tt.signal) }
			if tt.signals == 1 {
				release()
				end = func() int { return commandtest.Status(t, cmd) }
			}
			if got := end(); got != tt.want {
				t.Errorf("status %d, want %d: %s", got, tt.want, noted.text.String())
			}
			if tt.signals == 1 {
				if l := (commandtest.Ran{Out: out.String()}).Only(t); l.Row != 1 || l.Status != 201 || s.Sends.Load() != 1 {
					t.Errorf("%+v after %d sends", l, s.Sends.Load())
				}
			}
		})
	}
}

// TestIgnoredSignals: a batch under nohup goes on after a SIGHUP, and one whose SIGINT was ignored, as in the background of a script, ends after two.
func TestIgnoredSignals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ignored, name string }{{"HUP", "hangup"}, {"INT", "interrupt"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			arrived, answer := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				once.Do(func() { close(arrived) })
				<-answer
				w.WriteHeader(http.StatusCreated)
			})
			release := sync.OnceFunc(func() { close(answer) })
			t.Cleanup(release)
			file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(3))
			cmd, _ := commandtest.Child(t, "batch", file, "--url", s.URL, "--key", commandtest.OrderKey, "--workers", "1")
			cmd.Args = append([]string{"sh", "-c", "trap '' " + tt.ignored + `; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			sh, err := exec.LookPath("sh")
			if err != nil {
				t.Fatal(err)
			}
			cmd.Path = sh
			noted := &watchedWriter{want: "interrupted", seen: make(chan struct{})}
			cmd.Stderr = noted
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-arrived
			if tt.ignored == "HUP" {
				if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
				release()
				if got := commandtest.Status(t, cmd); got != terminal.ExitOK || s.Sends.Load() != 3 {
					t.Errorf("status %d after %d sends: %s", got, s.Sends.Load(), noted.text.String())
				}
				return
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			<-noted.seen
			if got := commandtest.Killed(t, cmd, os.Interrupt); got != -1 {
				t.Errorf("status %d, want a kill: %s", got, noted.text.String())
			}
		})
	}
}

// watchedWriter closes seen once want was written. It has no ReadFrom, which
// io.Copy would take instead of Write.
type watchedWriter struct {
	text strings.Builder
	want string
	seen chan struct{}
	once sync.Once
}

// Write is called by one goroutine only.
func (w *watchedWriter) Write(p []byte) (int, error) {
	w.text.Write(p)
	if strings.Contains(w.text.String(), w.want) {
		w.once.Do(func() { close(w.seen) })
	}
	return len(p), nil
}

// A reader that goes away ends the batch in good order.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(2000))
	args := []string{"batch", file, "--url", s.URL, "--key", commandtest.OrderKey}
	cmd, errs := commandtest.Child(t, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	if got := commandtest.Status(t, cmd); got != terminal.ExitUnknown || !strings.Contains(errs.String(), "broken pipe") || !strings.Contains(errs.String(), "not looked at") {
		t.Errorf("status %d, stderr %s", got, errs)
	}
	commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 2000 {
		t.Errorf("%d sends, want 2000", n)
	}
}
