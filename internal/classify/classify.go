// Package classify returns the verdict on an operation from an HTTP answer, or from the lack of one. Did the server act?
// May another attempt with the same key help, and when? It uses only the profile and its arguments: every function is
// pure, and the time is an argument.
package classify

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// Answer is the server's answer to one attempt.
type Answer struct {
	// Status is the answer's status code.
	Status int
	// Header is the answer's header. It is only read.
	Header http.Header
	// Body is the part of the body that was read, without its content coding. It is nil if unknown.
	Body []byte
	// Whole: Body is the whole body.
	Whole bool
	// Unread: there is a body, and its content coding could not be taken off.
	Unread bool
	// CodingCut: the content coding of the body ends early.
	CodingCut bool
	// Framed: a length or a framing marked the end of the body, and not the end of the connection alone.
	Framed bool
	// SameOrigin: the Location leads to the origin of the request. It matters for a 303 only: its Location may be a login
	// page somewhere else. Without a Location a 303 says nothing.
	SameOrigin bool
}

// Facts are the known facts of the operation beside the answer.
type Facts struct {
	// InDoubt: an earlier attempt may have had an effect, and no answer has settled it. Then a final answer counts only if it
	// also speaks of the earlier attempt.
	InDoubt bool
	// Protected: another send of the operation takes no effect a second time.
	Protected bool
	// TakesHTML: the request asks for HTML; see AcceptsHTML.
	TakesHTML bool
	// GraphQL: the request is a GraphQL operation. Errors may stand in a 200.
	GraphQL bool
	// MayBeGraphQL: the request has a trait of one. Only an answer in the form of GraphQL's is read so.
	MayBeGraphQL bool
	// Repeated: the latest answer before this one had the same status and the same body; where no body was recorded, the same Content-Type.
	Repeated bool
	// PlainHTTP: the operation was begun by a call of plain HTTP, which sees a 303 as its response.
	PlainHTTP bool
}

// Kind is the statement of a verdict about the operation. The zero value claims nothing.
type Kind uint8

// The kinds of verdict.
const (
	KindUnknown  Kind = iota // an effect is possible
	KindNotSent              // the attempt was not handed to the network
	KindRefused              // the server says that it did not act
	KindInFlight             // the server still works on an earlier attempt
	KindFinal                // the server's final answer
	KindMismatch             // the server says that the key belongs to another request
)

// String returns the kind in lower case; "unknown" for a value that is no kind.
func (k Kind) String() string {
	names := [...]string{"unknown", "not sent", "refused", "in flight", "final", "mismatch"}
	if int(k) >= len(names) {
		return names[KindUnknown]
	}
	return names[k]
}

// Reason is the reason for a hold of an unknown outcome, if it must be held.
type Reason uint8

// The reasons.
const (
	ReasonNone        Reason = iota
	ReasonStoredError        // the server keeps an error under the key and gives it again
	ReasonRedirected         // the answer is a redirect, and is not followed
	ReasonUnclear            // the meaning of the answer is not known well enough
	ReasonUnread             // the answer was read by facts other than those of the operation
	ReasonNoKey              // the API takes no key: another attempt may take effect twice
	ReasonDuplicate          // a business reference of the request was used before, by whom is not said
)

// Verdict is the conclusion from an attempt. The zero value is the cautious one: an effect is possible, and another
// attempt is not known to help.
type Verdict struct {
	// Kind is the answer's statement about the operation.
	Kind Kind
	// Reason names the trouble; zero if there is none.
	Reason Reason
	// Again: another attempt with the same key may help. Of a final answer: the server allows one, and the
	// answer counts if none follows.
	Again bool
	// Hold: nothing may be sent until somebody settles it.
	Hold bool
	// Replayed: the server marked the answer as its stored answer to an earlier request.
	Replayed bool
	// AlreadyDone: according to the server, the operation took effect before. The kind is KindFinal.
	AlreadyDone bool
	// Refused: by a verdict of the profile, the 2xx refuses the operation. The kind is KindFinal.
	Refused bool
	// Stored, of a final answer: the server gives the same answer again to a request with the same key. If Stored is
	// false, a caller may get another answer after losing this one.
	Stored bool
	// Flaw is the reason for doubt in the answer: it may not be the API's, or not the whole one. Then its status alone
	// proves nothing.
	Flaw Flaw
}

