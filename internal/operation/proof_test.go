package operation

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

func TestProofOf(t *testing.T) {
	t.Parallel()
	for kind, want := range map[classify.Kind]Kind{
		classify.KindUnknown: ProvesNothing, classify.KindNotSent: ProvesUnsent, classify.KindRefused: ProvesRefusal,
		classify.KindInFlight: ProvesInFlight, classify.KindFinal: ProvesEnd, classify.KindMismatch: ProvesMismatch,
	} {
		if got := ProofOf(classify.Verdict{Kind: kind}); got != (Proof{Kind: want}) {
			t.Errorf("kind %d: %+v, want kind %d", kind, got, want)
		}
	}
	if got := ProofOf(classify.Verdict{Kind: classify.KindMismatch, Hold: true}); got.Hold != persist.HoldMismatch {
		t.Errorf("a mismatch in doubt: %+v", got)
	}
	for reason, want := range map[classify.Reason]persist.HoldReason{
		classify.ReasonNone: "", classify.ReasonStoredError: persist.HoldStoredError, classify.ReasonRedirected: persist.HoldRedirected,
		classify.ReasonUnclear: persist.HoldUnclear, classify.ReasonUnread: persist.HoldUnread, classify.ReasonNoKey: persist.HoldNoKey,
		classify.ReasonDuplicate: persist.HoldDuplicate,
	} {
		if got := ProofOf(classify.Verdict{Reason: reason, Hold: true}); got.Hold != want {
			t.Errorf("reason %d: held as %q, want %q", reason, got.Hold, want)
		}
	}
}

// A hold with a name of its own goes before the kind.
func TestTrouble(t *testing.T) {
	t.Parallel()
	for proof, want := range map[Proof]Trouble{
		{}:                              NoTrouble,
		{Hold: persist.HoldStoredError}: IsStoredError,
		{Hold: persist.HoldRedirected}:  IsRedirected,
		{Hold: persist.HoldDuplicate}:   IsDuplicate,
		{Hold: persist.HoldNoKey}:       NoTrouble,
		{Kind: ProvesInFlight}:          IsInFlight,
		{Kind: ProvesMismatch}:          IsMismatch,
		{Kind: ProvesExpiry}:            IsExpired,
		{Kind: ProvesRefusal}:           NoTrouble,
		{Kind: ProvesMismatch, Hold: persist.HoldDuplicate}: IsDuplicate,
	} {
		if got := proof.Trouble(); got != want {
			t.Errorf("%+v: %d, want %d", proof, got, want)
		}
	}
}

// Only a resource that is the request's, or another's, settles; that there is none does not.
func TestFound(t *testing.T) {
	t.Parallel()
	for finding, want := range map[classify.Finding]classify.Verdict{
		classify.FindingUnclear: {Again: true},
		classify.FindingNone:    {Again: true},
		classify.FindingSame:    {Kind: classify.KindFinal, AlreadyDone: true, Stored: true},
		classify.FindingOther:   {Kind: classify.KindMismatch, Hold: true},
	} {
		v, settled := Found(finding)
		if v != want || settled != (want.Kind != classify.KindUnknown) {
			t.Errorf("finding %d: %+v, settled %t", finding, v, settled)
		}
	}
}
