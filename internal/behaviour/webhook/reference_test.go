package webhook_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

const hexSecret = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"

const address = "http://127.0.0.1/webhooks"

// api is one API with events that name an operation by a reference.
type api struct {
	name, secret, path, keep string
	request                  func(order string) string
	event                    func(order string) string // signed by post
	references               []oncehttp.WebhookReference
	merchant                 string
}

// now is the present time as in an event.
func now() string { return time.Now().UTC().Format(time.RFC3339) }

func apis() []api {
	return []api{
		{
			name: "square", secret: secret, merchant: "M", path: "/v2/payments", keep: "/reference_id",
			request: func(order string) string {
				return fmt.Sprintf(`{"idempotency_key":"k%s","source_id":"cnon","amount_money":{"amount":100,"currency":"EUR"},"reference_id":%q}`, order, order)
			},
			event: func(order string) string {
				return fmt.Sprintf(`{"merchant_id":"M","type":"payment.updated","event_id":"e1","created_at":"`+now()+`","data":{"object":{"payment":{"status":"COMPLETED","reference_id":%q,"amount_money":{"amount":100,"currency":"EUR"}}}}}`, order)
			},
		},
		{
			name: "adyen", secret: hexSecret, path: "/v72/payments", keep: "/reference",
			request: func(order string) string {
				return fmt.Sprintf(`{"amount":{"value":1130,"currency":"EUR"},"reference":%q,"merchantAccount":"Shop"}`, order)
			},
			event: func(order string) string {
				return fmt.Sprintf(`{"live":"true","notificationItems":[{"NotificationRequestItem":{"eventCode":"AUTHORISATION","eventDate":"`+now()+`","success":"true","pspReference":"791","merchantAccountCode":"Shop",`+
					`"merchantReference":%q,"amount":{"value":1130,"currency":"EUR"},"additionalData":{"hmacSignature":"SIGNATURE"}}}]}`, order)
			},
		},
		{
			name: "gocardless", secret: secret, path: "/payments", keep: "/payments/metadata/order",
			request: func(order string) string {
				return fmt.Sprintf(`{"payments":{"amount":100,"currency":"GBP","metadata":{"order":%q},"links":{"mandate":"MD1"}}}`, order)
			},
			event: func(order string) string {
				return fmt.Sprintf(`{"events":[{"id":"EV0","resource_type":"mandates","action":"created"},{"id":"EV1","resource_type":"payments","action":"created","created_at":"`+now()+`","resource_metadata":{"order":%q},"links":{"payment":"PM1"}}]}`, order)
			},
			references: []oncehttp.WebhookReference{{Event: "/resource_metadata/order", Request: "/payments/metadata/order"}},
		},
	}
}

// signed returns the body and the header of an event.
func (a *api) signed(t *testing.T, body string) (string, http.Header) {
	t.Helper()
	s := scheme(t, a.name)
	if a.name != "adyen" {
		return body, s.Sign([]byte(a.secret), address, time.Now(), []byte(body))
	}
	item := jsonpointer.Value(jsonpointer.Decode([]byte(body)), "/notificationItems/0/NotificationRequestItem")
	signature, err := s.SignFields([]byte(a.secret), func(pointer string) string { text, _ := jsonpointer.Text(item, pointer); return text })
	clienttest.Must(t, err)
	return strings.Replace(body, "SIGNATURE", signature, 1), http.Header{}
}

// client returns a client of the API with a wire that loses all answers, and the handler.
func (a *api) client(t *testing.T, change func(*oncehttp.Config)) (*oncehttp.Client, *clienttest.Events, http.Handler) {
	t.Helper()
	events := &clienttest.Events{}
	prof := clienttest.Named(t, a.name)
	c, _ := clienttest.New(t, wiretest.Func(func(req *http.Request) (*http.Response, error) {
		wiretest.HandedOver(req)
		return nil, wiretest.ErrLost
	}), func(cfg *oncehttp.Config) {
		cfg.Profile, cfg.Retry.MaxAttempts, cfg.Observe, cfg.KeepFields = prof, 1, events.Observe, []string{a.keep}
		if change != nil {
			change(cfg)
		}
	})
	h, err := oncehttp.Webhook(c, oncehttp.WebhookConfig{Secrets: [][]byte{[]byte(a.secret)}, URL: address, References: a.references, Account: a.merchant})
	clienttest.Must(t, err)
	return c, events, h
}

