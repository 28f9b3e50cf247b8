package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
)

// result says in one word what an operation came to for the business. Lines,
// summaries, filters and help use these words and no others.
type result string

const (
	resultDone      result = "done"      // a 2xx, and no decline was seen in it
	resultAccepted  result = "accepted"  // a 202: the server has it and still works on it
	resultDeclined  result = "declined"  // the business said no: 402, or what --declined names, at any status
	resultInvalid   result = "invalid"   // any other final 4xx
	resultRejected  result = "rejected"  // nothing happened, and nothing is pending
	resultMismatch  result = "mismatch"  // the key belongs to another request; nothing was sent for this one
	resultHeld      result = "held"      // in doubt, and nothing is sent until somebody settles it
	resultUnknown   result = "unknown"   // in doubt
	resultDuplicate result = "duplicate" // done before: by another row, or so the server says; held where it does not say by whom
)

func allResults() []result {
	return []result{
		resultDone, resultAccepted, resultDuplicate, resultDeclined, resultInvalid, resultRejected, resultMismatch, resultHeld, resultUnknown,
	}
}

// resultsHelp lists the words for help texts.
func resultsHelp() string {
	words := make([]string, 0, 9)
	for _, r := range allResults() {
		words = append(words, string(r))
	}
	return strings.Join(words, ", ")
}

func parseResults(names []string) ([]result, error) {
	var results []result
	for _, name := range names {
		if !slices.Contains(allResults(), result(name)) {
			return nil, fmt.Errorf("--result %q is not one of %s", clip(name), resultsHelp())
		}
		results = append(results, result(name))
	}
	return results, nil
}

// exit is the exit status that one operation with this result stands for. An
// operation that was not sent is still to do, and has exitUnknown although its
// result is rejected; its caller knows.
func (r result) exit() int {
	switch r {
	case resultDone, resultAccepted, resultDuplicate:
		return exitOK
	case resultHeld, resultUnknown:
		return exitUnknown
	}
	return exitRefused
}

// declines are the answers that the caller knows to be refusals of the business,
// besides 402.
type declines []decline

// decline is a JSON pointer into an answer's body and the text that stands there.
type decline struct{ pointer, equals string }

// bindDeclines binds --declined.
func bindDeclines(fs *pflag.FlagSet, to *[]string) {
	fs.StringArrayVar(to, "declined", nil, "an answer that is a refusal whatever its status, as JSON pointer and text, such as '/resultCode=Refused'; may be repeated")
}

// parseDeclines parses the values of --declined: POINTER=TEXT, split at the first "=".
func parseDeclines(texts []string) (declines, error) {
	var list declines
	for _, text := range texts {
		pointer, equals, found := strings.Cut(text, "=")
		if !found || !strings.HasPrefix(pointer, "/") || equals == "" {
			return nil, fmt.Errorf("--declined %q: want a JSON pointer, = and a text, such as /resultCode=Refused", clip(text))
		}
		list = append(list, decline{pointer, equals})
	}
	return list, nil
}

// match reports whether a body says that the operation was declined. Without --declined no body is decoded.
func (list declines) match(body []byte) bool {
	if len(list) == 0 {
		return false
	}
	document := jsonpointer.Decode(body)
	return slices.ContainsFunc(list, func(d decline) bool {
		text, found := jsonpointer.Text(document, d.pointer)
		return found && text == d.equals
	})
}

// resultOfAnswer is the result of a final answer. body may be nil where it was
// not kept; then only the status counts, and refused: whether the client takes the
// answer for a refusal, which a profile's verdicts may say of a 2xx.
func (list declines) resultOfAnswer(status int, body []byte, alreadyDone, refused bool) result {
	if list.match(body) || refused && status < 400 {
		return resultDeclined
	}
	switch {
	case alreadyDone:
		return resultDuplicate
	case status == http.StatusPaymentRequired:
		return resultDeclined
	case status >= 400:
		return resultInvalid
	case status == http.StatusAccepted:
		return resultAccepted
	}
	return resultDone
}

// resultOfRecord is the result of an operation as it stands in the journal. An
// answer that was pruned is done unless its status says otherwise.
func (list declines) resultOfRecord(rec *persist.Record) result {
	switch rec.State {
	case persist.StateConfirmed:
		if rec.Answer == nil { // pruned: the status and the effect are left
			return list.resultOfAnswer(rec.Status, nil, rec.Status >= 400 && rec.FinalEffect() == persist.EffectHappened, rec.FinalEffect() == persist.EffectRefused)
		}
		return list.resultOfAnswer(rec.Answer.Status, textOf(rec.Answer.Header, rec.Answer.Body), rec.Answer.AlreadyDone, rec.FinalEffect() == persist.EffectRefused)
	case persist.StateSettled:
		if rec.Effect == persist.EffectAbsent {
			return resultRejected
		}
		return resultDone
	case persist.StateMismatched:
		return resultMismatch
	case persist.StateHeld:
		if rec.HoldReason == persist.HoldDuplicate {
			return resultDuplicate
		}
		return resultHeld
	}
	return resultUnknown
}

