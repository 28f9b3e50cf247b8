package keylayer

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// The answers of the key layer itself, made so that the profile's matchers recognise them.

const (
	// ProblemType is the media type of RFC 9457.
	ProblemType = "application/problem+json"
	// JSONType is the media type of all other answers.
	JSONType = "application/json"
	// TitleMissing is the draft's own title (section 2.7) for a request without a key.
	TitleMissing = "Idempotency-Key is missing"
	// TitleUsed is the draft's title for a key that belongs to another request.
	TitleUsed = "Idempotency-Key is already used"
	// TitleProcessing is the draft's title for a key whose request is in progress.
	TitleProcessing = "A request is outstanding for this Idempotency-Key"
)

// docsURL returns the link of the layer's own errors: the profile's source for Mismatch, or the draft, which asks for
// a link.
func docsURL(p *profile.Profile) string {
	if ref := p.Sources["Mismatch"].Ref; strings.HasPrefix(ref, "https://") {
		return ref
	}
	return "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/07/"
}

// spelled returns an answer of the kind that the matcher recognises, as the mock's API gives it: with the matcher's first status (else status), its
// header, and its first value at its pointer. Without a pointer the body is a problem with title and detail.
func spelled(p *profile.Profile, m profile.Matcher, status int, title, detail string) *Answer {
	if len(m.Status) > 0 {
		status = m.Status[0]
	}
	var a *Answer
	if m.Pointer == "" {
		a = Problem(p, status, title, detail)
	} else {
		var body any = map[string]any{"error": map[string]any{"message": title}}
		a = JSONAnswer(status, JSONType, plant(body, pointerTokens(m.Pointer), FirstOr(m.Equals, "true")))
	}
	if m.Header != "" && !headerHas(a.Header.Values(m.Header), m.Has) {
		a.Header.Set(m.Header, FirstOr(m.Has, "true"))
	}
	return a
}

// Problem returns an answer in the form of RFC 9457 (problem details), with a link to the API's rules. An empty detail is left out.
func Problem(p *profile.Profile, status int, title, detail string) *Answer {
	body := map[string]any{"type": docsURL(p), "title": title, "status": status}
	if detail != "" {
		body["detail"] = detail
	}
	a := JSONAnswer(status, ProblemType, body)
	a.Header.Set("Link", "<"+docsURL(p)+`>; rel="describedby"; type="text/html"`)
	return a
}

// MismatchAnswer returns the refusal of another request under the key of existing, as the profile's API spells it. It shows nothing of existing,
// except at an API that answers a used key with "already done": the id of its resource, once that is made. inBody is a refusal in the body of a 200;
// nil at most APIs.
func (l *Layer) MismatchAnswer(existing *Entry) *Answer {
	p := l.Profile
	answer := inBody(p, profile.ProvesMismatch)
	switch {
	case len(p.Mismatch) == 0 && answer != nil:
		return answer
	case len(p.Mismatch) > 0:
		return spelled(p, p.Mismatch[0], http.StatusUnprocessableEntity, TitleUsed, "")
	case len(p.AlreadyDone) > 0 && existing.Answer != nil:
		return l.alreadyDone(existing.Answer)
	case len(p.AlreadyDone) > 0:
		return l.InProgressAnswer()
	case p.FirstSent != "": // OASIS Repeatable Requests 1.0
		return Problem(p, http.StatusBadRequest, TitleUsed, "")
	default:
		return Problem(p, http.StatusUnprocessableEntity, TitleUsed, "")
	}
}

// InProgressAnswer returns the answer to a repeat that arrives while the first request is handled, as the profile's API spells it, with the wait of
// Layer.RetryAfter in the header and, where the API has it there, in the body.
func (l *Layer) InProgressAnswer() *Answer {
	a := l.InProgressStatus(http.StatusConflict)
	if l.RetryAfter <= 0 {
		return a
	}
	a.Header.Set("Retry-After", wholeSeconds(l.RetryAfter))
	for _, hint := range l.Profile.RetryAfter {
		if hint.Pointer == "" {
			continue
		}
		wait := json.Number(wholeSeconds(l.RetryAfter))
		if hint.Unit == profile.Milliseconds {
			wait = json.Number(strconv.FormatInt(l.RetryAfter.Milliseconds(), 10))
		}
		document, _ := Lookup(a.Body, "")
		a.Body = JSONAnswer(a.Status, "", plant(document, pointerTokens(hint.Pointer), wait)).Body
	}
	return a
}

