package clienttest

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Together makes two changes of a Config.
func Together(one, other func(*oncehttp.Config)) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		one(cfg)
		other(cfg)
	}
}

// WithProfile returns a change of a Config: its profile becomes profile.Draft07 with the name name and the changes of change.
func WithProfile(name string, change func(*profile.Profile)) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Profile = profile.Draft07()
		cfg.Profile.Name = name
		change(cfg.Profile)
	}
}

// OneAttempt lets a call make one attempt.
func OneAttempt(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 }

// Quick returns a policy for tests over loopback, in real time: with this number of attempts, and pauses of a nanosecond to a millisecond.
func Quick(attempts int) oncehttp.Policy {
	return oncehttp.Policy{MaxAttempts: attempts, MinDelay: 1, MaxDelay: time.Millisecond}
}

// Unhurried lets a call wait for hours if the server asks for it with Retry-After. Its own pauses between attempts are as short as can be (a nanosecond).
func Unhurried(cfg *oncehttp.Config) {
	cfg.Retry = oncehttp.Policy{MinDelay: 1, MaxDelay: 1, MaxRetryAfter: 2 * time.Hour, MaxElapsed: 24 * time.Hour}
}

// AddsNothing gives a client an Authorize that adds no credentials. A client with an Authorize needs Origins: clienttest.New gives it those of the tests.
func AddsNothing(cfg *oncehttp.Config) { cfg.Authorize = func(*http.Request) error { return nil } }

// FromOrder configures a client that makes the key of a request from an order's id in its body.
func FromOrder(cfg *oncehttp.Config) {
	cfg.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/order/id")
}

// OrderSeven is an order for FromOrder.
const OrderSeven = `{"order":{"id":7},"amount":100}`

// TakesNoKey configures a client for an API without keys.
func TakesNoKey(cfg *oncehttp.Config) {
	cfg.Profile = profile.None()
	cfg.Profile.NotActed = profile.NotActed{Again: []int{429}} // of no effect: without keys no answer makes the client send again
	cfg.Profile.ShouldRetry = profile.ShouldRetry{Header: "X-Should-Retry", Yes: "true"}
}

// Protected configures a client for an API with keys on POST, by a profile that the user has chosen for it (not the default one, for an unknown API).
func Protected(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }

// StoresErrors sets the default profile with one more rule of the API: the API stores its errors in problem+json under the key.
func StoresErrors(cfg *oncehttp.Config) {
	cfg.Profile = profile.Draft07()
	cfg.Profile.Stored.Client = cfg.Profile.KeptErrors()
}

// SecretHeaders returns a change of a client's Config: these headers have credentials, and are kept out of the journal.
func SecretHeaders(names ...string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.SecretHeaders = names }
}

// SecretParameters names query parameters with credentials.
func SecretParameters(names ...string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.SecretParameters = names }
}

// Canary is a secret. It must appear nowhere.
const Canary = "c4n4ry-7f3a"

// OtherOrigin is none of Origins.
const OtherOrigin = "https://elsewhere.example"

// Unknown is a state of a later version.
const Unknown = persist.State(200)
