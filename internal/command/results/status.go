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

// StatusOfError returns the exit status for the error of one operation. An operation that was not sent is still to do: the same command sends it
// later. The same holds if the server refused it for now, as with 429, or a proxy in front of the API refused it. It does not hold if the API refused
// the credentials, or the journal refused the operation. If the operation was decided before and its answer is gone, the status is that of the
// decision.
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
	case (answerIsGone(err) || isErased(err)) && errors.As(err, &e):
		return resultOfEffect(e).Exit()
	case errors.Is(err, oncehttp.ErrSettled):
		return terminal.ExitRefused
	case errors.Is(err, oncehttp.ErrKeyInvalid), errors.Is(err, oncehttp.ErrConfig), errors.Is(err, oncehttp.ErrBodyTooLarge):
		return terminal.ExitRefused
	}
	return terminal.ExitUnknown
}

// credentialsRefused reports whether the API itself refused the credentials: with a 401, 403 or 407, and a body other than HTML. An empty body or an
// HTML page is from a proxy in front of the API, or from a firewall.
func credentialsRefused(a *persist.Answer) bool {
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return !bareAnswer(a)
	}
	return false
}

// bareAnswer reports whether an answer is empty or an HTML page, as from a proxy in front of the API.
func bareAnswer(a *persist.Answer) bool {
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	text := strings.ToLower(string(bytes.TrimSpace(a.Body[:min(len(a.Body), 512)])))
	return len(a.Body) == 0 && !a.BodyDropped || kind == "text/html" || strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")
}