// Classify returns the verdict of an answer on its operation. p is the profile of the API, and f has the known facts of the operation. A 5xx that the server
// gives again as its stored answer is held: each further send would get it. stop: the profile's should-retry header forbids another attempt. While an earlier
// send is in doubt, the outcome stays unknown unless the answer settles that one as well.
func Classify(p *profile.Profile, a Answer, f Facts) Verdict {
	r := reader{answer: content{Answer: a}, facts: f}
	v := r.byMatchers(p)
	v.Replayed = r.answer.matchAny(p.Replay) == hit
	if v.Kind == KindUnknown && v.Again && a.Status >= 500 && v.Replayed {
		v.Again, v.Hold, v.Reason = false, true, ReasonStoredError
	}
	stop := r.obeyShouldRetry(p, &v)
	if f.InDoubt && !r.settles(p, &v) {
		v = stillUnknown(a.Status, v)
		v.Again = v.Again && !stop
	}
	v.Stored = r.stored(p, &v)
	return v
}

// byMatchers returns the verdict of the first of the profile's matchers met by the answer, else the verdict of its status. It is unknown if a matcher needs a body that
// was not read whole. Mismatch: the key belongs to another request; held for a person if an earlier send may have had an effect. Poisoned: the key can never succeed,
// and the outcome is not told. BusinessConflict: a final answer, in spite of its status.
func (r *reader) byMatchers(p *profile.Profile) Verdict {
	for _, row := range []struct {
		list []profile.Matcher
		says Verdict
	}{
		{p.AlreadyDone, Verdict{Kind: KindFinal, AlreadyDone: true}},
		{p.Duplicate, Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonDuplicate}},
		{p.Mismatch, Verdict{Kind: KindMismatch, Hold: r.facts.InDoubt}},
		{p.Poisoned, Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonStoredError}},
		{p.BusinessConflict, Verdict{Kind: KindFinal}},
		{p.InProgress, Verdict{Kind: KindInFlight, Again: true}},
		{p.Unclear, Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonUnclear}},
	} {
		switch r.answer.matchAny(row.list) {
		case hit:
			return row.says
		case unreadable:
			return Verdict{Kind: KindUnknown, Again: true}
		}
	}
	return r.byStatus(p)
}

// byStatus returns the verdict that the status alone gives. It is asked if none of the profile's matchers hits. NotActed has the statuses by which the API
// denies any effect. Again means that the request may be sent again, and Hold that nothing is sent until a person has looked.
func (r *reader) byStatus(p *profile.Profile) Verdict {
	status := r.answer.Status
	switch {
	case status >= 200 && status < 300:
		return r.success(p)
	case status == http.StatusSeeOther && r.isSuccessElsewhere(p):
		return Verdict{Kind: KindFinal}
	case status >= 300 && status < 400:
		return Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonRedirected}
	case slices.Contains(p.NotActed.Again, status):
		return Verdict{Kind: KindRefused, Again: true}
	case slices.Contains(p.NotActed.Stop, status):
		return Verdict{Kind: KindRefused}
	// By the draft of the key's header: an earlier send with the key is at work.
	case status == http.StatusConflict:
		return Verdict{Kind: KindInFlight, Again: true}
	case status >= 400 && status < 500 && !isOpen(status):
		return r.refusal(p)
	}
	return Verdict{Kind: KindUnknown, Again: true}
}

// statusCanceled is 499, which is in no RFC: proxies and gateways of gRPC answer so if they have lost their own client, or their context has ended.
const statusCanceled = 499

// isOpen reports whether a 4xx leaves the outcome open, as a 5xx does. 408 and 499 say that somebody has stopped waiting. By RFC 4918 a 423 names a lock, which
// may be the one of an earlier send with the key, and a 424 an action elsewhere that failed. None says that nothing happened.
func isOpen(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusLocked, http.StatusFailedDependency, statusCanceled:
		return true
	}
	return false
}

// isSuccessElsewhere reports whether a 303 is the API's success, whose representation lies at another place of its origin. Where nobody says that the API answers so, it
// may lead to a login page. An API with verdicts tells the outcome in a body, and a 303 has none. A caller of plain HTTP has asked for what net/http gives, and follows
// it.
func (r *reader) isSuccessElsewhere(p *profile.Profile) bool {
	told := p.Own.SeeOther == profile.Yes || r.facts.PlainHTTP
	return told && r.answer.SameOrigin && len(p.Verdicts) == 0 && !r.isUnaskedPage(p)
}

