package powercut

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Fault is a fault of one system call of a process. The zero value is none.
type Fault struct {
	Call string // its name
	Nth  int    // the number of the call among these calls of a thread, from 1
	// Unless Step is 0, Times calls, each so many after the one before.
	Step, Times int
	What        string // "error=EIO", or "signal=KILL" to end the process before the call is made
}

// Record runs a command under strace, and returns its system calls. strace follows all threads, and writes each text whole and in hexadecimal digits (-xx,
// -s). fault makes one or more of these calls fail, or ends the process there; its zero value does nothing. The command's Env, Dir and Stderr are used, and
// its Stdin and Stdout are left alone. An exit of the process with an error is no error of Record.
// Errors: there is no strace, or it may not trace.
func Record(cmd *exec.Cmd, fault Fault) ([]Call, error) {
	dir, err := os.MkdirTemp("", "strace")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "calls")
	args := []string{"-f", "--seccomp-bpf", "-xx", "-s", "16777216", "-o", out, "-e", "trace=" + calls, "-e", "signal=none"}
	if fault != (Fault{}) {
		when := fmt.Sprint(fault.Nth)
		if fault.Step > 0 {
			when = fmt.Sprintf("%d..%d+%d", fault.Nth, fault.Nth+fault.Step*(fault.Times-1), fault.Step)
		}
		args = append(args, "-e", fmt.Sprintf("inject=%s:%s:when=%s", fault.Call, fault.What, when))
	}
	traced := exec.Command("strace", append(append(args, cmd.Path), cmd.Args[1:]...)...)
	traced.Env, traced.Dir, traced.Stdin, traced.Stdout = cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout
	var said strings.Builder
	traced.Stderr = &said
	runErr := traced.Run()
	f, err := os.Open(out)
	if err != nil {
		return nil, fmt.Errorf("strace: %w: %w: %s", runErr, err, said.String())
	}
	defer f.Close()
	all, err := parse(f)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("strace recorded nothing: %w: %s", runErr, said.String())
	}
	return all, err
}
