// Package terminal holds the ways between a command and its user: streams, output files, questions, reports and
// exit statuses.
package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Streams are the input and the outputs of a command. Tests put their own in.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Done     <-chan struct{} // closed once the command is interrupted, which ends a question; nil: never
}

// Say prints one line for the user. An error of the write is ignored: nothing can be done.
func Say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

// JoinExit returns err, the outcome of the work, joined with the error of closing the journal or output. Without a successful close, data is not known to be on disk,
// so that the exit status is ExitUnknown then.
func JoinExit(err, closing error) error {
	if closing == nil {
		return err
	}
	return &ExitError{Status: ExitUnknown, Err: Once(errors.Join(Unsaid(err), closing))}
}

// Once returns an error of several lines without those lines that another line contains. For example, both the client and the closing of the journal
// report a full disk.
func Once(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	left := slices.Clone(lines[:0])
	for i, line := range lines { // the first of equal lines stays
		said := slices.ContainsFunc(left, func(other string) bool { return strings.Contains(other, line) }) ||
			slices.ContainsFunc(lines[i+1:], func(other string) bool { return len(other) > len(line) && strings.Contains(other, line) })
		if !said {
			left = append(left, line)
		}
	}
	if len(left) == len(lines) {
		return err
	}
	return &SaidError{strings.Join(left, "\n"), err}
}

// Unsaid returns err; nil if it has no text, since it carries an exit status alone and its message was printed before.
func Unsaid(err error) error {
	if err == nil || err.Error() == "" {
		return nil
	}
	return err
}

// Confirm asks the user before an act that cannot be undone. yes is true if --yes was given. It returns nil for a yes; without a terminal for the question, its error
// names --yes.
func (s Streams) Confirm(yes bool, warning string) error {
	return s.ConfirmBy("--yes", yes, warning)
}

// ConfirmBy asks the user before an act with no way back. yes is the answer already given by the flag; without a terminal for the question, it
// returns an error naming that flag.
func (s Streams) ConfirmBy(flag string, yes bool, warning string) error {
	switch {
	case yes:
		return nil
	case !IsTerminal(s.In) || !IsTerminal(s.Err):
		return fmt.Errorf("%s; to go ahead all the same: %s", warning, flag)
	}
	_, _ = fmt.Fprintf(s.Err, "%s. Go ahead? [y/N] ", warning)
	answer, err := s.answer()
	if err != nil {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return errors.New("not confirmed; nothing was changed")
}

// answer reads a line, or returns ErrUnanswered once the command is interrupted. A read of a terminal cannot be ended: it goes on until the
// process ends, which an interrupted command does at once.
func (s Streams) answer() (string, error) {
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.In).ReadString('\n')
		typed <- line
	}()
	select {
	case line := <-typed:
		return line, nil
	case <-s.Done:
		Say(s.Err, "")
		return "", &ExitError{Status: ExitUnknown, Err: ErrUnanswered}
	}
}
