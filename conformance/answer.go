package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// answer is what came back for one request, whole or not.
type answer struct {
	status int // 0: no answer
	header http.Header
	body   []byte
	err    error // why there is no (whole) answer

	// The moments: before anything was written, when the last byte had been,
	// and when the whole answer or the error was there.
	started, written, ended time.Time

	kind      kind
	replayed  bool   // it carries the profile's mark
	id, place string // what the answer names, where that tells effects apart
	throttled bool   // it comes from a limit on the rate of requests, or may
	rawID     string // what stands at Options.IDPointer
}

// kind is what an answer means, as the profile says.
type kind string

const (
	noAnswer    kind = "no answer"
	done        kind = "done"         // 2xx, 303
	alreadyDone kind = "already done" // the profile's
	mismatch    kind = "mismatch"
	poisoned    kind = "poisoned"
	business    kind = "business conflict"
	busy        kind = "in progress"
	refused     kind = "refused" // any other 4xx
	broken      kind = "server error"
	redirected  kind = "redirect"
)

// outcome reports whether the answer claims that the work is done.
func (a *answer) outcome() bool { return a.kind == done || a.kind == alreadyDone }

// String is the answer in a few words.
func (a *answer) String() string {
	if a.status == 0 {
		return "no answer (" + errorText(a.err) + ")"
	}
	text := fmt.Sprint(a.status)
	switch a.kind {
	case done, refused, broken:
	default:
		text += " (" + string(a.kind) + ")"
	}
	if a.replayed {
		text += " marked as a replay"
	}
	if a.id != "" {
		text += " of " + a.id
	}
	return text
}

// names reports whether the answer names what it is about.
func (a *answer) names() bool { return a.id != "" || a.place != "" }

// sameOutcome compares what two answers name. known is false where neither
// names anything that the other names too.
func sameOutcome(a, b *answer) (same, known bool) {
	if a.kind == alreadyDone || b.kind == alreadyDone {
		return true, true
	}
	if a.id != "" && b.id != "" {
		return a.id == b.id, true
	}
	if a.place != "" && b.place != "" {
		return a.place == b.place, true
	}
	return true, false
}

// read fills in what the answer means.
func (r *runner) read(a *answer) {
	a.kind = classify(r.o.Profile, a)
	a.throttled = r.limited(a)
	a.replayed = matchesAny(r.o.Profile.Replay, a)
	if a.kind == done {
		a.rawID, _ = lookupText(a.body, r.o.IDPointer)
		if l := r.learnt; l.ids || !l.done {
			a.id = a.rawID
		}
		if l := r.learnt; l.places || !l.done {
			a.place = a.header.Get("Location")
		}
	}
}

// classify reads an answer by the profile's matchers, then by its status. What
// is commonly used for "still being worked on" counts as that in every profile,
// so that the suite waits; a case says whether the profile declares it.
func classify(p *profile.Profile, a *answer) kind {
	for _, m := range []struct {
		list []profile.Matcher
		kind kind
	}{
		{p.AlreadyDone, alreadyDone}, {p.Mismatch, mismatch}, {p.Poisoned, poisoned},
		{p.BusinessConflict, business}, {p.InProgress, busy},
	} {
		if a.status != 0 && matchesAny(m.list, a) {
			return m.kind
		}
	}
	switch {
	case a.status == 0:
		return noAnswer
	case slices.Contains([]int{http.StatusConflict, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests}, a.status):
		return busy
	case a.status >= 500:
		return broken
	case a.status >= 400:
		return refused
	case a.status >= 300 && a.status != http.StatusSeeOther:
		return redirected
	}
	return done
}

func matchesAny(list []profile.Matcher, a *answer) bool {
	return slices.ContainsFunc(list, func(m profile.Matcher) bool { return matches(&m, a) })
}

// matches holds one matcher against an answer.
func matches(m *profile.Matcher, a *answer) bool {
	if len(m.Status) > 0 && !slices.Contains(m.Status, a.status) {
		return false
	}
	if m.Header != "" && !hasWord(a.header.Values(m.Header), m.Has) {
		return false
	}
	if m.Pointer == "" {
		return true
	}
	if len(m.Equals) == 0 {
		_, found := lookup(a.body, m.Pointer)
		return found
	}
	text, found := lookupText(a.body, m.Pointer)
	return found && slices.Contains(m.Equals, text)
}

// hasWord looks for one of the words in one of the values; no words: for a value.
func hasWord(values, words []string) bool {
	if len(words) == 0 {
		return len(values) > 0
	}
	for _, value := range values {
		for _, found := range strings.FieldsFunc(value, func(r rune) bool { return !inWord(r) }) {
			for _, word := range words {
				if strings.EqualFold(word, found) {
					return true
				}
			}
		}
	}
	return false
}

func inWord(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune("-_./+", r)
}