// lose sends an operation with a reference, and gets no answer.
func (a *api) lose(t *testing.T, c *oncehttp.Client, key oncehttp.Key, order string) {
	t.Helper()
	body := a.request(order)
	if a.name == "square" {
		body = strings.Replace(body, `"k`+order+`"`, `"`+string(key)+`"`, 1)
	}
	if _, err := c.DoKey(clienttest.Request(t, http.MethodPost, "https://api.example.com"+a.path, body), key); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatalf("%v, want ErrOutcomeUnknown", err)
	}
}

func each(t *testing.T, f func(t *testing.T, a api)) {
	t.Parallel()
	for _, a := range apis() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			f(t, a)
		})
	}
}

// TestReference: an event names an operation by a reference that its record keeps.
func TestReference(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c, _, h := a.client(t, nil)
		a.lose(t, c, "k", "o1")
		a.lose(t, c, "other", "o2")
		body, header := a.signed(t, a.event("o1"))
		if code := deliver(t, h, header, body); code != http.StatusOK {
			t.Errorf("answered %d, want 200", code)
		}
		if rec := settled(t, c, "k"); rec.Evidence != nil && rec.Evidence.By != a.keep {
			t.Errorf("by %q, want %q", rec.Evidence.By, a.keep)
		}
		if rec := clienttest.Lookup(t, c, "other"); rec.State.Final() || rec.Evidence != nil {
			t.Errorf("the other one is %v", rec.State)
		}
	})
}

// TestReferencesThatProveNothing: a reference that two operations have, or that a record does not keep, proves nothing.
func TestReferencesThatProveNothing(t *testing.T) {
	for name, row := range map[string]struct {
		config func(*oncehttp.Config)
		before func(t *testing.T, a *api, c *oncehttp.Client)
		event  func(string) string
	}{
		"two operations": {before: func(t *testing.T, a *api, c *oncehttp.Client) { a.lose(t, c, "l", "o1") }},
		"another has ended": {before: func(t *testing.T, a *api, c *oncehttp.Client) {
			a.lose(t, c, "l", "o1")
			clienttest.Absent(t, c, "l")
		}},
		"another was swept": {before: func(t *testing.T, a *api, c *oncehttp.Client) {
			a.lose(t, c, "l", "o1")
			clienttest.Absent(t, c, "l")
			_, err := c.Prune(t.Context(), oncehttp.Keeping{KeepAnswer: -1})
			clienttest.Must(t, err)
		}},
		"it is not kept":    {config: func(cfg *oncehttp.Config) { cfg.KeepFields = nil }},
		"another reference": {event: func(s string) string { return strings.Replace(s, `"o1"`, `"O1"`, 1) }},
		"an empty one":      {event: func(s string) string { return strings.Replace(s, `"o1"`, `""`, 1) }},
		"none":              {event: func(s string) string { return strings.Replace(s, `"o1"`, `null`, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, a api) {
				c, events, h := a.client(t, row.config)
				a.lose(t, c, "k", "o1")
				if row.before != nil {
					row.before(t, &a, c)
				}
				event := a.event("o1")
				if row.event != nil {
					event = row.event(event)
				}
				body, header := a.signed(t, event)
				if code := deliver(t, h, header, body); code != http.StatusOK || len(events.Of(oncehttp.EventUnproved)) == 0 {
					t.Errorf("answered %d, events %v; want 200 and one", code, events.Of(oncehttp.EventUnproved))
				}
				unchanged(t, c)
			})
		})
	}
}

// TestSweptWithoutItsReference: a reference proves nothing while a record at the same endpoint may have had it, and its request is gone.
func TestSweptWithoutItsReference(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		j := memory.New()
		c, _, h := a.client(t, func(cfg *oncehttp.Config) { cfg.Journal, cfg.KeepFields = j, nil })
		a.lose(t, c, "l", "o1")
		clienttest.Absent(t, c, "l")
		_, err := c.Prune(t.Context(), oncehttp.Keeping{KeepAnswer: -1})
		clienttest.Must(t, err)
		later, _, _ := a.client(t, func(cfg *oncehttp.Config) { cfg.Journal = j })
		a.lose(t, later, "k", "o1")
		body, header := a.signed(t, a.event("o1"))
		if code := deliver(t, h, header, body); code != http.StatusOK {
			t.Errorf("answered %d, want 200", code)
		}
		unchanged(t, c)
	})
}

