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
			status, out, shown = typed(t, nil, "", []string{"y", "y"}, with(old)...) // abandon asks of its own, too
			if status != terminal.ExitOK || !strings.HasSuffix(out, ": a\n") || strings.Contains(out, "left alone") {
				t.Errorf("yes: status %d, stdout %q, terminal %q", status, out, shown)
			}
		})
	}
}

// TestOneQuestion: an act with a warning, on an operation named without SEEN, asks once.
func TestOneQuestion(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, act := range [][]string{{"settle", "--absent"}, {"settle", "--happened"}, {"abandon"}} {
		j := filepath.Join(t.TempDir(), "j.db")
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "--key", "a", "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
		status, out, shown := typed(t, nil, "", []string{"y"}, append([]string{"journal", act[0], "a", "--journal", j}, act[1:]...)...)
		if n := strings.Count(shown, "[y/N]"); status != terminal.ExitOK || n > 1 || !strings.Contains(shown, "a: pending, POST") || !strings.HasSuffix(out, ": a\n") {
			t.Errorf("%v: status %d, %d questions, stdout %q, terminal %q", act, status, n, out, shown)
		}
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

// TestAbandonAsks: abandon is final, so it asks on a terminal, and elsewhere wants --yes. No changes nothing.
func TestAbandonAsks(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	for _, key := range []string{"a", "b"} {
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "--key", key, "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	}
	a := commandtest.SeenAs(t, j, "a")
	abandon := func(key string, flags ...string) []string {
		return append([]string{"journal", "abandon", key, "--journal", j}, flags...)
	}
	for _, key := range []string{"a", a} {
		commandtest.Run(t, abandon(key)...).Want(t, terminal.ExitUsage).WantErr(t, "; to go ahead all the same: --yes")
		status, out, shown := typed(t, nil, "", []string{"n"}, abandon(key)...)
		if status != terminal.ExitUsage || out != "" || !strings.Contains(shown, "nobody can settle, redrive or rekey it later. Go ahead? [y/N] ") {
			t.Errorf("no: status %d, stdout %q, terminal %q", status, out, shown)
		}
	}
	if commandtest.SeenAs(t, j, "a") != a {
		t.Fatal("it was changed")
	}
	if status, out, shown := typed(t, nil, "", []string{"y"}, abandon("a")...); status != terminal.ExitOK || out != "abandoned: a\n" {
		t.Errorf("yes: status %d, stdout %q, terminal %q", status, out, shown)
	}
	commandtest.Run(t, abandon("a")...).Want(t, terminal.ExitOK) // already
	status, out, shown := typed(t, nil, "", nil, abandon("b", "--yes")...)
	if status != terminal.ExitOK || out != "abandoned: b\n" || strings.Contains(shown, "[y/N]") {
		t.Errorf("--yes: status %d, stdout %q, terminal %q", status, out, shown)
	}
}

// TestSignalEndsAQuestion: Ctrl-C and SIGTERM end a question at once. Nothing is changed, and the file of the journal is free.
func TestSignalEndsAQuestion(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	j := filepath.Join(t.TempDir(), "j.db")
	send := commandtest.Fast("send", "POST", s.URL, "--key", "a", "--journal", j, "--max-attempts", "1")
	commandtest.Run(t, send...).Want(t, terminal.ExitUnknown)
	old := commandtest.SeenAs(t, j, "a")
	commandtest.Run(t, send...).Want(t, terminal.ExitUnknown)
	now := commandtest.SeenAs(t, j, "a")
	for _, args := range [][]string{{"settle", now, "--absent"}, {"settle", old, "--happened"}, {"abandon", "a"}, {"assign", "--all", "--account", "shop"}} {
		for _, signal := range []os.Signal{os.Interrupt, unix.SIGTERM} {
			keyboard, screen := newTerminal(t)
			cmd, _ := commandtest.Child(t, append(append([]string{"journal"}, args...), "--journal", j)...)
			cmd.Stdin, cmd.Stderr = screen, screen
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			shown, buffer := "", make([]byte, 4096)
			for !strings.HasSuffix(shown, "[y/N] ") {
				n, err := keyboard.Read(buffer)
				if shown += string(buffer[:n]); err != nil {
					t.Fatalf("%v: %q, %v", args, shown, err)
				}
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if got := commandtest.Status(t, cmd); got != terminal.ExitUnknown {
				t.Errorf("%v, %v: status %d", args, signal, got)
			}
			_, _ = screen.WriteString("the end of the command")
			for shown = ""; !strings.HasSuffix(shown, "the end of the command"); {
				n, err := keyboard.Read(buffer)
				if shown += string(buffer[:n]); err != nil {
					t.Fatalf("%v: %q, %v", args, shown, err)
				}
			}
			if !strings.Contains(shown, "interrupted; nothing was changed") {
				t.Errorf("%v, %v: the terminal showed %q", args, signal, shown)
			}
			if commandtest.SeenAs(t, j, "a") != now {
				t.Fatalf("%v, %v: it was changed", args, signal)
			}
		}
	}
}

// TestAnswerOnATerminal: on a terminal, an answer without a line end is not run into by what is said of it.
func TestAnswerOnATerminal(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"status":"pending"}`))
	})
	keyboard, screen := newTerminal(t)
	shown := make(chan string)
	go func() {
		var b bytes.Buffer
		for buffer := make([]byte, 4096); !strings.Contains(b.String(), "the end of the command"); {
			n, err := keyboard.Read(buffer)
			if b.Write(buffer[:n]); err != nil {
				break
			}
		}
		shown <- b.String()
	}()
	status := command.Run(context.Background(), []string{"send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", t.TempDir() + "/j.db"}, screen, screen, screen)
	_, _ = screen.WriteString("the end of the command")
	if text := <-shown; status != terminal.ExitOK || !strings.Contains(text, "{\"status\":\"pending\"}\r\naccepted (202): ") {
		t.Errorf("status %d, and it shows %q", status, text)
	}
}
