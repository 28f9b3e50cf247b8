package operation

import (
	"net/http"
	"testing"
	"time"

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
		classify.FindingRefused: {Kind: classify.KindFinal, Refused: true, Stored: true},
	} {
		v, settled := Found(finding)
		if v != want || settled != (want.Kind != classify.KindUnknown) {
			t.Errorf("finding %d: %+v, settled %t", finding, v, settled)
		}
	}
}

// TestFlawed: what is compared with a later answer is a success in doubt, of this drive or of an unfinished record.
func TestFlawed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flaw   classify.Flaw
		status int
		want   bool
	}{
		"a cut success":     {classify.FlawCut, 299, true},
		"a cut redirect":    {classify.FlawCut, 300, false},
		"a whole success":   {classify.FlawNone, 200, false},
		"errors of GraphQL": {classify.FlawErrors, 200, false},
	} {
		if got := IsFlawedSuccess(c.flaw, c.status); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	success, refusal := &persist.Answer{Status: 299}, &persist.Answer{Status: 300}
	for name, c := range map[string]struct {
		rec  persist.Record
		want *persist.Answer
	}{
		"pending, a success": {persist.Record{State: persist.StatePending, Answer: success}, success},
		"held, a success":    {persist.Record{State: persist.StateHeld, Answer: success}, success},
		"ended":              {persist.Record{State: persist.StateConfirmed, Answer: success}, nil},
		"no success":         {persist.Record{State: persist.StatePending, Answer: refusal}, nil},
		"no answer":          {persist.Record{State: persist.StatePending}, nil},
	} {
		if got := FlawedOf(&c.rec); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestWhy: the troubles of each state, and of each hold.
func TestWhy(t *testing.T) {
	t.Parallel()
	final := map[persist.State]Trouble{persist.StateMismatched: IsMismatch, persist.StateAbandoned: IsAbandoned, persist.StateSettled: IsSettled}
	for _, state := range []persist.State{
		persist.StatePending, persist.StateHeld, persist.StateConfirmed, persist.StateMismatched, persist.StateSettled, persist.StateAbandoned,
	} {
		op := Op{Phase: Phase{State: state}}
		if got := op.WhyFinal(); got != final[state] {
			t.Errorf("%v: %d, want %d", state, got, final[state])
		}
		want := [2]Trouble{IsMismatch}
		if state == persist.StateAbandoned {
			want[1] = IsAbandoned
		}
		if got := op.WhyOther(); got != want {
			t.Errorf("another request beside %v: %d, want %d", state, got, want)
		}
	}
	for _, hold := range persist.HoldReasons() {
		op, want := Op{Phase: Phase{State: persist.StateHeld, Hold: hold}}, [2]Trouble{IsHeld}
		if hold == persist.HoldDuplicate {
			want[1] = IsDuplicate
		}
		if got := op.WhyHeld(); got != want {
			t.Errorf("held for %s: %d, want %d", hold, got, want)
		}
		if op.IsForCaller() != (hold == persist.HoldCaller) {
			t.Errorf("held for %s: for a caller: %t", hold, op.IsForCaller())
		}
	}
}

// TestProofOfMismatch: a key of another request holds only if the verdict says so, and a reason of its own counts more.
func TestProofOfMismatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict classify.Verdict
		want    persist.HoldReason
	}{
		"it ends":         {classify.Verdict{Kind: classify.KindMismatch}, ""},
		"it holds":        {classify.Verdict{Kind: classify.KindMismatch, Hold: true}, persist.HoldMismatch},
		"it has a reason": {classify.Verdict{Kind: classify.KindMismatch, Hold: true, Reason: classify.ReasonUnread}, persist.HoldUnread},
		"unknown":         {classify.Verdict{Kind: classify.KindUnknown, Hold: true}, ""},
	} {
		if got := ProofOf(c.verdict).Hold; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFlawedAgain: a flawed success repeats one of the same status and bytes or, if that was recorded without its body, one that would be recorded alike.
func TestFlawedAgain(t *testing.T) {
	t.Parallel()
	answer := func(status int, body, kind string, dropped bool) *persist.Answer {
		return &persist.Answer{Status: status, Body: []byte(body), Header: http.Header{"Content-Type": {kind}}, BodyDropped: dropped}
	}
	for name, c := range map[string]struct {
		before, now *persist.Answer
		recorded    bool
		want        bool
	}{
		"the first":                       {nil, answer(200, "a", "t", false), false, false},
		"the same":                        {answer(200, "a", "t", false), answer(200, "a", "u", false), false, true},
		"another body":                    {answer(200, "a", "t", false), answer(200, "b", "t", false), false, false},
		"another status":                  {answer(200, "a", "t", false), answer(201, "a", "t", false), false, false},
		"too large here, twice":           {answer(200, "a", "t", true), answer(200, "a", "t", true), false, true},
		"too large here, another one":     {answer(200, "a", "t", true), answer(200, "b", "t", true), false, false},
		"recorded without its body":       {answer(200, "", "t", true), answer(200, "b", "t", true), true, true},
		"recorded so, another type":       {answer(200, "", "t", true), answer(200, "b", "u", true), true, false},
		"recorded so, another status":     {answer(200, "", "t", true), answer(201, "b", "t", true), true, false},
		"recorded so, this one with body": {answer(200, "", "t", true), answer(200, "", "t", false), true, false},
	} {
		if got := FlawedAgain(c.before, c.now, c.recorded); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOtherFacts: facts differ only where the record has some, and the client knows its own.
func TestOtherFacts(t *testing.T) {
	t.Parallel()
	for facts, want := range map[[2]string]bool{
		{"a", "a"}: false, {"a", "b"}: true, {"", "b"}: false, {"a", ""}: false, {"", ""}: false,
	} {
		if got := OtherFacts(facts[0], facts[1]); got != want {
			t.Errorf("of the record %q, of the client %q: %t", facts[0], facts[1], got)
		}
	}
}

// TestGivenWith: whoever began an operation with AskFirst, or drives it so, asks first, if the API finds anything; a random key is known to its call alone.
func TestGivenWith(t *testing.T) {
	t.Parallel()
	for bits := range 32 {
		client, record, finds, made, random := bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0, bits&16 != 0
		rec := persist.Record{AskFirst: record, Generated: made}
		got := Given{Pass: true}.With(&rec, Means{AsksFirst: client, Finds: finds, RandomKeys: random, Late: finds, LeastDelay: time.Second})
		want := Given{Pass: true, AskFirst: finds && (client || record), OwnKey: made && random, Late: finds, LeastDelay: time.Second}
		if got != want {
			t.Errorf("the client %t, the record %t, finds %t, a made key %t, random %t: %+v, want %+v", client, record, finds, made, random, got, want)
		}
	}
}