// obeyShouldRetry applies the profile's should-retry header to v. The header may stop or allow another attempt; it never makes an unknown outcome known. A verdict that
// is held, or is said of the key itself, stays as it is. A "yes" counts only if the answer has no flaw. A missing header is a "no" only where the profile says so, and
// for an error of the API's own. A "no" beside a 5xx holds the operation: the API keeps this error. stop is true if the server said no.
func (r *reader) obeyShouldRetry(p *profile.Profile, v *Verdict) (stop bool) {
	if p.ShouldRetry.Header == "" || r.answer.Status < 400 || v.AlreadyDone || v.Kind == KindMismatch || v.Hold {
		return false
	}
	switch advice := strings.ToLower(strings.TrimSpace(r.answer.Header.Get(p.ShouldRetry.Header))); {
	case advice == "":
		stop = p.ShouldRetry.Absent == profile.No && (v.Kind == KindUnknown || v.Kind == KindFinal) && fromAPI(&r.answer.Answer)
	case advice == p.ShouldRetry.No:
		stop = true
	case advice == p.ShouldRetry.Yes:
		v.Again = v.Flaw == FlawNone
	}
	if stop {
		if v.Kind == KindUnknown && r.answer.Status >= 500 {
			v.Hold, v.Reason = true, ReasonStoredError
		}
		v.Again = false
	}
	return stop
}

// fromAPI reports whether an error looks like the API's own. Only then a missing header has a meaning, since answers of a gateway have none: 502, 503
// and 504, HTML pages, and errors without a body.
func fromAPI(a *Answer) bool {
	gateway := a.Status >= http.StatusBadGateway && a.Status <= http.StatusGatewayTimeout
	return !gateway && len(bytes.TrimSpace(a.Body)) > 0 && !isPage(a)
}

// settles reports whether v counts although an earlier attempt is in doubt: v claims nothing of the earlier attempt,
// or the answer proves its outcome.
func (r *reader) settles(p *profile.Profile, v *Verdict) bool {
	switch {
	case v.Kind == KindUnknown, v.Kind == KindInFlight:
		return true // they claim nothing
	case v.Kind == KindMismatch, v.AlreadyDone:
		return true // said of the key itself; a mismatch is held
	case r.answer.Status < 400 && !v.Refused:
		return true
	case v.Kind == KindRefused, fromAnyLayer(r.answer.Status):
		return false
	case p.Carrier.Place == profile.Nowhere, !r.facts.Protected:
		return false // without a protecting key no answer is stored for the earlier attempt
	}
	return v.Replayed || r.answer.matchAny(p.Stored.Client) == hit
}

// fromAnyLayer reports whether something in front of the API may give the status. Such a status says nothing of an
// earlier attempt, with a replay mark or without.
func fromAnyLayer(status int) bool {
	switch status {
	case 401, 403, 405, 407, 413, 414, 415, 421, 426, 431, 451:
		return true
	}
	return false
}

// stillUnknown returns the verdict on an answer if it does not settle an operation in doubt. 401, 403 and 407 come
// from authentication; sending again at once cannot succeed.
func stillUnknown(status int, v Verdict) Verdict {
	refused := status == 401 || status == 403 || status == 407
	return Verdict{Kind: KindUnknown, Again: !refused, Replayed: v.Replayed, Flaw: v.Flaw}
}

// stored reports whether the server gives this final answer again for the same key, which must protect. Success counts as
// stored unless the profile denies it: otherwise no key would protect anything.
func (r *reader) stored(p *profile.Profile, v *Verdict) bool {
	switch {
	case v.Kind != KindFinal || !r.facts.Protected || fromAnyLayer(r.answer.Status):
		return false
	case v.Replayed || v.AlreadyDone:
		return true
	case r.answer.Status < 400 && !v.Refused:
		return p.Stored.Success != profile.No
	}
	return r.answer.matchAny(p.Stored.Client) == hit
}

// Once changes the verdict on an attempt at an operation without a protecting key. Only an unsent attempt may be made
// again. An unknown outcome is held, and one in flight counts as unknown.
func Once(v Verdict) Verdict {
	switch v.Kind {
	case KindNotSent:
		return v
	case KindUnknown, KindInFlight:
		if v.Reason == ReasonNone {
			v.Reason = ReasonNoKey
		}
		v.Kind, v.Hold = KindUnknown, true
	}
	v.Again = false
	return v
}
