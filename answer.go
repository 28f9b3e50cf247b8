package oncehttp

import (
	"net/http"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// answer is what one attempt was answered, read as far as it is kept.
type answer struct {
	status int
	header http.Header
	body   []byte
	whole  bool // body is all there is
	// sameOrigin: no Location leads away from the origin that was asked.
	sameOrigin bool

	kept persist.Answer // as it is recorded and reported
}

// reading is a verdict in the words of this package.
type reading struct {
	outcome  Outcome
	again    bool               // another attempt with the same key may help
	hold     persist.HoldReason // nothing may be sent until somebody settles it
	replayed bool
	done     bool  // already done
	stored   bool  // the server gives this final answer again for the same key
	why      error // the sentinel that names the trouble, if any
}

// readingOf gives a verdict its outcome, the reason for which it is held, and the sentinel that names the trouble.
func readingOf(v classify.Verdict) reading {
	r := reading{again: v.Again, replayed: v.Replayed, done: v.AlreadyDone, stored: v.Stored}
	switch v.Kind {
	case classify.KindNotSent:
		r.outcome = OutcomeNotSent
	case classify.KindRefused:
		r.outcome = OutcomeRefused
	case classify.KindInFlight:
		r.outcome, r.why = OutcomeInFlight, ErrInFlight
	case classify.KindFinal:
		r.outcome = OutcomeConfirmed
	case classify.KindMismatch:
		r.outcome, r.why = OutcomeMismatch, ErrKeyReused
		if v.Hold {
			r.hold = persist.HoldMismatch
		}
	}
	switch v.Reason {
	case classify.ReasonStoredError:
		r.hold, r.why = persist.HoldStoredError, ErrStoredError
	case classify.ReasonRedirected:
		r.hold, r.why = persist.HoldRedirected, ErrRedirected
	}
	return r
}

// judge turns what an attempt learned into what is known of the operation. An answer counts whatever has become
// of the context meanwhile.
func (d *drive) judge(h heard) {
	v := classify.Verdict{Again: !h.fatal}
	d.hint = 0
	switch {
	case h.answer != nil:
		a := classify.Answer{
			Status: h.answer.status, Header: h.answer.header, Body: h.answer.body,
			Whole: h.answer.whole, SameOrigin: h.answer.sameOrigin,
		}
		v = classify.Classify(d.prof, a, d.history.InDoubt())
		d.hint = classify.Wait(d.prof.RetryAfter, a.Header, d.c.now())
	case h.unsent:
		v.Kind = classify.KindNotSent
	}
	known, kept := d.history.Add(v)
	d.reading = readingOf(known)
	defer d.seeOrigin(h)
	if kept { // the earlier answer stands
		drain(h.rest)
		d.last.err = h.err
		return
	}
	if d.reading.done {
		h = d.lookup(h)
	}
	if d.reading.outcome == OutcomeInFlight {
		d.inFlight++
	}
	drain(d.last.rest)
	d.last = h
}

// notMade says that the next attempt was not made, and what that means. A final answer to an earlier attempt stands.
func (d *drive) notMade(otherwise reading) {
	known, kept := d.history.Add(classify.Verdict{Kind: classify.KindNotSent})
	if kept && known.Kind == classify.KindFinal {
		d.reading = readingOf(known)
		return
	}
	drain(d.last.rest)
	d.last, d.reading = heard{}, otherwise
}

// stands reports whether the last answer may be what the caller gets although another attempt follows.
func (d *drive) stands() bool {
	return d.reading.outcome == OutcomeConfirmed || d.reading.outcome == OutcomeRefused
}
