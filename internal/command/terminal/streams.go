// Package terminal holds the ways between a command and its user: streams, output files, questions, reports and
// exit statuses.
package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Streams are the input and the outputs of a command. Tests put their own in.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Say prints one line for the person at the terminal. If even this fails, nothing can be done.
func Say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

// JoinExit adds the error of closing to the outcome of the work: without a successful close, data is not known to
// be on disk.
func JoinExit(err, closing error) error {
	if closing == nil {
		return err
	}
	return &ExitError{Status: ExitUnknown, Err: errors.Join(Unsaid(err), closing)}
}

// Unsaid returns err, or nil if everything has been said.
func Unsaid(err error) error {
	if err == nil || err.Error() == "" {
		return nil
	}
	return err
}

// Confirm asks before an act with no way back. yes is the answer given by a flag. Without a terminal for the
// question, it returns an error naming the flag.
func (s Streams) Confirm(yes bool, warning string) error {
	return s.ConfirmBy("--yes", yes, warning)
}

// ConfirmBy is Confirm with a flag of another name.
func (s Streams) ConfirmBy(flag string, yes bool, warning string) error {
	switch {
	case yes:
		return nil
	case !IsTerminal(s.In) || !IsTerminal(s.Err):
		return fmt.Errorf("%s; to go ahead all the same: %s", warning, flag)
	}
	_, _ = fmt.Fprintf(s.Err, "%s. Go ahead? [y/N] ", warning)
	answer, _ := bufio.NewReader(s.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return errors.New("not confirmed; nothing was changed")
}
