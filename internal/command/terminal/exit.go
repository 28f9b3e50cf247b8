package terminal

import (
	"errors"

	"github.com/oncehttp/oncehttp"
)

// The exit statuses of every command but check, which has its own.
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
	// ExitFindings: an audit found differences, or --fail-over and the like what they look for.
	ExitFindings = 6
)

// ExitError ends the command with this status. Of other errors one with a method status has its own,
// and any else gives ExitUsage. err may be nil where everything has been said.
type ExitError struct {
	Status int
	Err    error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Interrupted ends the command where a signal came, and nothing more is to be said.
func Interrupted() error { return &ExitError{Status: ExitUnknown, Err: errors.New("interrupted")} }

// ExitWith is nil for ExitOK, else an error that says nothing more.
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

// StatusOf is the exit status that err stands for.
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

// Worse is the exit status of two pieces of work together: ExitUnknown outranks
// ExitRefused, which outranks ExitOK.
func Worse(a, b int) int { return max(a, b) }

// SaidError is an error in words of our own.
type SaidError struct {
	Text string
	Err  error
}

func (e *SaidError) Error() string { return e.Text }

func (e *SaidError) Unwrap() error { return e.Err }

// Plain says why the client refused a call before anything was sent, without
// the client's own preamble: here it goes without saying.
func Plain(err error) error {
	var e *oncehttp.Error
	if errors.As(err, &e) && e.Cause != nil && errors.Is(err, oncehttp.ErrNoEffect) {
		return e.Cause
	}
	return err
}
