package session

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Lesson returns a text that tells the user how to teach the command the meaning of an answer that left an operation unknown, and that comes again at each
// attempt. err is the client's error. The answer is a 2xx with an error of GraphQL, a 409 that may be a refusal, or another 4xx after a lost answer. It returns
// "" if no word of a person helps, and for all but GraphQL before a second send. begun is the name of the profile that the operation was begun under, "" if it is not known: the
// flags of another run do not judge it.
func Lesson(p *profile.Profile, err error, begun string) string {
	var e *oncehttp.Error
	if errors.As(err, &e) && e.Answer != nil && failedAsGraphQL(e) {
		return "look there, and settle it; of other operations say what such answers mean: --done '/data/FIELD=TEXT', beside it --declined '/errors/0/extensions/code=TEXT', which alone does not judge such an answer, and --unknown"
	}
	if e == nil || e.Answer == nil || e.Sends < 2 || e.State != persist.StatePending || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		return ""
	}
	status := e.Answer.Status
	// These statuses refuse the attempt and not the operation: they pass without a lesson.
	passes := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests, 499}
	facts, why := "", ""
	switch {
	case status == http.StatusConflict:
		if len(p.InProgress) > 0 && !ofDraft(p) {
			return "" // the profile knows that answer
		}
		switch natural := strings.Contains(p.Name, words.NaturalMark); {
		case natural && begun != "" && !strings.Contains(begun, words.NaturalMark):
			return "it was begun without --already-done and --lookup, and those of this run judge only what is begun with them: " + askAndSettle
		case natural:
			return "where the lookup does not tell what came of it, " + askAndSettle
		}
		facts, why = "in_progress, business_conflict, already_done or mismatch", "a 409 that comes again may be a refusal of the business, or say that it was done before"
	case e.Outcome == oncehttp.OutcomeUnknown && (status == http.StatusLocked || status == http.StatusFailedDependency):
		facts, why = "in_progress, business_conflict, already_done or mismatch", fmt.Sprintf("a %d does not say whether anything happened", status)
	case status >= 400 && status < 500 && e.Outcome == oncehttp.OutcomeUnknown && !slices.Contains(passes, status):
		facts, why = "mismatch, stored.client or already_done", fmt.Sprintf("a %d after a lost answer settles nothing, since nobody says that it is about this key", status)
	case status < 300:
		return "a 2xx that refuses after a lost answer settles nothing, since nobody says that it is about the first send: ask the API, and say what happened (oncehttp journal settle KEY@SEEN, as oncehttp journal stuck lists it)"
	default:
		return ""
	}
	return fmt.Sprintf("%s; %s; for what is begun from then on, say what such an answer means: --already-done '%d:/error/code=TEXT' with --lookup and --same, or a profile file with %s (oncehttp profile new)", why, askAndSettle, status, facts)
}

// askAndSettle is the way out of an answer that settles nothing, whatever flags are given later.
const askAndSettle = "ask the API what came of it, and settle it (oncehttp journal settle KEY@SEEN --absent, or --happened; oncehttp journal stuck lists KEY@SEEN)"

// failedAsGraphQL reports whether an operation is held since its answer, a 2xx, has a list of errors and no data, as GraphQL reports a failure. Data of
// nothing but members that are null counts as none.
func failedAsGraphQL(e *oncehttp.Error) bool {
	if e.State != persist.StateHeld || e.Answer.Status >= 300 {
		return false
	}
	answer := jsonpointer.Decode(results.TextOf(e.Answer.Header, e.Answer.Body))
	list, _ := jsonpointer.Value(answer, "/errors").([]any)
	data := jsonpointer.Value(answer, "/data")
	fields, isObject := data.(map[string]any)
	for _, field := range fields {
		isObject = isObject && field == nil
	}
	return len(list) > 0 && (data == nil || isObject)
}

// ofDraft reports whether a profile is the default one, that of the IETF draft, perhaps changed by flags. These add marks to its name.
func ofDraft(p *profile.Profile) bool {
	name, _, _ := strings.Cut(p.Name, "~") // NaturalMark and DoneMark
	name, _, _ = strings.Cut(name, words.KeyHeaderMark)
	return name == profile.Draft07().Name || name == profile.Draft07Quoted().Name
}
