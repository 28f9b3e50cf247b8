package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file turns an answer into the verdict on its operation. Package classify decides. This file gathers the
// facts necessary beside the answer.

// classify returns the verdict on one attempt: on its answer by the profile, or on a send without an answer. If the status of the answer
// alone proves nothing, sent gets an error with the reason. inDoubt: an earlier attempt may have had an effect.
func (r *replies) classify(sent *wire.Result, inDoubt bool) classify.Verdict {
	t := r.task
	a := sent.Answer
	if a == nil {
		return operation.Unanswered(sent.Unsent, sent.Fatal)
	}
	// The request is looked at for GraphQL only if the answer may be one of it.
	errors := bytes.Contains(a.Text, []byte(`"errors"`))
	// Reading: the profile, with the verdicts for this endpoint alone.
	v := classify.Classify(t.cfg.reader.Endpoints.Reading(t.prof, &t.rec), seen(a), classify.Facts{
		GraphQL: errors && request.IsGraphQL(&t.rec), MayBeGraphQL: errors && request.MayBeGraphQL(&t.rec),
		InDoubt: inDoubt, Protected: t.rec.Protected, TakesHTML: classify.AcceptsHTML(t.rec.Header), Repeated: r.repeats(a), PlainHTTP: t.rec.PlainHTTP,
	})
	// The status says success or refusal: without an error nobody would know why it does not count.
	if v.Flaw != classify.FlawNone {
		sent.Err = flawError(a, v.Flaw)
	}
	if v.Hold && v.Reason == classify.ReasonRedirected {
		sent.Err = redirectError(a)
	}
	if operation.IsFlawedSuccess(v.Flaw, a.Head.StatusCode) {
		r.flawed = &persist.Answer{Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Body, BodyDropped: !a.Whole, At: t.engine.now().Round(0)}
	}
	return v
}

// otherFactsError returns the reason why an answer of this status settles nothing for this client: the operation was begun under other
// facts of the profile than the client has, and might read the answer otherwise.
func otherFactsError(rec *persist.Record, status int) error {
	return fmt.Errorf("answered %d, which this client cannot read for certain: its profile %q, version %q, states other facts than the one "+
		"under which the operation was begun; let a client of the same facts look, or settle it", status, rec.Profile, rec.ProfileVersion)
}

// flawedSuccess returns the latest 2xx that may not be the API's own (its body is cut, or a proxy's page, for example), of this run of the
// operation or, from its record, of an earlier one; nil if there was none.
func (r *replies) flawedSuccess() *persist.Answer {
	return cmp.Or(r.flawed, operation.FlawedOf(&r.task.rec))
}

// flawedForRecord returns the latest 2xx that may not be the API's own, in the form for the record: without credentials. A later run of the
// operation compares its own with it (repeats). nil if there was none.
func (r *replies) flawedForRecord() *persist.Answer {
	a := r.flawedSuccess()
	if a == nil {
		return nil
	}
	recorded := *a
	r.task.keepAnswer(&recorded)
	return &recorded
}

// repeats reports whether a is the same as the latest success that may not be the API's own, the second of its kind: operation.FlawedAgain decides. An earlier
// run may have recorded that one without its body (it was too large, or no JSON beside DropAnswer); then (before is not r.flawed, of this run) a is compared in
// that form.
func (r *replies) repeats(a *wire.Answer) bool {
	before := r.flawedSuccess()
	now := persist.Answer{Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Body, BodyDropped: !a.Whole}
	recorded := before != nil && before != r.flawed && before.BodyDropped
	if recorded {
		r.task.keepAnswer(&now)
	}
	return operation.FlawedAgain(before, &now, recorded)
}

// flawError returns an error that says why this answer proves nothing, although its status is that of a success or a refusal: flaw is the
// reason.
func flawError(a *wire.Answer, flaw classify.Flaw) error {
	status := a.Head.StatusCode
	switch flaw {
	case classify.FlawCut:
		return fmt.Errorf("answered %d with %v", status, flaw)
	case classify.FlawKey:
		return fmt.Errorf("answered %d with %v: the key may have been used before, with an effect", status, flaw)
	case classify.FlawErrors:
		return fmt.Errorf("answered %d with %v, as a GraphQL API says that it failed", status, flaw)
	}
	return fmt.Errorf("answered %d with %v, as something in front of the API may", status, flaw)
}

// redirectError returns the error of an answer that is a redirect, and is not followed. It names the origin of
// its Location alone: paths and queries may have secrets in them, such as a token for a login. It returns nil
// without a Location.
func redirectError(a *wire.Answer) error {
	to, err := a.Head.Location()
	if err != nil {
		return nil
	}
	where := "another place of the same origin"
	// Of the same origin the place is not named: its path may hold a secret.
	if request.SameOrigin(a.From, to.String()) == nil {
		where = request.Origin(to)
	}
	if a.Hopped {
		where += ", after redirects that were followed"
	}
	return fmt.Errorf("answered %d, which leads to %s", a.Head.StatusCode, where)
}

// seen returns an answer in the form for package classify. An answer without a Location counts as of the same origin. Unread: its body could not be decoded.
func seen(a *wire.Answer) classify.Answer {
	location := a.Head.Header.Get("Location")
	return classify.Answer{
		Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Text, Whole: a.TextWhole, Framed: a.Framed,
		CodingCut:  a.TextCut,
		Unread:     a.Text == nil && len(a.Body) > 0,
		SameOrigin: request.SameOrigin(a.From, location) != nil,
	}
}

// isSuccess reports whether an answer to a question beside the operation of rec, such as a lookup, is a 2xx of
// the API's own, by the profile.
func isSuccess(rec *persist.Record, prof *profile.Profile, a *wire.Answer) bool {
	status := a.Head.StatusCode
	facts := classify.Facts{TakesHTML: classify.AcceptsHTML(rec.Header)}
	return status >= 200 && status < 300 && classify.SuccessFlaw(prof, seen(a), facts) == classify.FlawNone
}

var errNoTarget = errors.New("its recorded target is no URL")
