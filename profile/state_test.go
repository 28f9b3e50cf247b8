package profile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// TestState: each fact that a profile needs to be ready is missed, and a weak source is none.
func TestState(t *testing.T) {
	t.Parallel()
	facts := map[string]string{
		"carrier": `{"place": "header", "name": "X-Key"}`, "methods": `["POST"]`, "stored": `{"success": "yes"}`,
	}
	with := func(but, instead string) *profile.Profile {
		text := ""
		for name, value := range facts {
			if name == but {
				text += instead
				continue
			}
			text += `, "` + name + `": {"value": ` + value + `, "source": "primary"}`
		}
		return load(t, text)
	}
	for name, r := range map[string]struct {
		p     *profile.Profile
		state profile.State
		lacks string
	}{
		"all":                     {with("", ""), profile.StateReady, ""},
		"no carrier":              {with("carrier", ""), profile.StateRefused, "carrier"},
		"no methods":              {with("methods", ""), profile.StatePartial, "endpoints"},
		"assumed methods":         {with("methods", `, "methods": {"value": ["POST"], "source": "assumed"}`), profile.StatePartial, "endpoints"},
		"endpoints":               {with("methods", `, "endpoints": {"value": ["POST /p"], "source": "excerpt"}`), profile.StateReady, ""},
		"nothing of a repeat":     {with("stored", ""), profile.StatePartial, "stored.success"},
		"a repeat is not kept":    {with("stored", `, "stored": {"value": {"success": "no"}, "source": "primary"}`), profile.StatePartial, "stored.success"},
		"a weak word of a repeat": {with("stored", `, "stored": {"value": {"success": "yes"}, "source": "secondary"}`), profile.StatePartial, "stored.success"},
		"a repeat is done before": {with("stored", `, "already_done": {"value": [{"status": [409]}], "source": "primary"}`), profile.StateReady, ""},
	} {
		if got, lacks := r.p.State(), strings.Join(r.p.NotReady(), " "); got != r.state || lacks != r.lacks {
			t.Errorf("%s: %s for want of %q, want %s, %q", name, got, lacks, r.state, r.lacks)
		}
	}
}

// TestStatesOfProfiles: the states of those that this package has, by what their sources say of repeats and of where keys count.
func TestStatesOfProfiles(t *testing.T) {
	t.Parallel()
	states := map[profile.State][]string{}
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		states[p.State()] = append(states[p.State()], name)
	}
	want := map[profile.State][]string{
		profile.StateRefused:  {"alipay", "braintree", "shopify", "worldpay-wpg"},
		profile.StateComplete: {"acp", "stripe", "zuora"},
		// The draft is no API. Of the others no source says what a repeat of a success is answered.
		profile.StatePartial: strings.Fields(`draft-07 airwallex alpaca antom brex draft-07-quoted google-request-id lithic lithic-payments mangopay mercado-pago moov paystack plaid qonto rapyd revolut-business
			revolut-business-cards wechat-pay wise-balances wise-transfers worldline-connect xendit`),
		profile.StateReady: strings.Fields(`adyen amazon-pay azure-repeatability bridge checkout-com circle coinbase column datatrans dwolla easyship finix flutterwave gocardless iceberg-rest increase klarna lob marqeta mercury modern-treasury
			mollie none open-banking-uk paypal-orders paypal-payments paypal-payouts paypal-subscriptions paypal-vault razorpay-payouts razorpay-refunds razorpay-transfers resend
			solid square stripe-v2 truelayer ucp whop xero yookassa`),
	}
	for state, names := range want {
		if !slices.Equal(states[state], names) {
			t.Errorf("%s are %v, want %v", state, states[state], names)
		}
	}
}
