package keylayer

import (
	"net/http"
	"strings"
	"time"
)

// The server side of OASIS Repeatable Requests 1.0: each key comes with the time of its first send, and each answer
// carries a mark, accepted or rejected.

const (
	oasisFirstSent = "Repeatability-First-Sent"
	oasisResult    = "Repeatability-Result"
	accepted       = "accepted"
	rejected       = "rejected"
)

// refuseFirstSent returns the refusal of a request with a bad time of the first send: missing, no IMF-fixdate, or Layer.Window or more from now. nil:
// it is good, or the profile has no such header. rejected is the word for the header that says so (marked).
func (l *Layer) refuseFirstSent(r *http.Request) *Answer {
	name := l.Profile.FirstSent
	if name == "" {
		return nil
	}
	at, err := FirstSent(r.Header, name)
	age := time.Since(at)
	switch {
	case err != nil:
		return l.marked(Problem(l.Profile, http.StatusBadRequest, name+" is invalid", err.Error()), rejected)
	case age >= l.Window || age <= -l.Window:
		return l.marked(Problem(l.Profile, http.StatusPreconditionFailed, name+" is outside the tracked window", ""), rejected)
	}
	return nil
}

// FirstSent parses the header of this name, an IMF-fixdate. Two lines, and none, are errors.
func FirstSent(h http.Header, name string) (time.Time, error) {
	return time.Parse(http.TimeFormat, strings.Join(h.Values(name), ", "))
}

// marked returns a copy of an answer with the header of OASIS Repeatable Requests that says whether the request was accepted or rejected (result);
// for any other API, a itself.
func (l *Layer) marked(a *Answer, result string) *Answer {
	if !strings.EqualFold(l.Profile.FirstSent, oasisFirstSent) {
		return a
	}
	a = a.Clone()
	a.Header.Set(oasisResult, result)
	return a
}
