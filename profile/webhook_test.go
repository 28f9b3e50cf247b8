package profile_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// TestWebhookChecks: a fact of events that would prove too much, or nothing, is refused.
func TestWebhookChecks(t *testing.T) {
	t.Parallel()
	good := func() *profile.Profile { return profile.StripeV1() }
	if err := good().Check(); err != nil || good().Webhook == nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(w *profile.Webhook){
		"scheme":                 func(w *profile.Webhook) { w.Scheme = "" },
		"event: want events":     func(w *profile.Webhook) { w.Event = "/e" },
		"live":                   func(w *profile.Webhook) { w.LiveValue = "" },
		"account: want account,": func(w *profile.Webhook) { w.AccountField = "/account" },
		"account_header":         func(w *profile.Webhook) { w.AccountHeader = "X-Other" },
		"type: want a JSON":      func(w *profile.Webhook) { w.Type = "" },
		"proofs":                 func(w *profile.Webhook) { w.Proofs = nil },
		"merchant_optional":      func(w *profile.Webhook) { w.MerchantOptional = true },
		"pointer":                func(w *profile.Webhook) { w.ID = "id" },
		"proof 1: type":          func(w *profile.Webhook) { w.Proofs[0].Type = "" },
		"proof 1: operations":    func(w *profile.Webhook) { w.Proofs[0].Operations = nil },
		"proof 1: operations: a": func(w *profile.Webhook) { w.Proofs[0].Operations[0].Keyless = true },
		"proof 1: where":         func(w *profile.Webhook) { w.Proofs[0].Where[0].Equals = nil },
		"event and request":      func(w *profile.Webhook) { w.Proofs[0].Amount.Request = "" },
		"want a JSON pointer":    func(w *profile.Webhook) { w.Proofs[0].Key = "key" },
	} {
		p := good()
		change(p.Webhook)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), "webhook: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if p := good(); p.Clone().Webhook == p.Webhook || &p.Clone().Webhook.Proofs[0] == &p.Webhook.Proofs[0] {
		t.Error("a clone shares its events")
	}
}

// TestWebhookOfAWeakSource: such a fact proves nothing.
func TestWebhookOfAWeakSource(t *testing.T) {
	t.Parallel()
	const text = `{"name": "own", "version": "1", "title": "Own", "sources": {"blog": {"ref": "https://example.com", "date": "2026-11", "confidence": "secondary"}},
		"webhook": {"value": {"scheme": "stripe", "type": "/type", "proofs": [{"type": "t", "operations": ["POST /p"], "key": "/k"}]}, "source": "blog"}}`
	p, err := profile.Load(strings.NewReader(text))
	if err != nil || p.Webhook != nil || len(p.Doubted) != 1 {
		t.Errorf("%v, %+v, doubted %v", err, p, p)
	}
}
