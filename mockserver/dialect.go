package mockserver

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// The answers of the key layer itself, spelled as the profile's matchers say.

const (
	problemType = "application/problem+json"
	jsonType    = "application/json"
	// The draft's own titles (section 2.7).
	titleMissing    = "Idempotency-Key is missing"
	titleUsed       = "Idempotency-Key is already used"
	titleProcessing = "A request is outstanding for this Idempotency-Key"
)

// docsURL is where the answers point for the rules; the draft wants a link.
func docsURL(p *profile.Profile) string {
	if ref := p.Sources["Mismatch"].Ref; strings.HasPrefix(ref, "https://") {
		return ref
	}
	return "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/07/"
}

// spelled is an answer that the matcher recognises.
func spelled(p *profile.Profile, m profile.Matcher, status int, title, detail string) *answer {
	if len(m.Status) > 0 {
		status = m.Status[0]
	}
	var a *answer
	if m.Pointer == "" {
		a = problem(p, status, title, detail)
	} else {
		var body any = map[string]any{"error": map[string]any{"message": title}}
		a = jsonAnswer(status, jsonType, plant(body, pointerTokens(m.Pointer), firstOr(m.Equals, "true")))
	}
	if m.Header != "" && !headerHas(a.header.Values(m.Header), m.Has) {
		a.header.Set(m.Header, firstOr(m.Has, "true"))
	}
	return a
}

// problem is an RFC 9457 problem with a link to the rules.
func problem(p *profile.Profile, status int, title, detail string) *answer {
	body := map[string]any{"type": docsURL(p), "title": title, "status": status}
	if detail != "" {
		body["detail"] = detail
	}
	a := jsonAnswer(status, problemType, body)
	a.header.Set("Link", "<"+docsURL(p)+`>; rel="describedby"; type="text/html"`)
	return a
}

// mismatchAnswer says that the key belongs to another request, and nothing of it.
func (s *Server) mismatchAnswer(standing *entry) *answer {
	p := s.cfg.Profile
	switch {
	case len(p.Mismatch) > 0:
		return spelled(p, p.Mismatch[0], http.StatusUnprocessableEntity, titleUsed, "")
	case len(p.AlreadyDone) > 0 && standing.answer != nil:
		return s.alreadyDone(standing.answer)
	case len(p.AlreadyDone) > 0:
		return s.inProgressAnswer()
	default:
		return problem(p, http.StatusUnprocessableEntity, titleUsed, "")
	}
}

// inProgressAnswer says that the first request is still being handled.
func (s *Server) inProgressAnswer() *answer {
	a := s.inProgressStatus(http.StatusConflict)
	if s.cfg.RetryAfter > 0 {
		a.header.Set("Retry-After", wholeSeconds(s.cfg.RetryAfter))
	}
	return a
}

// inProgressStatus is the profile's "in progress" with that status, or with the
// one that it has.
func (s *Server) inProgressStatus(status int) *answer {
	p := s.cfg.Profile
	for _, m := range p.InProgress {
		if slices.Contains(m.Status, status) {
			return spelled(p, m, status, titleProcessing, "")
		}
	}
	if len(p.InProgress) > 0 {
		return spelled(p, p.InProgress[0], status, titleProcessing, "")
	}
	return problem(p, status, titleProcessing, "")
}

// alreadyDone says that the operation took effect, and which resource it made.
func (s *Server) alreadyDone(stored *answer) *answer {
	p := s.cfg.Profile
	a := spelled(p, p.AlreadyDone[0], http.StatusConflict, "the resource exists already", "")
	if id := stored.id(); p.Lookup != nil && id != "" && p.Lookup.Pointer != "" {
		document, _ := lookup(a.body, "")
		a = jsonAnswer(a.status, jsonType, plant(document, pointerTokens(p.Lookup.Pointer), id))
	}
	return a
}

// replayAnswer is a stored answer, given again: marked, and without the cookies
// of the one who got it first.
func (s *Server) replayAnswer(stored *answer) *answer {
	p := s.cfg.Profile
	if len(p.AlreadyDone) > 0 && stored.status < 300 {
		return s.alreadyDone(stored)
	}
	a := stored.clone()
	a.replay = true
	a.header.Del("Set-Cookie")
	if len(p.Replay) > 0 && p.Replay[0].Header != "" {
		a.header.Set(p.Replay[0].Header, firstOr(p.Replay[0].Has, "true"))
	}
	if a.status >= 500 && p.ShouldRetry.Header != "" {
		a.header.Set(p.ShouldRetry.Header, p.ShouldRetry.No)
	}
	return a
}

// keeps reports whether the API stores the answer under the key. What only says
// "not now" (429, 502, 503, 504) is never stored, whatever the profile says.
func keeps(p *profile.Profile, a *answer) bool {
	switch {
	case a.status == http.StatusTooManyRequests, a.status > 500:
		return false
	case a.status == 500:
		return p.Stored.ServerError == profile.Yes
	case a.status >= 400:
		return matchesAny(p.Stored.Client, a)
	default:
		return true
	}
}

// firstOr is the first of the list, or the fallback.
func firstOr(list []string, fallback string) string {
	if len(list) > 0 {
		return list[0]
	}
	return fallback
}

func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
