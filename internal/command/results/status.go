package results

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
)

// StatusOfError returns the exit status for the error of one operation. An operation not sent is still to do: the same command again
// sends it. So is one refused by the server for now, as with 429, or by something in front of the API. An operation with credentials
// refused by the API, or refused by the journal, is not. If an operation was decided before and its answer is gone, the status is that
// of the decision.
func StatusOfError(err error) int {
	var e *oncehttp.Error
	switch {
	case errors.Is(err, oncehttp.ErrOutcomeUnknown):
		return terminal.ExitUnknown
	case errors.Is(err, oncehttp.ErrKeyReused):
		return terminal.ExitRefused
	case errors.Is(err, oncehttp.ErrRefused):
		if errors.As(err, &e) && (e.Answer == nil || !credentialsRefused(e.Answer)) {
			return terminal.ExitUnknown
		}
		return terminal.ExitRefused
	case answerIsGone(err) && errors.As(err, &e):
		return resultOfEffect(e).Exit()
	case errors.Is(err, oncehttp.ErrSettled):
		return terminal.ExitRefused
	case errors.Is(err, oncehttp.ErrKeyInvalid), errors.Is(err, oncehttp.ErrConfig), errors.Is(err, oncehttp.ErrBodyTooLarge):
		return terminal.ExitRefused
	}
	return terminal.ExitUnknown
}

// credentialsRefused reports whether the API itself, and nothing in front of it, refused the credentials.
func credentialsRefused(a *persist.Answer) bool {
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return !bareAnswer(a)
	}
	return false
}

// bareAnswer reports whether an answer is a page or empty, as from something in front of the API.
func bareAnswer(a *persist.Answer) bool {
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	text := strings.ToLower(string(bytes.TrimSpace(a.Body[:min(len(a.Body), 512)])))
	return len(a.Body) == 0 && !a.BodyDropped || kind == "text/html" || strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")
}
