package main

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// child is the command in a process of its own.
func child(t *testing.T, args ...string) (*osexec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	return cmd, &errs
}

// status waits for the command's end.
func status(t *testing.T, cmd *osexec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	if ee := (*osexec.ExitError)(nil); err != nil && !errors.As(err, &ee) {
		t.Error(err)
	}
	return cmd.ProcessState.ExitCode()
}

// The first Ctrl-C lets the attempt on the wire come to its end; the second
// kills.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		signals int
		want    int
	}{{"one", 1, exitUnknown}, {"two", 2, -1}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			arrived, answer := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				once.Do(func() { close(arrived) })
				<-answer
				w.WriteHeader(http.StatusCreated)
			})
			release := sync.OnceFunc(func() { close(answer) })
			t.Cleanup(release)
			file := writeFile(t, "in.csv", orders(50))
			cmd, _ := child(t, "batch", file, "--url", s.url, "--key", orderKey, "--workers", "1")
			noted := &watchedWriter{want: "interrupted", seen: make(chan struct{})}
			cmd.Stderr = noted
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-arrived
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			<-noted.seen
			end := killed
			if tt.signals == 1 {
				release()
				end = status
			}
			if got := end(t, cmd); got != tt.want {
				t.Errorf("status %d, want %d: %s", got, tt.want, noted.text.String())
			}
			if tt.signals == 1 {
				if l := (ran{out: out.String()}).only(t); l.Row != 1 || l.Status != 201 || s.sends.Load() != 1 {
					t.Errorf("%+v after %d sends", l, s.sends.Load())
				}
			}
		})
	}
}

// killed is status for an impatient user: an interrupt that comes before the
// process has put the default back is swallowed, and the next one is not.
func killed(t *testing.T, cmd *osexec.Cmd) int {
	t.Helper()
	ended := make(chan int, 1)
	go func() { ended <- status(t, cmd) }()
	for {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended just now
		select {
		case code := <-ended:
			return code
		case <-time.After(5 * time.Millisecond):
		}
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
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := writeFile(t, "in.csv", orders(2000))
	args := []string{"batch", file, "--url", s.url, "--key", orderKey}
	cmd, errs := child(t, args...)
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
	if got := status(t, cmd); got != exitUnknown || !strings.Contains(errs.String(), "broken pipe") || !strings.Contains(errs.String(), "not tried") {
		t.Errorf("status %d, stderr %s", got, errs)
	}
	run(t, args...).want(t, exitOK)
	if n := s.sends.Load(); n != 2000 {
		t.Errorf("%d sends, want 2000", n)
	}
}
