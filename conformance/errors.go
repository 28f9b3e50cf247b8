package conformance

import (
	"errors"
	"fmt"
)

// The errors of Run, for errors.Is. Faults of the target are in the report, never in an error.
var (
	// ErrUsage: the options are wrong, name a case that does not exist, or
	// leave none to run. Nothing was sent.
	ErrUsage = errors.New("conformance: the call is wrong")
	// ErrUnreachable: the target does not take connections.
	ErrUnreachable = errors.New("conformance: the target is unreachable")
	// ErrRefuses: the target takes connections, but answers a plain operation
	// with no success, so that nothing can be judged: a wrong URL, body, header
	// or profile.
	ErrRefuses = errors.New("conformance: the target does not take an operation")
)

// UsageError is a mistake in the options, in one line. It matches ErrUsage.
type UsageError struct {
	// Option names the field of Options.
	Option string
	// Detail says what is wrong with it.
	Detail string
}

// Error returns one line.
func (e *UsageError) Error() string { return "conformance: " + e.Option + ": " + e.Detail }

// Unwrap makes the error match ErrUsage.
func (e *UsageError) Unwrap() error { return ErrUsage }

// usage returns a *UsageError for the field of Options named option.
func usage(option, format string, args ...any) error {
	return &UsageError{Option: option, Detail: fmt.Sprintf(format, args...)}
}
