package sign_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/sign"
)

func webhook(t *testing.T, name string) sign.Webhook {
	t.Helper()
	w, ok := sign.WebhookOf(name)
	if !ok {
		t.Fatalf("no scheme %s", name)
	}
	return w
}

// TestWebhookVectors: the signatures of the APIs' own documentation and libraries are good.
func TestWebhookVectors(t *testing.T) {
	t.Parallel()
	adyen := map[string]string{ // docs.adyen.com, verify HMAC signatures; Adyen/adyen-node-api-library, hmacValidator.spec.ts
		"/pspReference": "7914073381342284", "/merchantAccountCode": "TestMerchant", "/merchantReference": "TestPayment-1407325143704",
		"/amount/value": "1130", "/amount/currency": "EUR", "/eventCode": "AUTHORISATION", "/success": "true",
		"/additionalData/hmacSignature": "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=",
	}
	for _, row := range []struct {
		name, secret string
		header       http.Header
		body         string
		value        func(string) (string, bool)
	}{
		{ // docs.github.com, validating webhook deliveries, "Testing the webhook payload validation"
			"github", "It's a Secret to Everybody",
			http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}}, "Hello, World!", nil,
		},
		{"adyen", "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056", nil, "", func(p string) (string, bool) { return adyen[p], true }},
		{ // gocardless/gocardless-pro-python, tests/webhooks_test.py
			"gocardless", "ED7D658C-D8EB-4941-948B-3973214F2D49",
			http.Header{"Webhook-Signature": {"2693754819d3e32d7e8fcb13c729631f316c6de8dc1cf634d6527f1c07276e7e"}},
			`{"events":[{"id":"EV00BD05S5VM2T","created_at":"2018-07-05T09:13:51.404Z","resource_type":"subscriptions","action":"created","links":{"subscription":"SB0003JJQ2MR06"},"details":{"origin":"api","cause":"subscription_created","description":"Subscription created via the API."},"metadata":{}},{"id":"EV00BD05TB8K63","created_at":"2018-07-05T09:13:56.893Z","resource_type":"mandates","action":"created","links":{"mandate":"MD000AMA19XGEC"},"details":{"origin":"api","cause":"mandate_created","description":"Mandate created via the API."},"metadata":{}}]}`, nil,
		},
	} {
		verify, err := webhook(t, row.name).Verifier(sign.WebhookCheck{Secrets: [][]byte{[]byte("0123"), []byte(row.secret)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(row.header, []byte(row.body), row.value); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if row.body == "" {
			continue
		}
		if err := verify(row.header, []byte(row.body+" "), row.value); !errors.Is(err, sign.ErrSignature) {
			t.Errorf("%s, another body: %v, want ErrSignature", row.name, err)
		}
	}
}

// TestWebhookSchemes: each scheme takes its own signatures, by any of its secrets, and names its source.
func TestWebhookSchemes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"github", "gocardless", "shopify", "square", "stripe"} {
		w := webhook(t, name)
		verify, err := w.Verifier(sign.WebhookCheck{Secrets: [][]byte{[]byte("new"), []byte("old")}, URL: "https://a/{body}"})
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(`{"url":"{url}"}`)
		for _, secret := range []string{"new", "old"} {
			if err := verify(w.Sign([]byte(secret), "https://a/{body}", time.Now(), body), body, nil); err != nil {
				t.Errorf("%s by %s: %v", name, secret, err)
			}
		}
		if err := verify(w.Sign([]byte("other"), "https://a/{body}", time.Now(), body), body, nil); !errors.Is(err, sign.ErrSignature) {
			t.Errorf("%s by another: %v", name, err)
		}
		if !strings.HasPrefix(w.Source, "https://") {
			t.Errorf("%s has no source", name)
		}
	}
	if _, ok := sign.WebhookOf("Stripe"); ok {
		t.Error("a scheme in another case is found")
	}
}

// TestWebhookTime: a signed time counts within the tolerance, on both sides.
func TestWebhookTime(t *testing.T) {
	t.Parallel()
	w := webhook(t, "stripe")
	verify, err := w.Verifier(sign.WebhookCheck{Secrets: [][]byte{[]byte("s")}, Tolerance: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]error{0: nil, 50 * time.Second: nil, -50 * time.Second: nil, 70 * time.Second: sign.ErrTime, -70 * time.Second: sign.ErrTime} {
		if err := verify(w.Sign([]byte("s"), "", time.Now().Add(-age), []byte("b")), []byte("b"), nil); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("age %v: %v, want %v", age, err, want)
		}
	}
}

// TestWebhookSettings: without a secret, an address that is signed, or a bounded tolerance there is no verifier.
func TestWebhookSettings(t *testing.T) {
	t.Parallel()
	good := [][]byte{[]byte("s")}
	for name, row := range map[string]struct {
		scheme string
		check  sign.WebhookCheck
	}{
		"no secret": {"stripe", sign.WebhookCheck{}}, "an empty secret": {"stripe", sign.WebhookCheck{Secrets: [][]byte{{}}}},
		"no address": {"square", sign.WebhookCheck{Secrets: good}}, "no hexadecimal digits": {"adyen", sign.WebhookCheck{Secrets: good}},
		"a long tolerance":     {"stripe", sign.WebhookCheck{Secrets: good, Tolerance: sign.WebhookToleranceMax + 1}},
		"a negative tolerance": {"stripe", sign.WebhookCheck{Secrets: good, Tolerance: -1}},
	} {
		if verify, err := webhook(t, row.scheme).Verifier(row.check); err == nil || verify != nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := (sign.Webhook{}).Verifier(sign.WebhookCheck{Secrets: good}); err == nil {
		t.Error("the zero scheme has a verifier")
	}
}
