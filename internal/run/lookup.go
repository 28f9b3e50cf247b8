package run

import (
	"context"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// lookUp does the step LookUp: it asks for the resource named by an already-done answer.
func (r *run) lookUp() {
	found := r.own
	get, target := request.Lookup(&r.rec, r.prof, r.own.Answer.Text, r.own.Answer.TextWhole)
	if target != nil {
		found = r.lookUpAt(get, target)
	}
	if found.id == r.own.id {
		r.drive.LookedUp(r.alreadyDone(classify.Answer{}), operation.Sent{})
	} else {
		r.drive.LookedUp(r.alreadyDone(seen(found.Answer)), r.sent(found))
	}
	r.judged(found)
}

// alreadyDone returns the verdict on an already-done answer by the resource that it names; a zero one was not found.
func (r *run) alreadyDone(found classify.Answer) classify.Verdict {
	return classify.AlreadyDone(r.cfg.reader.Reading(r.prof, &r.rec), r.drive.Done(), r.rec.Body, found, r.drive.InDoubt())
}

// lookUpAt asks for the resource at target, lookupTries times at most. It returns the resource's whole 2xx answer;
// if there is none, the operation's own answer. get is the record of the lookup's request.
func (r *run) lookUpAt(get persist.Record, target *url.URL) heard {
	sender := newSender(r.cfg, &lookups{r, get})
	for range lookupTries {
		sent := r.askBy(&sender, target)
		if a := sent.Answer; a != nil && a.Whole && r.success(a) {
			return r.hear(sent)
		}
		sent.Drain()
	}
	return r.own
}

// askDuplicate does the step AskDuplicate: the server says the business reference was used before, and askDuplicate finds out by whom. If
// the API finds exactly one resource, the one asked for by this request, its answer is the operation's.
func (r *run) askDuplicate() {
	finding, found, asked := r.askReference()
	r.drive.Asked(finding, r.sent(found), asked)
	r.judged(found)
}

// askFirst does the step AskFirst: before a send it asks for a resource of an earlier send. If the drive goes on
// to send, the answer is drained; else the drive has chosen the answer, or none.
func (r *run) askFirst() {
	finding, found, asked := r.askReference()
	r.drive.Asked(finding, r.sent(found), asked)
	r.own = heard{Result: wire.Result{Err: found.Err}}
	switch r.drive.Step() {
	case operation.Check, operation.CheckToken:
		found.Drain()
	default:
		if r.drive.Answer().ID != found.id { // another lookup's answer is not the operation's
			found.Drain()
			found = heard{Result: wire.Result{Err: found.Err}}
		}
		r.settle(found)
	}
}

// askReference asks for the resources made under the request's business reference. asked is false if the request has none.
func (r *run) askReference() (finding classify.Finding, found heard, asked bool) {
	get, target := request.ByReference(&r.rec, r.prof)
	if target == nil {
		return classify.FindingUnclear, heard{Result: wire.Result{Unsent: true, Fatal: true}}, false
	}
	finding, sent := askByReference(r, get, target)
	return finding, r.hear(sent), true
}

// askByReference asks for the resources made under the request's business reference. sent holds the answer, or the error, of the last try.
// A second try follows only if the first was sent and got no answer.
func askByReference(r *run, get persist.Record, target *url.URL) (finding classify.Finding, sent wire.Result) {
	sender := newSender(r.cfg, &lookups{r, get})
	for range lookupTries {
		sent.Drain()
		sent = r.askBy(&sender, target)
		switch {
		case sent.Answer != nil:
			return classify.ByReference(r.cfg.reader.Reading(r.prof, &r.rec), request.FieldsOf(r.rec.Header, r.rec.Body).Value, seen(sent.Answer)), sent
		case sent.Unsent:
			return classify.FindingUnclear, sent
		}
	}
	return classify.FindingUnclear, sent
}

// lookupTries is the number of tries of a lookup.
const lookupTries = 2

// lookups makes the requests of a lookup. It follows no redirect.
type lookups struct {
	*run
	get persist.Record
}

// Prepare makes the request of the lookup anew.
func (l *lookups) Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	req, err := l.requestFor(ctx, &attemptContext{Context: send}, &l.get, target)
	if err == nil {
		l.took.enter(&l.took.spent.Wire)
	}
	return req, err
}

// Follow allows no redirect.
func (l *lookups) Follow(*url.URL, string) *url.URL { return nil }