// TestSignedFieldsOnly: of an event with signed fields nothing else counts, and no other item has its signature.
func TestSignedFieldsOnly(t *testing.T) {
	t.Parallel()
	a := apis()[1]
	for name, row := range map[string]struct {
		change func(string) string
		code   int
	}{
		"another reference": {func(s string) string { return strings.Replace(s, `"o2"`, `"o1"`, 1) }, http.StatusBadRequest},
		"another success":   {func(s string) string { return strings.Replace(s, `"success":"true"`, `"success":"false"`, 1) }, http.StatusBadRequest},
		"a list for a text": {func(s string) string { return strings.Replace(s, `"o2"`, `["o1"]`, 1) }, http.StatusBadRequest},
		"no signature":      {func(s string) string { return strings.Replace(s, `"hmacSignature"`, `"HmacSignature"`, 1) }, http.StatusBadRequest},
		"the environment":   {func(s string) string { return strings.Replace(s, `"live":"true"`, `"live":"false"`, 1) }, http.StatusOK},
		"two members": {func(s string) string {
			return strings.Replace(s, `"pspReference"`, `"merchantReference":"o1","pspReference"`, 1)
		}, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, h := a.client(t, nil)
			a.lose(t, c, "k", "o1")
			a.lose(t, c, "l", "o2")
			body, header := a.signed(t, a.event("o2"))
			if code := deliver(t, h, header, row.change(body)); code != row.code {
				t.Errorf("answered %d, want %d", code, row.code)
			}
			for _, key := range []oncehttp.Key{"k", "l"} {
				if rec := clienttest.Lookup(t, c, key); rec.Evidence != nil {
					t.Errorf("%s has evidence", key)
				}
			}
		})
	}
}

// TestColonInASignedField: other values would have the same signature, so that the event proves nothing.
func TestColonInASignedField(t *testing.T) {
	t.Parallel()
	a := apis()[1]
	c, events, h := a.client(t, nil)
	a.lose(t, c, "k", "o1")
	body, header := a.signed(t, strings.Replace(strings.Replace(a.event("o1"), `"o1"`, `"x:o1"`, 1), `"Shop"`, `"Sh:op"`, 1))
	if code := deliver(t, h, header, body); code != http.StatusOK || len(events.Of(oncehttp.EventUnproved)) != 1 {
		t.Errorf("answered %d, want 200, and one event", code)
	}
	unchanged(t, c)
}

// TestAddressIsSigned: an event for another address has another signature.
func TestAddressIsSigned(t *testing.T) {
	t.Parallel()
	a := apis()[0]
	c, _, h := a.client(t, nil)
	a.lose(t, c, "k", "o1")
	body := a.event("o1")
	if code := deliver(t, h, scheme(t, "square").Sign([]byte(secret), address+"/", time.Now(), []byte(body)), body); code != http.StatusBadRequest {
		t.Errorf("answered %d, want 400", code)
	}
	unchanged(t, c)
}

// TestReferenceInAnotherBody: a reference proves nothing if another operation's request has it, too, although that one does not keep it.
func TestReferenceInAnotherBody(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		j := memory.New()
		c, _, h := a.client(t, func(cfg *oncehttp.Config) { cfg.Journal = j })
		other, _, _ := a.client(t, func(cfg *oncehttp.Config) { cfg.Journal, cfg.KeepFields = j, nil })
		a.lose(t, c, "k", "o1")
		a.lose(t, other, "l", "o1")
		body, header := a.signed(t, a.event("o1"))
		if code := deliver(t, h, header, body); code != http.StatusOK {
			t.Errorf("answered %d, want 200", code)
		}
		unchanged(t, c)
	})
}

// TestUnsignedValues: of an event with signed fields, a profile cannot make another value count.
func TestUnsignedValues(t *testing.T) {
	t.Parallel()
	a := apis()[1]
	for unsigned, happened := range map[string]bool{"/reason": false, "/success": true} {
		c, _, _ := a.client(t, nil)
		prof := clienttest.Named(t, "adyen")
		prof.Webhook.Proofs[0].Where = append(prof.Webhook.Proofs[0].Where, profile.EventValue{Pointer: unsigned, Equals: []string{"true"}})
		h, err := oncehttp.Webhook(c, oncehttp.WebhookConfig{Profile: prof, Secrets: [][]byte{[]byte(a.secret)}})
		clienttest.Must(t, err)
		a.lose(t, c, "k", "o1")
		body, header := a.signed(t, strings.Replace(a.event("o1"), `"success":"true"`, `"success":"true","reason":"true"`, 1))
		if code := deliver(t, h, header, body); code != http.StatusOK {
			t.Errorf("answered %d, want 200", code)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State.Final() != happened {
			t.Errorf("by %s it is %v", unsigned, rec.State)
		}
	}
}
