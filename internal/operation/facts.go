package operation

import (
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// UnderOtherFacts returns the verdict on an attempt by a client whose profile has the name and version of the record's, and states other
// facts. Sending goes on, and a success confirms. What such a verdict would settle by a 4xx or a matcher alone is held: the facts under
// which the operation was begun may read it otherwise. A refusal of one send proves nothing then. status is that of the answer;
// hides: by the facts of the record a 2xx proves nothing by its status.
// changed is false where the verdict is the same.
func UnderOtherFacts(v classify.Verdict, status int, hides bool) (w classify.Verdict, changed bool) {
	switch {
	case v.Kind == classify.KindRefused:
		return classify.Verdict{Kind: classify.KindUnknown, Again: v.Again, Replayed: v.Replayed, Flaw: v.Flaw}, true
	case v.Kind == classify.KindMismatch, v.Kind == classify.KindFinal && (v.AlreadyDone || v.Refused || hides || status >= 400):
		return classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonUnread, Replayed: v.Replayed, Flaw: v.Flaw}, true
	}
	return v, false
}

// EndsUnread reports whether a held operation is ended by its recorded answer, which the client that got it could not read: by its own facts
// that is a success. v is the verdict by these. A refusal ends no hold.
func EndsUnread(rec *persist.Record, v classify.Verdict) bool {
	return rec.State == persist.StateHeld && rec.HoldReason == persist.HoldUnread && rec.Answer != nil &&
		v.Kind == classify.KindFinal && (v.AlreadyDone || rec.Answer.Status < 300 && !v.Refused)
}
