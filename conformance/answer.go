package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// answer is the result of one request: the whole answer, a part of it, or an error. The link
// fills it, read adds the meaning; nothing changes it afterwards.
type answer struct {
	status int         // 0: no answer
	header http.Header // nil: no answer
	body   []byte      // answerBytesMax at most
	err    error       // why the answer is missing or not whole; nil: it is whole

	// Moments: before the first byte of the request, after its last byte (zero: the writing did
	// not get there), and at the end of the answer or the error.
	started, written, ended time.Time

	kind      kind
	replayed  bool   // it carries the profile's mark of a replay
	id, place string // the id and Location of a success; "" where they do not tell effects apart
	throttled bool   // it comes, or may come, from a limit on the rate of requests
	rawID     string // the text at Options.IDPointer of a success, in any case
}

// kind is the meaning of an answer under the profile.
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

// outcome reports whether the answer says that the work is done: by this request (done), or by an earlier one with the same key (alreadyDone).
func (a *answer) outcome() bool { return a.kind == done || a.kind == alreadyDone }

// String returns the answer in a few words, for the report.
func (a *answer) String() string {
	if a.status == 0 {
		return "no answer (" + errorText(a.err) + ")"
	}
	text := fmt.Sprint(a.status)
	switch a.kind {
	// the status alone says these
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

// names reports whether the answer has an id or a Location that tells effects apart.
func (a *answer) names() bool { return a.id != "" || a.place != "" }

// sameOutcome reports whether two answers are about the same effect. It compares their ids, or else their Locations; "already done" names nothing of
// its own and agrees with any other. known is false if they have no name in common: same is then true, so that a difference is only reported with
// proof.
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

// read judges the answer a by its status, header and body, and fills in its kind (its meaning), throttled (a rate limit may have refused it),
// replayed (it has the mark of a repeat), and, of a success, the names of its effect: id and Location. Until the probe, the first few plain
// operations, has ended (r.learnt.done), both names are taken; afterwards only those that the probe has seen to differ between effects.
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

// classify returns the meaning of an answer: by the profile's matchers, of which the first list that fits counts, else by its status, where 303 is a
// success like 2xx. 409, 423, 425 and 429 count as "in progress" under every profile, so that the suite waits and asks again; a case of its own
// checks whether the profile declares that status.
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

// matchesAny reports whether an answer meets one of the profile's matchers in a list.
func matchesAny(list []profile.Matcher, a *answer) bool {
	return slices.ContainsFunc(list, func(m profile.Matcher) bool { return matches(&m, a) })
}

// matches reports whether an answer meets every condition that a matcher of the profile states.
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

// hasWord reports whether one of the values has one of the words as a whole word, without regard to case. Without words it reports whether there is a
// value.
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

// inWord reports whether a character can be a part of a word in a header value.
func inWord(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune("-_./+", r)
}
