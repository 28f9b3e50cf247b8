package main

import (
	"errors"
	"strings"

	"github.com/oncehttp/oncehttp"
)

// The exit statuses of every command but check, which has its own.
const (
	exitOK = 0
	// exitRefused: the work was done, and some of it was refused.
	exitRefused = 1
	// exitUsage: the call or its input is wrong, and nothing was sent.
	exitUsage = 2
	// exitUnknown: something is unknown or still to do. The same command again
	// goes on. It outranks exitRefused.
	exitUnknown = 3
	// exitLocked: another process holds the journal; nothing was done.
	exitLocked = 5
	// exitFindings: an audit found differences, or --fail-over and the like what they look for.
	exitFindings = 6
)

// exitError ends the command with this status. Of other errors a journalFault has its own,
// and any else gives exitUsage. err may be nil where everything has been said.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// errInterrupted ends the command where a signal came, and nothing more is to be said.
func errInterrupted() error { return &exitError{status: exitUnknown, err: errors.New("interrupted")} }

// exitWith is nil for exitOK, else an error that says nothing more.
func exitWith(status int) error {
	if status == exitOK {
		return nil
	}
	return &exitError{status: status}
}

// statusOf is the exit status that err stands for.
func statusOf(err error) int {
	var ee *exitError
	var fault *journalFault
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ee):
		return ee.status
	case errors.As(err, &fault):
		return fault.status()
	}
	return exitUsage
}

// worse is the exit status of two pieces of work together: exitUnknown outranks
// exitRefused, which outranks exitOK.
func worse(a, b int) int { return max(a, b) }

// flagWords replaces the names of Go fields, which the client's errors use, by what
// a user of the command knows.
func flagWords(text string) string {
	return strings.NewReplacer(
		"Retry.MaxAttempts", "--max-attempts", "Retry.MaxElapsed", "--max-elapsed", "Retry.AttemptTimeout", "--attempt-timeout",
		"Retry.AnswerTimeout", "the time for a whole answer", "Retry.MinDelay", "--min-delay", "Retry.MaxDelay", "--max-delay",
		"Retry.MaxRetryAfter", "--max-retry-after", "; set Config.Authorize", "; give them again with -H",
		", or AcceptPlain of package persist/seal)", " @FILE)", "(package persist/seal)", "(--seal-key @FILE)",
		"Options.ListenURL", "--journal-direct", "ListenURL", "--journal-direct",
		": it is not among Config.Origins, and Config.OriginAllowed does not allow it", "; name it with --origin, or --auth",
		"Config.Region", "--region", "Config.Credential", "--credential",
		"what CredentialHash makes of the credential", "sha256: and the SHA-256 of the credential in hexadecimal digits",
		"Client.Assign", "oncehttp journal assign", " (Key.Generation)", "", "MaxRequestBytes", "what the command takes (10 MiB)", "EnqueueMaxAge", "its time",
		"KeyHonoured", "--key-honoured", "BasePath", "--base-path",
		"a RandomKey that is kept", "a random one beside each row", "Key.UUIDv4()", "--key-uuid4", "Key.UUID()", "--key-uuid",
	).Replace(shapeWords(keyHeaderWords(naturalWords(text))))
}

// oneLine spells err on one line that starts with "oncehttp: " once.
func oneLine(err error) string {
	text := flagWords(strings.Join(strings.Fields(err.Error()), " "))
	if what, last, has := strings.Cut(text, "last attempt: "); has {
		text = what + "last attempt: " + causeWords(last)
	}
	return "oncehttp: " + strings.TrimPrefix(text, "oncehttp: ")
}

// statusOfError is the exit status that the error of one operation stands for.
// An operation that was not sent is still to do: the same command again sends
// it. One that the server, or the journal, refused is not. One that was decided
// before, and whose answer is not to be had, stands for what was decided.
func statusOfError(err error) int {
	var e *oncehttp.Error
	switch {
	case errors.Is(err, oncehttp.ErrOutcomeUnknown):
		return exitUnknown
	case errors.Is(err, oncehttp.ErrRefused), errors.Is(err, oncehttp.ErrKeyReused):
		return exitRefused
	case answerIsGone(err) && errors.As(err, &e):
		return resultOfEffect(e).exit()
	case errors.Is(err, oncehttp.ErrSettled):
		return exitRefused
	case errors.Is(err, oncehttp.ErrKeyInvalid), errors.Is(err, oncehttp.ErrConfig), errors.Is(err, oncehttp.ErrBodyTooLarge):
		return exitRefused
	}
	return exitUnknown
}
