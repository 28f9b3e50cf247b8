package oncehttp

import (
	"context"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/classify"
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
	get, target := request.Lookup(&r.rec, r.prof, done.Answer.Body, done.Answer.Whole)
	if target == nil {
		return done
	}
	sender := newSender(r.cfg, &lookups{r, get})
	for range lookupTries {
		sent := r.sendBy(&sender, target)
		if a := sent.Answer; a != nil && a.Whole && a.Head.StatusCode >= 200 && a.Head.StatusCode < 300 {
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
	sender := newSender(r.cfg, &lookups{r, get})
	finding := classify.FindingUnclear
	for range lookupTries {
		sent := r.sendBy(&sender, target)
		if sent.Answer != nil {
			finding = classify.ByReference(r.prof.Reference, r.rec.Body, seen(sent.Answer))
		}
		if finding == classify.FindingSame {
			duplicate.Drain()
			return classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true, Stored: true}, sent
		}
		sent.Drain()
		if finding != classify.FindingUnclear {
			break
		}
	}
	if finding == classify.FindingOther {
		return classify.Verdict{Kind: classify.KindMismatch, Hold: true}, duplicate
	}
	return classify.Verdict{Kind: classify.KindUnknown, Again: true}, duplicate
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