// WaitInBody returns the longest wait that the answer's body asks for by the profile's RetryAfter; zero: none. A number beyond waitSecondsMax is no
// wait.
func WaitInBody(p *profile.Profile, a *Answer) time.Duration {
	var longest time.Duration
	for _, hint := range p.RetryAfter {
		unit := time.Second
		if hint.Unit == profile.Milliseconds {
			unit = time.Millisecond
		}
		text, found := LookupText(a.Body, hint.Pointer)
		if n, err := strconv.ParseFloat(text, 64); hint.Pointer != "" && found && err == nil && n > 0 && n <= waitSecondsMax {
			longest = max(longest, time.Duration(n*float64(unit)))
		}
	}
	return longest
}

// waitSecondsMax bounds the number in a wait; a larger one counts as none.
const waitSecondsMax = 1e9

// InProgressStatus returns the answer of the profile's API that the first request is still being handled, without a time to wait. It has the status
// if the profile has one with it, else the profile's first; a profile without any gets a problem with the status.
func (l *Layer) InProgressStatus(status int) *Answer {
	p := l.Profile
	for _, m := range p.InProgress {
		if slices.Contains(m.Status, status) {
			return spelled(p, m, status, TitleProcessing, "")
		}
	}
	if len(p.InProgress) > 0 {
		return spelled(p, p.InProgress[0], status, TitleProcessing, "")
	}
	if answer := inBody(p, profile.ProvesInProgress); answer != nil {
		return answer
	}
	return Problem(p, status, TitleProcessing, "")
}

// alreadyDone returns the profile's answer that the resource exists already, with the id of the stored answer's resource where the profile's lookup
// reads it. The profile must have such an answer.
func (l *Layer) alreadyDone(stored *Answer) *Answer {
	p := l.Profile
	a := spelled(p, p.AlreadyDone[0], http.StatusConflict, "the resource exists already", "")
	if id := stored.ID(); p.Lookup != nil && id != "" && p.Lookup.Pointer != "" {
		document, _ := Lookup(a.Body, "")
		a = JSONAnswer(a.Status, JSONType, plant(document, pointerTokens(p.Lookup.Pointer), id))
	}
	return a
}

// ReplayAnswer returns the answer to a repeat: a copy of a stored answer, marked as a replay and without cookies, which belong to the first caller.
// An API with AlreadyDone answers with that in place of a stored success. A stored server error says that trying again is of no use (ShouldRetry),
// where the API has such a header.
func (l *Layer) ReplayAnswer(stored *Answer) *Answer {
	p := l.Profile
	if len(p.AlreadyDone) > 0 && stored.Status < 300 {
		return l.alreadyDone(stored)
	}
	a := stored.Clone()
	a.Replay = true
	a.Header.Del("Set-Cookie")
	if len(p.Replay) > 0 && p.Replay[0].Header != "" {
		a.Header.Set(p.Replay[0].Header, FirstOr(p.Replay[0].Has, "true"))
	}
	if a.Status >= 500 && p.ShouldRetry.Header != "" {
		a.Header.Set(p.ShouldRetry.Header, p.ShouldRetry.No)
	}
	return a
}

// Keeps reports whether the API stores the answer under its key, for repeats; else the key is free again. 429 and statuses over 500 are temporary and
// never stored, regardless of the profile.
func Keeps(p *profile.Profile, a *Answer) bool {
	switch {
	case a.Status == http.StatusTooManyRequests, a.Status > 500:
		return false
	case a.Status == 500:
		return p.Stored.ServerError == profile.Yes
	case a.Status >= 400:
		return MatchesAny(p.KeptErrors(), a)
	default:
		return true
	}
}

// FirstOr returns the first element, or the fallback for an empty list.
func FirstOr(list []string, fallback string) string {
	if len(list) > 0 {
		return list[0]
	}
	return fallback
}

// wholeSeconds returns d in seconds, rounded up.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
