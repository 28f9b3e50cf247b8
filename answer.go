package oncehttp

import (
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

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
func (d *drive) judge(r wire.Result) {
	v := classify.Verdict{Again: !r.Fatal}
	d.hint = 0
	switch {
	case r.Answer != nil:
		v = classify.Classify(d.prof, seen(r.Answer), d.history.InDoubt())
		d.hint = classify.Wait(d.prof.RetryAfter, r.Answer.Head.Header, d.c.now())
	case r.Unsent:
		v.Kind = classify.KindNotSent
	}
	known, kept := d.history.Add(v)
	d.reading = readingOf(known)
	if kept { // the earlier answer stands
		r.Drain()
		d.last.Err = r.Err
		d.seeOrigin(r)
		return
	}
	if d.reading.done {
		r = d.lookup(r)
	}
	if d.reading.outcome == OutcomeInFlight {
		d.inFlight++
	}
	d.last.Drain()
	d.last = r
	d.seeOrigin(r)
}

// seen is an answer as it is classified. One without a Location leads nowhere else.
func seen(a *wire.Answer) classify.Answer {
	location := a.Head.Header.Get("Location")
	return classify.Answer{
		Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Body, Whole: a.Whole,
		SameOrigin: location == "" || sameOriginHop(a.From, location) != nil,
	}
}

// notMade says that the next attempt was not made, and what that means. A final answer to an earlier attempt stands.
func (d *drive) notMade(otherwise reading) {
	known, kept := d.history.Add(classify.Verdict{Kind: classify.KindNotSent})
	if kept && known.Kind == classify.KindFinal {
		d.reading = readingOf(known)
		return
	}
	d.last.Drain()
	d.last, d.reading = wire.Result{}, otherwise
}

// stands reports whether the last answer may be what the caller gets although another attempt follows.
func (d *drive) stands() bool {
	return d.reading.outcome == OutcomeConfirmed || d.reading.outcome == OutcomeRefused
}
