package session

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Lesson says how the command learns what an answer means that has left an operation unknown and comes again: a 409 that only the draft
// takes for a request in progress, or a 4xx that settles nothing after a lost answer. It is empty where no word of a person helps.
func Lesson(p *profile.Profile, err error) string {
	var e *oncehttp.Error
	if !errors.As(err, &e) || e.Answer == nil || e.Sends < 2 || e.State != persist.StatePending || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		return ""
	}
	status := e.Answer.Status
	passes := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests}
	facts, why := "", ""
	switch {
	case status == http.StatusConflict:
		if len(p.InProgress) > 0 && !ofDraft(p) {
			return "" // the profile knows that answer
		}
		facts, why = "in_progress, business_conflict, already_done or mismatch", "a 409 that comes again may be a refusal of the business, or say that it was done before"
	case status >= 400 && status < 500 && e.Outcome == oncehttp.OutcomeUnknown && !slices.Contains(passes, status):
		facts, why = "mismatch, stored.client or already_done", fmt.Sprintf("a %d after a lost answer settles nothing, since nobody says that it is about this key", status)
	default:
		return ""
	}
	return fmt.Sprintf("%s; say what it means: --already-done '%d:/error/code=TEXT' with --lookup and --same, or a profile file with %s (oncehttp profile new)", why, status, facts)
}

// ofDraft reports whether a profile is the default one, with what flags have changed of it.
func ofDraft(p *profile.Profile) bool {
	name, _, _ := strings.Cut(p.Name, words.NaturalMark)
	name, _, _ = strings.Cut(name, words.KeyHeaderMark)
	return name == profile.Draft07().Name || name == profile.Draft07Quoted().Name
}

// Taught is an error with the lesson that belongs to it.
func Taught(p *profile.Profile, err error) error {
	if text := Lesson(p, err); text != "" {
		return fmt.Errorf("%w; %s", err, text)
	}
	return err
}
