package sign

import "github.com/oncehttp/oncehttp/internal/eventsign"

// Webhook is an API's scheme of signatures for its events: HMAC-SHA256 with a shared secret. It is data; [WebhookOf] returns the known schemes. Its method
// Verifier returns the check of signatures, and its method Sign signs a body as the API does, for tests.
type Webhook = eventsign.Scheme

// WebhookCheck is the receiver's part of a scheme: the secrets, the address of the endpoint, and the tolerance for a signed time.
type WebhookCheck = eventsign.Check

// WebhookToleranceMax bounds the tolerance for a signed time.
const WebhookToleranceMax = eventsign.ToleranceMax

// WebhookOf returns the scheme of this name: adyen, github, gocardless, shopify, square or stripe. ok is false for any other name.
func WebhookOf(name string) (scheme Webhook, ok bool) { return eventsign.Of(name) }
