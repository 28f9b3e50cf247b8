package bolt_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// syncScript has each kind of sync: those of the names; in the first commit two of bbolt's; in the next one the journal's
// own; in the third that of a larger size before it; and that of the mark.
const syncScript = "open\nbegin first 100\nbegin own 100\nbegin grown 150000\nbegin last 100\nclose"

// syncCall is a sync that a script makes.
type syncCall struct {
	name string // of the system call
	nth  int    // of those of the first thread
	op   string // the operation that makes it
	of   int    // which of its syncs, from 0
}

func (c syncCall) String() string { return fmt.Sprintf("%s %d of %q", c.name, c.of, c.op) }

// TestErrorsOfSync lets each sync of a process fail once, and says what the operation must say then. After a sync that
// failed nothing is known, however well known its error is: the kernel may have written a part, and takes the rest for
// written.
func TestErrorsOfSync(t *testing.T) {
	t.Parallel()
	dir := testrun.Dir(t)
	path := filepath.Join(dir, journalName)
	closeIt(t, open(t, path))
	image := readFile(t, path)
	calls := syncsOf(runScriptOn(t, path, image, syncScript, powercut.Fault{}))
	want := []string{
		"fsync 0 of \"open\"", "fdatasync 0 of \"begin first 100\"", "fdatasync 1 of \"begin first 100\"", "fdatasync 0 of \"begin own 100\"",
		"fsync 0 of \"begin grown 150000\"", "fdatasync 1 of \"begin grown 150000\"", "fdatasync 0 of \"begin last 100\"", "fdatasync 0 of \"close\"",
	}
	if got := fmt.Sprint(calls); got != fmt.Sprint(want) {
		t.Fatalf("the syncs are\n%v\nwant\n%v", got, want)
	}
	for _, c := range calls {
		for _, number := range []string{"EINTR", "ENOSPC", "EDQUOT", "EIO"} {
			said := runScriptOn(t, path, image, syncScript, powercut.Fault{Call: c.name, Nth: c.nth, What: "error=" + number})
			// Of bbolt's own syncs of pages a signal is an error, too.
			again := number == "EINTR" && c.op != "begin first 100"
			if err := afterSyncError(said, c, again); err != nil {
				t.Errorf("%s of %v: %v", number, c, err)
			}
			if err := keepsAcknowledged(t, path, said); err != nil {
				t.Errorf("%s of %v: %v", number, c, err)
			}
		}
	}
}

// runScriptOn runs a script on a journal, with a fault, and returns its system calls.
func runScriptOn(t *testing.T, path string, image []byte, script string, fault powercut.Fault) []powercut.Call {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
			t.Fatal("there is no strace, and ONCEHTTP_REQUIRE_SERVICES is 1")
		}
		t.Skip("there is no strace")
	}
	writeFile(t, path, image)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, path)
	cmd.Env = append(os.Environ(), "ONCEHTTP_BOLT_ROLE=script", "ONCEHTTP_BOLT_SCRIPT="+script)
	calls, err := powercut.Record(cmd, fault)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// syncsOf are the syncs among the calls of a script.
func syncsOf(calls []powercut.Call) (syncs []syncCall) {
	nth, op, of := map[string]int{}, "", 0
	for i := range calls {
		c := &calls[i]
		if sign, rest, ok := saidLine(c); ok && sign == ">" {
			op, of = rest, 0
		}
		if c.Name == "fsync" || c.Name == "fdatasync" {
			nth[c.Name]++
			syncs = append(syncs, syncCall{c.Name, nth[c.Name], op, of})
			of++
		}
	}
	return syncs
}

// saidLine is a line that a call writes to standard output.
func saidLine(c *powercut.Call) (sign, rest string, ok bool) {
	if c.Name != "write" || c.FD != 1 {
		return "", "", false
	}
	return strings.Cut(strings.TrimSuffix(string(c.Data), "\n"), " ")
}

// afterSyncError checks what a script says whose sync c fails. If again is set, the sync is tried again, and all goes well. Else
// the operation's end is not known, and nothing is done after it.
func afterSyncError(calls []powercut.Call, c syncCall, again bool) error {
	op, failed := "", false
	for i := range calls {
		sign, rest, ok := saidLine(&calls[i])
		switch {
		case !ok || sign == ".":
		case sign == ">":
			op = rest
			failed = failed || op == c.op
		case sign != "=" && sign != "?":
			return fmt.Errorf("%q: %s %s", op, sign, rest)
		case (sign == "?") != (failed && !again):
			return fmt.Errorf("%q: %s %.200s", op, sign, rest)
		case sign == "?" && op == c.op && strings.HasPrefix(op, "begin") && !strings.Contains(rest, persist.ErrUncertain.Error()):
			return fmt.Errorf("%q: %s, want %v", op, rest, persist.ErrUncertain)
		}
	}
	return nil
}

// keepsAcknowledged opens the journal after a script. It must hold all that was acknowledged, and take more.
func keepsAcknowledged(t *testing.T, path string, calls []powercut.Call) error {
	t.Helper()
	var want []string
	for i := range calls {
		if sign, rest, ok := saidLine(&calls[i]); ok && sign == "=" {
			want = strings.Fields(rest)
		}
	}
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return err
	}
	defer j.Close()
	state, err := compact(j)
	if err != nil {
		return err
	}
	for _, w := range want {
		if !slices.Contains(strings.Fields(state), w) {
			return fmt.Errorf("%s is lost", w)
		}
	}
	_, created, err := j.Begin(context.Background(), record("afterwards"))
	if err != nil || !created {
		return fmt.Errorf("Begin afterwards: created %t, %w", created, err)
	}
	return j.Close()
}
