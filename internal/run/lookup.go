package run

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// inquiry asks the API about the operation, by requests that have no effect: for a resource that an answer
// names, or for those made under its business reference.
type inquiry struct {
	task     *task
	replies  *replies  // hear the resource
	requests *requests // send the lookup
}

// lookUp asks the API for the resource that an already-done answer names, as the step LookUp. If there is none to ask for, or none is found, the
// drive, which decides about the run, gets an empty answer. The drive may choose the answer found as the operation's.
func (i *inquiry) lookUp() {
	t := i.task
	found := i.replies.own
	get, target := request.Lookup(&t.rec, t.prof, i.replies.own.Answer.Text, i.replies.own.Answer.TextWhole)
	if target != nil {
		found = i.lookUpAt(get, target)
	}
	// Nothing was found, or asked for.
	if found.id == i.replies.own.id {
		t.drive.LookedUp(i.alreadyDone(classify.Answer{}), operation.Sent{})
	} else {
		t.drive.LookedUp(i.alreadyDone(seen(found.Answer)), i.replies.sent(found))
	}
	i.replies.judged(found)
}

// alreadyDone returns the verdict on an already-done answer by the resource that it names; a zero one was not found. Another request may have made the
// resource: then it counts only if it repeats the values of this one. Reading is the profile, with the verdicts for this endpoint alone.
func (i *inquiry) alreadyDone(found classify.Answer) classify.Verdict {
	t := i.task
	return classify.AlreadyDone(t.cfg.reader.Endpoints.Reading(t.prof, &t.rec), t.drive.Done(), t.rec.Body, found, t.drive.InDoubt())
}

// lookUpAt asks for the resource at target, lookupTries times at most. It returns the resource's whole 2xx
// answer; if there is none, the operation's own answer. get is the record of the lookup's request. Any other
// answer says nothing of the resource: a proxy may have given it.
func (i *inquiry) lookUpAt(get persist.Record, target *url.URL) heard {
	sender := i.requests.lookup(get)
	for range lookupTries {
		sent := i.requests.askBy(&sender, target)
		if a := sent.Answer; a != nil && a.Whole && isSuccess(&i.task.rec, i.task.prof, a) {
			return i.replies.hear(sent)
		}
		sent.Drain()
	}
	return i.replies.own
}

// askDuplicate asks the API, as the step AskDuplicate, which request used the business reference before: the server has answered that it was used. If
// the API finds exactly one resource, the one that this request asks for, its answer is the operation's.
func (i *inquiry) askDuplicate() {
	finding, found, asked := i.askReference()
	i.task.drive.Asked(finding, i.replies.sent(found), asked)
	i.replies.own.Err = cmp.Or(i.replies.own.Err, found.Err)
	i.replies.judged(found)
}

// askFirst asks for a resource of an earlier send before another send, as the step AskFirst. If the drive, which decides about the run, goes on to
// send, the answer is drained; else the drive has chosen the answer, or none.
func (i *inquiry) askFirst() {
	t := i.task
	finding, found, asked := i.askReference()
	t.drive.Asked(finding, i.replies.sent(found), asked)
	// There is no attempt yet: the lookup's error stands for it.
	i.replies.own = heard{Result: wire.Result{Err: found.Err}}
	switch t.drive.Step() {
	case operation.Check, operation.CheckToken:
		found.Drain()
	default:
		if t.drive.Answer().ID != found.id { // another lookup's answer is not the operation's
			found.Drain()
			found = heard{Result: wire.Result{Err: found.Err}}
		}
		i.replies.settle(found)
	}
}

// askReference asks for the resources made under the request's business reference, such as an order number. finding says what they prove, found is the lookup's
// answer or error. asked is false if the request has no reference; finding is unclear then, and nothing was sent.
func (i *inquiry) askReference() (finding classify.Finding, found heard, asked bool) {
	get, target := request.ByReference(&i.task.rec, i.task.prof)
	if target == nil {
		return classify.FindingUnclear, heard{Result: wire.Result{Unsent: true, Fatal: true}}, false
	}
	finding, sent := askByReference(i.requests, get, target)
	return finding, i.replies.hear(sent), true
}

// askByReference asks for the resources made under the request's business reference. sent holds the answer, or
// the error, of the last try; beside an answer that does not show the requested resource the error says why. A
// second try follows only if the first was sent and got no answer. Without one the finding is unclear: then
// nothing may be concluded from a resource that was not seen. It has no effect, so it counts as no send of the
// operation.
func askByReference(r *requests, get persist.Record, target *url.URL) (finding classify.Finding, sent wire.Result) {
	sender := r.lookup(get)
	for range lookupTries {
		sent.Drain()
		sent = r.askBy(&sender, target)
		switch {
		case sent.Answer != nil:
			// The profile, with the verdicts for this endpoint alone.
			reading, fields := r.task.cfg.reader.Endpoints.Reading(r.task.prof, &r.task.rec), request.FieldsOf(r.task.rec.Header, r.task.rec.Body)
			finding, why := classify.ByReference(reading, fields.Value, seen(sent.Answer))
			if why != "" {
				sent.Err = cmp.Or[error](sent.Err, lookupError(why))
			}
			return finding, sent
		case sent.Unsent:
			return classify.FindingUnclear, sent
		}
	}
	return classify.FindingUnclear, sent
}

// lookupError says in words why an answered lookup does not show the requested resource.
type lookupError string

// Error returns the text of the error.
func (e lookupError) Error() string { return string(e) }

// lookupTries is the number of tries of a lookup.
const lookupTries = 2

// lookups makes the requests of a lookup. It follows no redirect.
type lookups struct {
	*permit  // they are admitted like the operation's own requests
	requests *requests
	get      persist.Record // the GET, in the form of a record
}

// Prepare makes the request of a lookup (a GET beside the operation) anew for each try, with fresh credentials. Its context names no attempt: it sends no
// operation. From here on the time counts as that of the network.
func (l *lookups) Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	req, err := l.requests.requestFor(ctx, &attemptContext{Context: send}, &l.get, target)
	if err == nil {
		l.requests.task.took.enter(&l.requests.task.took.spent.Wire)
	}
	return req, err
}

// Follow allows no redirect of a lookup: an answer from another place proves nothing about the resource asked for.
func (l *lookups) Follow(*url.URL, string) *url.URL { return nil }
