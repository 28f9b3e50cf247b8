package operation_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestUnderOtherFacts: under other facts than those of the record only a success settles an operation.
func TestUnderOtherFacts(t *testing.T) {
	t.Parallel()
	held := classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonUnread}
	for name, row := range map[string]struct {
		verdict classify.Verdict
		status  int
		want    classify.Verdict
	}{
		"a success":        {classify.Verdict{Kind: classify.KindFinal, Stored: true}, 201, classify.Verdict{Kind: classify.KindFinal, Stored: true}},
		"hides, a success": {classify.Verdict{Kind: classify.KindFinal, Stored: true}, 201, held},
		"hides, in flight": {classify.Verdict{Kind: classify.KindInFlight, Again: true}, 200, classify.Verdict{Kind: classify.KindInFlight, Again: true}},
		"refused by a 200": {classify.Verdict{Kind: classify.KindFinal, Refused: true}, 200, held},
		"a 303":            {classify.Verdict{Kind: classify.KindFinal}, 303, classify.Verdict{Kind: classify.KindFinal}},
		"a final 4xx":      {classify.Verdict{Kind: classify.KindFinal, Stored: true, Again: true}, 402, held},
		"a 400":            {classify.Verdict{Kind: classify.KindFinal}, 400, held},
		"already done":     {classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true}, 409, held},
		"done, with a 200": {classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true}, 200, held},
		"a mismatch":       {classify.Verdict{Kind: classify.KindMismatch}, 422, held},
		"refused, again":   {classify.Verdict{Kind: classify.KindRefused, Again: true}, 429, classify.Verdict{Again: true}},
		"refused":          {classify.Verdict{Kind: classify.KindRefused}, 401, classify.Verdict{}},
		"not sent":         {classify.Verdict{Kind: classify.KindNotSent, Again: true}, 0, classify.Verdict{Kind: classify.KindNotSent, Again: true}},
		"in flight":        {classify.Verdict{Kind: classify.KindInFlight, Again: true}, 409, classify.Verdict{Kind: classify.KindInFlight, Again: true}},
		"unknown":          {classify.Verdict{Again: true}, 500, classify.Verdict{Again: true}},
		"held":             {classify.Verdict{Hold: true, Reason: classify.ReasonStoredError}, 500, classify.Verdict{Hold: true, Reason: classify.ReasonStoredError}},
	} {
		got, changed := operation.UnderOtherFacts(row.verdict, row.status, strings.HasPrefix(name, "hides"))
		if got != row.want || changed != (got != row.verdict) {
			t.Errorf("%s: %+v, changed %t; want %+v", name, got, changed, row.want)
		}
	}
}

// TestEndsUnread: a recorded answer ends a hold only where it was not read, and is a success.
func TestEndsUnread(t *testing.T) {
	t.Parallel()
	final, done := classify.Verdict{Kind: classify.KindFinal}, classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true}
	for name, row := range map[string]struct {
		state   persist.State
		why     persist.HoldReason
		status  int // 0: none is recorded
		verdict classify.Verdict
		want    bool
	}{
		"a success":          {persist.StateHeld, persist.HoldUnread, 201, final, true},
		"already done":       {persist.StateHeld, persist.HoldUnread, 409, done, true},
		"a refusal in a 200": {persist.StateHeld, persist.HoldUnread, 200, classify.Verdict{Kind: classify.KindFinal, Refused: true}, false},
		"a refusal":          {persist.StateHeld, persist.HoldUnread, 402, final, false},
		"a 300":              {persist.StateHeld, persist.HoldUnread, 300, final, false},
		"a 303":              {persist.StateHeld, persist.HoldUnread, 303, final, false},
		"unclear":            {persist.StateHeld, persist.HoldUnread, 201, classify.Verdict{}, false},
		"a mismatch":         {persist.StateHeld, persist.HoldUnread, 200, classify.Verdict{Kind: classify.KindMismatch}, false},
		"no answer":          {persist.StateHeld, persist.HoldUnread, 0, done, false},
		"held otherwise":     {persist.StateHeld, persist.HoldUnclear, 201, final, false},
		"for its caller":     {persist.StateHeld, persist.HoldCaller, 201, final, false},
		"pending":            {persist.StatePending, "", 201, final, false},
		"restored":           {persist.StateHeld, persist.HoldRestored, 201, done, false},
		"a Rekey is at work": {persist.StateHeld, persist.HoldRekeyHeld, 201, done, false},
	} {
		rec := persist.Record{State: row.state, HoldReason: row.why}
		if row.status != 0 {
			rec.Answer = &persist.Answer{Status: row.status}
		}
		op := operation.OpOf(&rec, 0)
		if got := operation.EndsUnread(&op, row.verdict); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}
