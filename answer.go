package oncehttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// answer is what one attempt was answered, read as far as it is kept.
type answer struct {
	status int
	header http.Header
	body   []byte
	whole  bool // body is all there is

	parsed bool
	json   any
	kept   persist.Answer // as it is recorded and reported
}

// reading is what an answer, or the lack of one, says of the operation.
type reading struct {
	outcome  Outcome
	again    bool               // another attempt with the same key may help
	hold     persist.HoldReason // nothing may be sent until somebody settles it
	replayed bool
	done     bool  // already done
	why      error // the sentinel that names the trouble, if any
}

// read classifies an answer. unknown says that an earlier attempt's outcome is
// unknown, in which case only proof settles the matter. Pure.
func read(p *profile.Profile, a *answer, unknown bool) reading {
	r := readMatched(p, a, unknown)
	r.replayed = a.matchAny(p.Replay) == hit
	if r.outcome == OutcomeUnknown && r.again && a.status >= 500 && r.replayed {
		r.again, r.hold, r.why = false, persist.HoldStoredError, ErrStoredError
	}
	stop := advise(p, a, &r)
	if unknown && !settles(p, a, &r) {
		r = sticky(a, r)
		r.again = r.again && !stop
	}
	return r
}

// readMatched goes by the profile's matchers, then by the status.
func readMatched(p *profile.Profile, a *answer, unknown bool) reading {
	conflict := reading{outcome: OutcomeMismatch, why: ErrKeyReused}
	if unknown {
		conflict.hold = persist.HoldMismatch
	}
	for _, m := range []struct {
		list []profile.Matcher
		says reading
	}{
		{p.AlreadyDone, reading{outcome: OutcomeConfirmed, done: true}},
		{p.Mismatch, conflict},
		{p.Poisoned, reading{outcome: OutcomeUnknown, hold: persist.HoldStoredError, why: ErrStoredError}},
		{p.BusinessConflict, reading{outcome: OutcomeConfirmed}},
		{p.InProgress, reading{outcome: OutcomeInFlight, again: true, why: ErrInFlight}},
	} {
		switch a.matchAny(m.list) {
		case hit:
			return m.says
		case unreadable:
			return reading{outcome: OutcomeUnknown, again: true}
		}
	}
	return readStatus(p, a.status)
}

// readStatus is what a status means where the profile has no more to say.
func readStatus(p *profile.Profile, status int) reading {
	switch {
	case status >= 200 && status < 300, status == http.StatusSeeOther:
		return reading{outcome: OutcomeConfirmed}
	case status >= 300 && status < 400:
		return reading{outcome: OutcomeUnknown, hold: persist.HoldRedirected, why: ErrRedirected}
	case slices.Contains(p.NotActed.Again, status):
		return reading{outcome: OutcomeRefused, again: true}
	case slices.Contains(p.NotActed.Stop, status):
		return reading{outcome: OutcomeRefused}
	case status == http.StatusConflict:
		return reading{outcome: OutcomeInFlight, again: true, why: ErrInFlight}
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		return reading{outcome: OutcomeConfirmed}
	}
	return reading{outcome: OutcomeUnknown, again: true}
}

// advise obeys the profile's should-retry header. It may stop or allow another
// attempt; it never makes an unknown outcome known. stop: the server said no.
func advise(p *profile.Profile, a *answer, r *reading) (stop bool) {
	if p.ShouldRetry.Header == "" || a.status < 400 || r.done || r.outcome == OutcomeMismatch || r.hold != "" {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(a.header.Get(p.ShouldRetry.Header))) {
	case "":
	case p.ShouldRetry.No:
		if r.outcome == OutcomeUnknown && a.status >= 500 {
			r.hold, r.why = persist.HoldStoredError, ErrStoredError
		}
		r.again = false
		return true
	case p.ShouldRetry.Yes:
		r.again = true
	}
	return false
}

// settles reports whether this answer proves what became of the operation even
// though an earlier attempt's outcome is unknown.
func settles(p *profile.Profile, a *answer, r *reading) bool {
	switch {
	case r.outcome == OutcomeUnknown, r.outcome == OutcomeInFlight:
		return true // nothing to doubt: they claim nothing
	case r.outcome == OutcomeMismatch, r.done:
		return true // said of the key itself; Conflict is held
	case a.status < 400:
		return true
	case r.outcome == OutcomeRefused, alwaysSticky(a.status):
		return false
	}
	return r.replayed || a.matchAny(p.Stored.Client) == hit
}

// alwaysSticky lists the statuses that something before the API may give, so
// that they say nothing of an earlier attempt, replay mark or not.
func alwaysSticky(status int) bool {
	switch status {
	case 401, 403, 405, 407, 413, 414, 415, 421, 426, 431, 451:
		return true
	}
	return false
}

// sticky keeps an operation Unknown that was Unknown. Where the answer came from
// a door that is shut, knocking again does not help now; otherwise it may.
func sticky(a *answer, r reading) reading {
	shut := a.status == 401 || a.status == 403 || a.status == 407
	return reading{outcome: OutcomeUnknown, again: !shut, replayed: r.replayed}
}

// match is the three-valued result of a matcher.
type match uint8

const (
	miss match = iota
	hit
	unreadable // the body that would decide was cut or is too large
)

func (a *answer) matchAny(list []profile.Matcher) match {
	result := miss
	for i := range list {
		switch a.match(&list[i]) {
		case hit:
			return hit
		case unreadable:
			result = unreadable
		}
	}
	return result
}

func (a *answer) match(m *profile.Matcher) match {
	switch {
	case len(m.Status) > 0 && !slices.Contains(m.Status, a.status):
		return miss
	case m.Header != "" && !hasWord(a.header.Values(m.Header), m.Has):
		return miss
	case m.Pointer == "":
		return hit
	case !a.whole:
		return unreadable
	}
	text, found := textAt(a.document(), m.Pointer)
	if !found || (len(m.Equals) > 0 && !slices.Contains(m.Equals, text)) {
		return miss
	}
	return hit
}

// document is the body as JSON, nil if it is none. Numbers keep their spelling.
func (a *answer) document() any {
	if !a.parsed {
		a.parsed = true
		dec := json.NewDecoder(bytes.NewReader(a.body))
		dec.UseNumber()
		if dec.Decode(&a.json) != nil {
			a.json = nil
		}
	}
	return a.json
}

// hasWord reports whether one of the words stands whole in a value. No words:
// whether there is a value at all.
func hasWord(values, words []string) bool {
	if len(words) == 0 {
		return len(values) > 0
	}
	notWord := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./+", r))
	}
	for _, v := range values {
		for _, field := range strings.FieldsFunc(v, notWord) {
			for _, w := range words {
				if strings.EqualFold(field, w) {
					return true
				}
			}
		}
	}
	return false
}

// textAt follows a JSON pointer (RFC 6901). text is that of a string, number or
// boolean; of anything else it is empty.
func textAt(doc any, pointer string) (text string, found bool) {
	if doc == nil || !strings.HasPrefix(pointer, "/") {
		return "", false
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, token := range strings.Split(pointer[1:], "/") {
		switch node := doc.(type) {
		case map[string]any:
			doc, found = node[unescape.Replace(token)]
			if !found {
				return "", false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(node) || strconv.Itoa(i) != token || i < 0 {
				return "", false
			}
			doc = node[i]
		default:
			return "", false
		}
	}
	switch v := doc.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", true
}
