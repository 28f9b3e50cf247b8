package oncehttp

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/profile"
)

// Transport returns the client as an http.RoundTripper.
//
// A request is an operation if it is declared one. GET, HEAD and OPTIONS never are. The
// declarations:
//
//   - a key at the place of the profile; in a body only if that is JSON, or a form, as the
//     profile wants, of a known length of at most Config.MaxRequestBytes;
//   - Config.Operation ([Writes]), or a method of Config.Methods if that is set;
//   - the context of [ContextWithKey], for the one request named by Config.Operation or,
//     without Operation, by Writes: a token renewed inside the call is no operation;
//   - a key from Config.NewKey for a POST or PATCH, if Methods is not set (see [ErrNoKey]);
//   - an endpoint of a profile of the Config, or of Config.KeyHonoured, if Methods is not set.
//
// With Config.RequireKey and without Operation each request of Config.Methods is an
// operation, and is refused without a key. A panic of Operation or NewKey goes on in the
// caller, and nothing was sent.
//
// All other requests are net/http: Config.Transport gets the caller's request, and the
// caller gets its result. Only the credentials of Config.Authorize are added, at
// Config.Origins. Such a request is not protected: sent twice, it takes effect twice.
//
// Callers see plain HTTP: after the last attempt a 409, 429 or 5xx comes back as a
// response. After an attempt that may have taken effect, an answer comes back only if it
// settles the operation or claims nothing (409, 5xx). Any other answer (a 401, a 429, a
// redirect) would tell its caller that nothing happened: it is an error that matches
// ErrOutcomeUnknown, with the answer in Error.Answer. If an answer proves that nothing
// happened, nothing is left pending. After any other failure the operation is held for its
// caller, who has seen the failure and may act on it: the same key goes on, Resume leaves
// the operation alone, and Client.Lookup returns its record. An operation whose process
// died before its answer is resumed.
//
// A 307 or 308 within the origin is followed inside, and Response.Request has the last URL.
// A 303 to its origin is the answer of an operation; an http.Client follows it with a GET,
// without the key. Any other redirect is no answer: the operation is held, and the error
// matches ErrRedirected. An http.Client may make another request of an answer. Unless that
// is a GET or HEAD to the same origin, it is an error that matches ErrRedirected and has the
// operation's key, since a second POST would take effect twice. With ErrFinal if the answer
// was final, else with ErrOutcomeUnknown.
//
// For an operation Transport is not quite an http.RoundTripper as net/http defines it: it
// waits, and sends again. The request's context ends the call, and so does Request.Cancel.
func (c *Client) Transport() http.RoundTripper {
	return roundTripper{c.inner().Transport()}
}

// roundTripper is a Transport with the errors of this package.
type roundTripper struct{ run.RoundTripper }

// RoundTrip sends req as an operation if it is declared one, else as net/http does.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	return resp, errorOf(err)
}

// capturing is the Transport of a Capture, with the errors of this package.
type capturing struct{ *run.Capturing }

// RoundTrip keeps req if it is an operation, else sends it.
func (t capturing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.Capturing.RoundTrip(req)
	return resp, errorOf(err)
}

// StandardClient returns an *http.Client over Transport, for generated SDKs. It follows
// redirects as http.Client does; for the answer of an operation only a 303 to its own origin
// (see Transport). Switch off the SDK's own retries (stripe-go: MaxNetworkRetries 0), since
// two loops multiply the attempts.
//
// An SDK with a new key for each call (stripe-go without SetIdempotencyKey) makes two calls
// two operations; give it keys of the business. An SDK without keys is not protected without
// Config.Operation, or another declaration (see Transport).
//
// Set no Timeout on the client: it would span all attempts and waits, and cut the last.
func (c *Client) StandardClient() *http.Client {
	return &http.Client{Transport: c.Transport()}
}

