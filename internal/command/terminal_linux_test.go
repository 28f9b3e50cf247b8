package command_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// newTerminal opens a pseudo terminal: what a person types goes into keyboard, what the command shows comes out of it, too.
func newTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keyboard, screen
}

// typed runs a command on a terminal on which a person types first, and the answers, each when the command asks. in is what stdin
// is; nil: the terminal. shown is what the terminal showed.
func typed(t *testing.T, in io.Reader, first string, answers []string, args ...string) (status int, out, shown string) {
	t.Helper()
	keyboard, screen := newTerminal(t)
	if _, err := keyboard.WriteString(first); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string)
	go func() {
		var b bytes.Buffer
		buffer := make([]byte, 4096)
		for {
			n, err := keyboard.Read(buffer)
			b.Write(buffer[:n])
			if err != nil || strings.Contains(b.String(), "the end of the command") {
				seen <- b.String()
				return
			}
			if strings.HasSuffix(b.String(), "[y/N] ") && len(answers) > 0 {
				_, _ = keyboard.WriteString(answers[0] + "\n")
				answers = answers[1:]
			}
		}
	}()
	if in == nil {
		in = screen
	}
	var stdout strings.Builder
	status = command.Run(context.Background(), args, in, &stdout, screen)
	_, _ = screen.WriteString("the end of the command")
	return status, stdout.String(), <-seen
}

// TestQuestionOfWhatHasMoved: what has moved since it was seen is asked about on a terminal. No leaves it alone, yes acts on it as it
// is now. A terminal or a file that is the list is not asked, nor is anybody with --yes.
func TestQuestionOfWhatHasMoved(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, act := range [][]string{{"settle", "--happened"}, {"abandon"}, {"assign", "--account", "shop"}} {
		t.Run(act[0], func(t *testing.T) {
			t.Parallel()
			j := filepath.Join(t.TempDir(), "j.db")
			send := commandtest.Fast("send", "POST", s.URL, "--key", "a", "--journal", j, "--max-attempts", "1")
			commandtest.Run(t, send...).Want(t, terminal.ExitUnknown)
			old := commandtest.SeenAs(t, j, "a")
			commandtest.Run(t, send...).Want(t, terminal.ExitUnknown)
			now := commandtest.SeenAs(t, j, "a")
			with := func(key string, flags ...string) []string {
				return append(append([]string{"journal", act[0], key, "--journal", j}, act[1:]...), flags...)
			}
			left := "left alone, " + strings.TrimPrefix(old, "a") + " is not how it stands, since it has moved or that is another's SEEN: " + now + "\n"
			for _, quiet := range []struct {
				name string
				in   io.Reader
				keys string
				args []string
			}{
				{"a list", strings.NewReader(old + "\n"), "", with("-")},
				{"a list on the terminal", nil, old + "\n\x04", with("-")},
				{"--yes", nil, "", with(old, "--yes")},
			} {
				status, out, shown := typed(t, quiet.in, quiet.keys, []string{"y", "y"}, quiet.args...)
				if status != terminal.ExitUnknown || out != left || strings.Contains(shown, "[y/N]") {
					t.Errorf("%s: status %d, stdout %q, terminal %q; want no question, and it left alone", quiet.name, status, out, shown)
				}
			}
			status, out, shown := typed(t, nil, "", []string{"n"}, with(old)...)
			if status != terminal.ExitUnknown || out != left || !strings.Contains(shown, "It does not stand as "+strings.TrimPrefix(old, "a")+" says: a: pending") {
				t.Errorf("no: status %d, stdout %q, terminal %q", status, out, shown)
			}
			if commandtest.SeenAs(t, j, "a") != now {
				t.Fatal("it was changed")
			}
			status, out, shown = typed(t, nil, "", []string{"y"}, with(old)...)
			if status != terminal.ExitOK || !strings.HasSuffix(out, ": a\n") || strings.Contains(out, "left alone") {
				t.Errorf("yes: status %d, stdout %q, terminal %q", status, out, shown)
			}
		})
	}
}

// TestQuestionOfACopy: a batch of a renamed file, and one of the same rows under other keys, ask on a terminal. No sends nothing.
func TestQuestionOfACopy(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	dir := t.TempDir()
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id,amount\na,1\nb,2\n")
	renamed := commandtest.WriteFile(t, filepath.Join(dir, "renamed.csv"), "id,amount\na,1\nb,2\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}").Want(t, terminal.ExitOK)
	for name, args := range map[string][]string{
		"under another name": {"batch", renamed, "--url", s.URL, "--key", "o:{id}"},
		"under other keys":   {"batch", file, "--url", s.URL, "--key", "x:{id}"},
	} {
		status, out, shown := typed(t, nil, "", []string{"n"}, args...)
		if status != terminal.ExitUsage || out != "" || !strings.Contains(shown, "[y/N]") || s.Sends.Load() != 2 {
			t.Errorf("%s: status %d, %d sends, stdout %q, terminal %q", name, status, s.Sends.Load(), out, shown)
		}
	}
}
