package mockserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// TestDeclined: a 402 of a fault is a declined payment with a code, where the API of the profile has its codes. It says nothing else under any profile.
func TestDeclined(t *testing.T) {
	t.Parallel()
	places := map[string]spelledBy{ // written out, as the APIs spell their errors
		"draft-07":        {402, "error.code", "payment_declined"},
		"stripe":          {402, "error.code", "card_declined"},
		"square":          {402, "errors.0.code", "CARD_DECLINED"},
		"acp":             {402, "code", "payment_declined"},
		"amazon-pay":      {402, "reasonCode", "payment_declined"},
		"paypal-payments": {402, "details.0.issue", "payment_declined"},
		"mercado-pago":    {402, "errors.0.code", "payment_declined"},
		"coinbase":        {402, "errorType", "payment_declined"},
	}
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		a := keylayer.DeclinedAnswer(p)
		if !strings.Contains(strings.ToLower(string(a.Body)), "declined") || !strings.Contains(string(a.Body), "The payment was declined.") {
			t.Errorf("%s: %s", name, a.Body)
		}
		for what, list := range map[string][]profile.Matcher{"already done": p.AlreadyDone, "mismatch": p.Mismatch, "in progress": p.InProgress, "poisoned": p.Poisoned, "conflict": p.BusinessConflict, "unclear": p.Unclear} {
			if keylayer.MatchesAny(list, a) {
				t.Errorf("%s: %s says %s", name, a.Body, what)
			}
		}
		want, listed := places[name]
		if !listed {
			continue
		}
		delete(places, name)
		fault := mockserver.Fault{Kind: mockserver.Answer, Status: http.StatusPaymentRequired}
		own := fault
		own.Body = `{"declined":"by the test"}`
		mocktest.Bubble(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{fault, own}}, func(s *mockserver.Server, cl *client) {
			for i, want := range []spelledBy{want, {402, "declined", "by the test"}} {
				key := fmt.Sprintf("00000000-0000-4000-8000-00000000000%d", i)
				want.wantIn(t, name, cl.Do(keyedBy(p, key, 1)))
				if effects := s.Ledger().Effects(key); effects != 0 {
					t.Errorf("%s: %d effects of a declined payment", name, effects)
				}
			}
		})
	}
	if len(places) > 0 {
		t.Errorf("no profile %v", places)
	}
}