// Writes is a function for Config.Operation. It names POST and PATCH, except for requests
// without a use for a key:
//
//   - a request for a token: a form, or JSON, with one grant_type of OAuth (authorization_code,
//     client_credentials, password, refresh_token, or one that begins with urn:ietf:);
//   - a GraphQL query: JSON at a path that ends in /graphql, with a document without a mutation;
//   - a stream of events: an Accept with text/event-stream only.
//
// Writes returns false for nil. It reads the body through GetBody. Without GetBody, and in
// every other doubt, it returns true.
func Writes(req *http.Request) bool { return request.Writes(req) }

// WebhookReference is a business reference that the events of an API have.
type WebhookReference struct {
	_ struct{}

	// Event is the JSON pointer to it in an event.
	Event string
	// Request is the pointer to it in a request, one of Config.KeepFields.
	Request string
}

// WebhookConfig has the settings of Webhook.
type WebhookConfig struct {
	_ struct{}

	// Secrets are the secrets of the API's events, each of which may have signed: while one is replaced by another, there
	// are two. Required. They are copied.
	Secrets [][]byte
	// URL is the address of the handler, as the API knows it. Required for an API that signs it (Square).
	URL string
	// Tolerance is how far a signed time may lie behind this machine's clock, and ahead of it. Zero: 5 min. At most
	// sign.WebhookToleranceMax, 1 h. An API that signs no time has no bound.
	Tolerance time.Duration
	// Profile says which events prove something (profile.Webhook). Zero: Config.Profile.
	Profile *profile.Profile
	// Test: the operations of the client are of the API's test environment, and events of the other one prove nothing.
	Test bool
	// Account is the merchant of the operations, where the API sends the events of all merchants of an application under one
	// secret: Square's merchant_id, GoCardless's organisation. An event of another one proves nothing, and neither does one
	// that names a merchant where Account does not. Required for Square; empty for a GoCardless account without partners,
	// and for an API whose events name no merchant. Config.Account is something else.
	Account string
	// Origins are the origins of the operations, as in Record.Origin; an event proves nothing about any other one. Set it if the
	// journal has operations of several environments of one API. Zero: all.
	Origins []string
	// References are business references beside those of the profile. Zero: none.
	References []WebhookReference
	// MaxBytes bounds a body. Zero: 1 MiB. At most 16 MiB.
	MaxBytes int64
	// ReadTimeout bounds the time for reading a body, if the server can bound it. Zero: 10 s. At most 1 min.
	ReadTimeout time.Duration
}

// Webhook returns a handler for the events of an API. They are a second witness. An event proves that an operation
// happened if it is signed, the profile lists its type as proof, and it names exactly one operation that was, or may have
// been, sent. The first send must be at most an hour after the event, by their two clocks.
// The operation is then settled as happened, by this client or by whoever runs it, and the event is kept in
// Record.Evidence. All other events prove nothing, and no event proves that an operation did not happen. See
// docs/webhooks.md for all conditions.
//
// The handler answers 200 once an event is durable, or proves nothing; 400 for a bad signature; 503 if the journal
// fails, and then the API sends the event again. Config.Observe gets EventWitnessed, EventContradicted and EventUnproved.
// Errors: ErrConfig, for a nil client, without a secret, or a profile without such events.
func Webhook(client *Client, c WebhookConfig) (http.Handler, error) {
	h, err := client.inner().Webhook(run.WebhookConfig{
		Secrets: c.Secrets, URL: c.URL, Tolerance: c.Tolerance, Profile: c.Profile, Test: c.Test, Account: c.Account, Origins: c.Origins, References: referencesOf(c.References),
		MaxBytes: c.MaxBytes, ReadTime: c.ReadTimeout,
	})
	if err != nil {
		return nil, errorOf(err)
	}
	return h, nil
}

// referencesOf converts references for package run.
func referencesOf(list []WebhookReference) []profile.EventField {
	var all []profile.EventField
	for _, r := range list {
		all = append(all, profile.EventField{Event: r.Event, Request: r.Request})
	}
	return all
}
