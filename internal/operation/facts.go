package operation

import (
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// UnderOtherFacts returns the verdict of a client with other facts: its profile has the name and version of the record's profile, and differs in the
// reading of answers. Sending goes on, and a success confirms. An end by a 4xx or a matcher alone becomes a hold: the facts of the record may
// read it otherwise. A refusal of one send proves nothing then. status is the status of the answer; hides: by the facts of the record a 2xx
// proves nothing by its status. If changed is false, w equals v. (Invariant 42.)
func UnderOtherFacts(v classify.Verdict, status int, hides bool) (w classify.Verdict, changed bool) {
	switch {
	case v.Kind == classify.KindRefused:
		return classify.Verdict{Kind: classify.KindUnknown, Again: v.Again, Replayed: v.Replayed, Flaw: v.Flaw}, true
	case v.Kind == classify.KindMismatch, v.Kind == classify.KindFinal && (v.AlreadyDone || v.Refused || hides || status >= 400):
		return classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonUnread, Replayed: v.Replayed, Flaw: v.Flaw}, true
	}
	return v, false
}

// IsUnread reports whether the operation is held for a recorded answer that the client with it could not read: another client may. (Invariant 42.)
func (o *Op) IsUnread() bool { return o.Hold == persist.HoldUnread && o.Answered }

// EndsUnread reports whether that answer ends the operation; v is the verdict by this client's facts. A success ends the hold, and a refusal does not.
// (Invariant 42.)
func (o *Op) EndsUnread(v classify.Verdict) bool {
	return o.IsUnread() && v.Kind == classify.KindFinal && (v.AlreadyDone || o.Status < 300 && !v.Refused)
}
