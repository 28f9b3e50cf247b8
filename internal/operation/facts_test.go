package operation_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
)

// TestUnderOtherFacts: under other facts than those of the record only a success settles an operation.
func TestUnderOtherFacts(t *testing.T) {
	t.Parallel()
	held := classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonUnclear}
	for name, row := range map[string]struct {
		verdict classify.Verdict
		status  int
		want    classify.Verdict
	}{
		"a success":        {classify.Verdict{Kind: classify.KindFinal, Stored: true}, 201, classify.Verdict{Kind: classify.KindFinal, Stored: true}},
		"a 303":            {classify.Verdict{Kind: classify.KindFinal}, 303, classify.Verdict{Kind: classify.KindFinal}},
		"a final 4xx":      {classify.Verdict{Kind: classify.KindFinal, Stored: true, Again: true}, 402, held},
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
		got, changed := operation.UnderOtherFacts(row.verdict, row.status)
		if got != row.want || changed != (got != row.verdict) {
			t.Errorf("%s: %+v, changed %t; want %+v", name, got, changed, row.want)
		}
	}
}