// resultOfError is the result of an operation that ended with an error.
func resultOfError(err error) result {
	switch {
	case errors.Is(err, oncehttp.ErrDuplicate):
		return resultDuplicate
	case errors.Is(err, oncehttp.ErrKeyReused) && !errors.Is(err, oncehttp.ErrHeld):
		return resultMismatch
	case errors.Is(err, oncehttp.ErrNoEffect):
		return resultRejected
	case errors.Is(err, oncehttp.ErrFinal):
		var e *oncehttp.Error
		errors.As(err, &e)
		return resultOfEffect(e)
	case errors.Is(err, oncehttp.ErrHeld):
		return resultHeld
	}
	return resultUnknown
}

// resultOfEffect is the result of an operation that was decided before, as the error says.
func resultOfEffect(e *oncehttp.Error) result {
	switch effect := e.Effect(); {
	case effect == oncehttp.EffectAbsent:
		return resultRejected
	case effect == oncehttp.EffectUnknown:
		return resultMismatch
	case e.Answer != nil:
		return declines(nil).resultOfAnswer(e.Answer.Status, nil, e.Answer.Status >= 400 && effect == oncehttp.EffectHappened, effect == oncehttp.EffectRefused)
	case effect == oncehttp.EffectRefused:
		return resultInvalid
	case e.Outcome == oncehttp.OutcomeAccepted:
		return resultAccepted
	}
	return resultDone
}

// answerIsGone reports whether an operation was decided before, and no call can have its answer any more.
func answerIsGone(err error) bool {
	return errors.Is(err, oncehttp.ErrFinal) && errors.Is(err, oncehttp.ErrAnswerGone)
}

// lineError is why an operation is not done: a code to sort by and a sentence.
type lineError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// errorCodes are the codes of errors, the most telling first.
func errorCodes() []struct {
	is   error
	code string
} {
	return []struct {
		is   error
		code string
	}{
		{oncehttp.ErrSettled, "settled"}, {oncehttp.ErrAbandoned, "abandoned"}, {oncehttp.ErrAnswerGone, "answer_gone"},
		{oncehttp.ErrKeyExpired, "key_expired"}, {oncehttp.ErrStoredError, "stored_error"}, {oncehttp.ErrRedirected, "redirected"},
		{oncehttp.ErrDuplicate, "duplicate_reference"}, {oncehttp.ErrAccount, "other_account"},
		{oncehttp.ErrKeyReused, "key_reused"}, {oncehttp.ErrHeld, "held"}, {oncehttp.ErrInFlight, "in_flight"},
		{oncehttp.ErrKeyInvalid, "key_invalid"}, {oncehttp.ErrBodyTooLarge, "body_too_large"}, {oncehttp.ErrConfig, "bad_request"},
		{oncehttp.ErrClosed, "interrupted"}, {oncehttp.ErrRefused, "refused"}, {oncehttp.ErrNotSent, "not_sent"},
	}
}

func errorOf(err error) *lineError {
	code := "no_answer"
	if e := (*oncehttp.Error)(nil); errors.As(err, &e) && e.Sends == 0 {
		code = "not_sent"
	}
	for _, c := range errorCodes() {
		if errors.Is(err, c.is) {
			code = c.code
			break
		}
	}
	return &lineError{Code: code, Message: oneLine(err)}
}

// errorOfAnswer is what an error answer says of itself: the first code and message
// that APIs commonly put into a JSON body (RFC 9457's type and detail among them),
// else the status.
func errorOfAnswer(status int, body []byte) *lineError {
	document := jsonpointer.Decode(body)
	first := func(pointers ...string) string {
		for _, p := range pointers {
			if text, _ := jsonpointer.Text(document, p); text != "" {
				return clip(text)
			}
		}
		return ""
	}
	e := &lineError{
		Code:    first("/error/code", "/error/type", "/code", "/errorCode", "/error_code", "/refusalReasonCode", "/error", "/type"),
		Message: first("/error/message", "/message", "/detail", "/refusalReason", "/error_description", "/title"),
	}
	if e.Code == "" {
		e.Code = fmt.Sprintf("http_%d", status)
	}
	if e.Message == "" {
		e.Message = strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	}
	return e
}
