package operation

import "github.com/oncehttp/oncehttp/internal/classify"

// UnderOtherFacts returns the verdict on an attempt by a client whose profile has the name and version of the record's, and states other
// facts. Sending goes on, and a success confirms. What such a verdict would settle by a 4xx or a matcher alone is held: the facts under
// which the operation was begun may read it otherwise. A refusal of one send proves nothing then. status is that of the answer;
// changed is false where the verdict is the same.
func UnderOtherFacts(v classify.Verdict, status int) (w classify.Verdict, changed bool) {
	switch {
	case v.Kind == classify.KindRefused:
		return classify.Verdict{Kind: classify.KindUnknown, Again: v.Again, Replayed: v.Replayed, Flaw: v.Flaw}, true
	case v.Kind == classify.KindMismatch, v.Kind == classify.KindFinal && (v.AlreadyDone || status >= 400):
		return classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonUnclear, Replayed: v.Replayed, Flaw: v.Flaw}, true
	}
	return v, false
}
