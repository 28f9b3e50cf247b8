package keylayer

import (
	"net/http"
	"strings"
	"time"
)

// What OASIS Repeatable Requests 1.0 asks of a server: with each key comes the time of its first send, and each answer
// says whether the request was taken under its key.

const (
	oasisFirstSent = "Repeatability-First-Sent"
	oasisResult    = "Repeatability-Result"
	accepted       = "accepted"
	rejected       = "rejected"
)

// refuseFirstSent is the refusal of a request whose time of the first send is missing, is no IMF-fixdate, or lies outside
// the window in which keys are known; nil: it is good, or the API wants none.
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

// FirstSent reads the one line of the header of this name, an IMF-fixdate.
func FirstSent(h http.Header, name string) (time.Time, error) {
	return time.Parse(http.TimeFormat, strings.Join(h.Values(name), ", "))
}

// marked is the answer with the mark of OASIS, if the API is one of them.
func (l *Layer) marked(a *Answer, result string) *Answer {
	if !strings.EqualFold(l.Profile.FirstSent, oasisFirstSent) {
		return a
	}
	a = a.Clone()
	a.Header.Set(oasisResult, result)
	return a
}
