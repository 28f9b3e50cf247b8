package terminal

import (
	"errors"

	"github.com/oncehttp/oncehttp"
)

// The exit statuses of every command except check. That one has its own.
const (
	ExitOK = 0
	// ExitRefused: the work was done, and some of it was refused.
	ExitRefused = 1
	// ExitUsage: the call or its input is wrong, and nothing was sent.
	ExitUsage = 2
	// ExitUnknown: something is unknown or still to do. The same command again
	// goes on. It outranks ExitRefused.
	ExitUnknown = 3
	// ExitLocked: another process holds the journal; nothing was done.
	ExitLocked = 5
	// ExitFindings: an audit or drift found differences, or --fail-over and the like found a match.
	ExitFindings = 6
)

// ExitError ends the command with this status. Any other error ends it with the status of its method Status, or
// with ExitUsage if it has no such method. Err may be nil if everything has been said.
type ExitError struct {
	Status int
	Err    error
}

// Error returns the text of Err; empty if the command ends with an exit status and no message.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err, which may be nil.
func (e *ExitError) Unwrap() error { return e.Err }

// Interrupted returns the end of a command after a signal, with nothing more to say.
func Interrupted() error { return &ExitError{Status: ExitUnknown, Err: errors.New("interrupted")} }

// ErrUnanswered is the end of a question by a signal.
var ErrUnanswered = errors.New("interrupted; nothing was changed")

// ExitWith returns an error with this exit status and no message; nil for ExitOK.
func ExitWith(status int) error {
	if status == ExitOK {
		return nil
	}
	return &ExitError{Status: status}
}

// withStatus is an error with an exit status of its own.
type withStatus interface {
	error
	Status() int
}

// StatusOf returns the exit status for err: that which the error names itself, ExitOK for nil, and ExitUsage for any other error.
func StatusOf(err error) int {
	var ee *ExitError
	var own withStatus
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &ee):
		return ee.Status
	case errors.As(err, &own):
		return own.Status()
	}
	return ExitUsage
}

// Worse returns the exit status of two pieces of work together. ExitUnknown outranks ExitRefused, and ExitRefused
// outranks ExitOK.
func Worse(a, b int) int { return max(a, b) }

// SaidError is an error in words of our own.
type SaidError struct {
	Text string
	Err  error
}

// Error returns the finished message in place of the text of Err.
func (e *SaidError) Error() string { return e.Text }

// Unwrap returns the error behind the message.
func (e *SaidError) Unwrap() error { return e.Err }

// Plain returns the reason alone if err is the client's refusal of a call before anything was sent. It leaves out the words about the effect, which
// are obvious here. Any other error is returned as it is.
func Plain(err error) error {
	var e *oncehttp.Error
	if errors.As(err, &e) && e.Cause != nil && errors.Is(err, oncehttp.ErrNoEffect) {
		return e.Cause
	}
	return err
}
