package oncehttp

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

// followUp asks the API more where an answer says that the operation, or its business reference, was seen before. It
// returns the verdict and the answer that count.
func followUp(r *run, v classify.Verdict, sent wire.Result) (classify.Verdict, wire.Result) {
	switch {
	case v.AlreadyDone:
		return v, lookup(r, sent)
	case v.Reason == classify.ReasonDuplicate && r.history.InDoubt():
		return resolveDuplicate(r, v, sent)
	}
	return v, sent
}

// lookup asks for the resource that done, an already-done answer, names. It returns the resource's answer, or, if that
// cannot be had, done itself. The operation is confirmed either way.
func lookup(r *run, done wire.Result) wire.Result {
	get, target := request.Lookup(&r.rec, r.prof, done.Answer.Text, done.Answer.TextWhole)
	if target == nil {
		return done
	}
	sender := newSender(r.cfg, &lookups{r, get})
	for range lookupTries {
		sent := r.sendBy(&sender, target)
		if a := sent.Answer; a != nil && a.Whole && r.success(a) {
			return sent
		}
		sent.Drain()
	}
	return done
}

// resolveDuplicate finds out whose the business reference is that the server, in the answer duplicate, says was used
// before. It is called for an operation in doubt: an earlier attempt may have used it. If the API finds exactly one
// resource and that is what this request asked for, the operation is confirmed with the resource's answer. If it finds
// another, or several, the operation is held as a mismatch. If it finds none or does not tell, the outcome stays unknown.
func resolveDuplicate(r *run, v classify.Verdict, duplicate wire.Result) (classify.Verdict, wire.Result) {
	get, target := request.ByReference(&r.rec, r.prof)
	if target == nil {
		return v, duplicate
	}
	hint := r.hint
	finding, found := askByReference(r, get, target)
	if finding == classify.FindingSame {
		duplicate.Drain()
		return foundSame(), found
	}
	found.Drain()
	r.hint = max(hint, r.hint)
	if finding == classify.FindingOther {
		return classify.Verdict{Kind: classify.KindMismatch, Hold: true}, duplicate
	}
	return classify.Verdict{Kind: classify.KindUnknown, Again: true}, duplicate
}

// foundSame is the verdict on an operation whose very own resource was found.
func foundSame() classify.Verdict {
	return classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true, Stored: true}
}

// askByReference asks what was made under the request's business reference. sent holds the answer, or the error, of the
// last try. A second try follows only where the first was sent and got no answer.
func askByReference(r *run, get persist.Record, target *url.URL) (finding classify.Finding, sent wire.Result) {
	sender := newSender(r.cfg, &lookups{r, get})
	for range lookupTries {
		sent.Drain()
		sent = r.sendBy(&sender, target)
		r.noteOrigin(sent)
		switch {
		case sent.Answer != nil:
			r.hint = classify.Wait(r.prof.RetryAfter, seen(sent.Answer), r.now())
			return classify.ByReference(r.prof, request.FieldsOf(r.rec.Header, r.rec.Body).Value, seen(sent.Answer)), sent
		case sent.Unsent:
			return classify.FindingUnclear, sent
		}
	}
	return classify.FindingUnclear, sent
}

// askFirst is Policy.AskFirst, of this client or the one that began the operation: it asks for an operation in doubt before that is sent again. It reports whether the
// operation may be sent now: nothing was found, or nothing had to be asked, or the API has no such lookup or does not
// promise that the reference is unique. If not, it has set the verdict, and the lookup counts as an attempt.
func askFirst(r *run) (send bool) {
	if !r.cfg.Retry.AskFirst && !r.rec.AskFirst || len(r.prof.Duplicate) == 0 || !r.history.InDoubt() || r.askedAgain {
		return true
	}
	get, target := request.ByReference(&r.rec, r.prof)
	if target == nil {
		return true
	}
	v := classify.Verdict{Kind: classify.KindUnknown, Again: true}
	finding, sent := askByReference(r, get, target)
	switch finding {
	case classify.FindingNone:
		sent.Drain()
		return true
	case classify.FindingSame:
		v = foundSame()
	case classify.FindingOther:
		v = classify.Verdict{Kind: classify.KindMismatch, Hold: true}
	case classify.FindingUnclear:
		if !r.mayAttempt() { // past the window the operation is held
			sent.Drain()
			return false
		}
	}
	if r.otherFacts && v.Kind != classify.KindUnknown {
		v, _ = operation.UnderOtherFacts(v, 0)
		finding = classify.FindingUnclear
	}
	r.attempts++
	stop := !r.verdict.again && r.stop != nil // set by noteOrigin
	known, _ := r.history.Add(v)
	r.last.Drain()
	r.last, r.verdict = sent, verdictOf(known)
	r.verdict.again = r.verdict.again && !stop
	if finding != classify.FindingSame { // a lookup's answer is not the operation's
		r.last.Drain()
		r.last = wire.Result{Err: sent.Err}
	}
	return false
}

// lookupTries is how many times a lookup is tried.
const lookupTries = 2

// lookups makes the requests of a lookup. It follows no redirect.
type lookups struct {
	*run
	get persist.Record
}

// Prepare makes the request of the lookup anew.
func (l *lookups) Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	return l.requestFor(ctx, send, &l.get, target)
}

// Follow allows no redirect.
func (l *lookups) Follow(*url.URL, string) *url.URL { return nil }
