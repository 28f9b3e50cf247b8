package results

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
)

// Codes of errors of this command.
const (
	CodeInterrupted = "interrupted"     // the end of its client broke off the call
	CodeEarlierRow  = "earlier_row"     // a row that --ordered-by puts before this one has not ended
	codeNotAgain    = "not_sent_again"  // an earlier call sent it, and this one nothing
	CodeDistrusted  = "key_not_trusted" // the operation was begun under a profile that trusts its key, and this run's does not
	CodeUnread      = "answer_unread"   // --declined was not looked for in the answer
	// CodeContradicted: an event of the API says that the operation happened, and its recorded end that it did not.
	CodeContradicted = "contradicted"
	CodeSettled      = "settled" // a person settled the operation as absent
)

// LineError is the reason for an operation not done: a code to sort by and a sentence.
type LineError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// errorCodes returns the errors of package oncehttp, each with the code by which a printed line names it. An error may match several: the first one, the most
// telling, counts.
func errorCodes() []struct {
	is   error
	code string
} {
	return []struct {
		is   error
		code string
	}{
		{oncehttp.ErrSettled, CodeSettled}, {oncehttp.ErrAbandoned, "abandoned"}, {oncehttp.ErrAnswerGone, "answer_gone"},
		{oncehttp.ErrKeyExpired, "key_expired"}, {oncehttp.ErrStoredError, "stored_error"}, {oncehttp.ErrRedirected, "redirected"},
		{oncehttp.ErrDuplicate, "duplicate_reference"}, {oncehttp.ErrAccount, "other_account"},
		{oncehttp.ErrKeyReused, "key_reused"}, {oncehttp.ErrHeld, "held"}, {oncehttp.ErrInFlight, "in_flight"},
		{oncehttp.ErrKeyInvalid, "key_invalid"}, {oncehttp.ErrBodyTooLarge, "body_too_large"}, {oncehttp.ErrConfig, "bad_request"},
		{oncehttp.ErrClosed, CodeInterrupted}, {oncehttp.ErrRefused, "refused"}, {oncehttp.ErrNotSent, "not_sent"},
	}
}

// errorOf returns the code for programs and the text for people of a call's error, for the printed result line. An error of package oncehttp goes before the
// status of the answer. Two texts make the code more exact: a lookup that found another resource, and missing credentials.
func errorOf(err error) *LineError {
	code := "no_answer"
	if e := (*oncehttp.Error)(nil); errors.As(err, &e) {
		switch {
		case e.Answer != nil:
			code = httpCode(e.Answer.Status)
		case e.Sends == 0 && e.Outcome == oncehttp.OutcomeUnknown && e.Attempts > 0: // an earlier call has sent it, this one nothing
			code = codeNotAgain
		case e.Sends == 0:
			code = "not_sent"
		}
	}
	for _, c := range errorCodes() {
		if errors.Is(err, c.is) {
			code = c.code
			break
		}
	}
	text := words.OneLine(err)
	if code == "key_reused" && words.LookupCause(text) != "" {
		code = "lookup_mismatch"
	}
	if code == "bad_request" && strings.Contains(text, words.GiveCredentials) {
		code = CodeCredentials
	}
	return &LineError{Code: code, Message: text}
}

// CodeCredentials is the code of an error about credentials that this run was not given.
const CodeCredentials = "credentials_missing"

// httpCode returns the code of an answer that has none of its own.
func httpCode(status int) string { return fmt.Sprintf("http_%d", status) }

// errorOfAnswer returns the code and message of an error answer. They are the first found in the places usual for APIs in a JSON body
// (RFC 9457's type and detail among them), else the status.
func errorOfAnswer(status int, body []byte) *LineError {
	document := jsonpointer.Decode(body)
	first := func(pointers ...string) string {
		for _, p := range pointers {
			if text, _ := jsonpointer.Text(document, p); text != "" {
				return words.Clip(text)
			}
		}
		return ""
	}
	e := &LineError{
		Code:    first("/error/code", "/error/type", "/code", "/errorCode", "/error_code", "/refusalReasonCode", "/error", "/type"),
		Message: first("/error/message", "/message", "/detail", "/refusalReason", "/error_description", "/title"),
	}
	if e.Code == "" {
		e.Code = httpCode(status)
	}
	if e.Message == "" {
		e.Message = strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	}
	return e
}
