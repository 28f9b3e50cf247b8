// Sdk is stripe-go on top of oncehttp: every POST of the SDK is in the journal,
// with the SDK's own key, before it is sent. It starts stripe-mock as the server.
// capture.go makes an intent of a call; openai.go and slack.go have the lines for an
// SDK made by Stainless, and for one of an API without keys.
//
//	cd examples/sdk && go run .
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/stripe/stripe-go/v85"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/profile"
)

// main runs the example with its journal in a temporary folder, until it ends or is interrupted.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "sdk-")
	if err == nil {
		err = errors.Join(run(ctx, os.Stdout, dir), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

// config returns the Config for Stripe. A service that resumes after a crash sets
// Authorize, too, as no journal keeps the secret key.
func config() oncehttp.Config { return oncehttp.Config{Profile: profile.StripeV1()} }

// newStripe returns Stripe's SDK: it sends with hc and leaves the retries to it. Leave URL out for the real API.
func newStripe(hc *http.Client, url, secret string) *stripe.Client {
	return stripe.NewClient(secret, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		HTTPClient:        hc,
		MaxNetworkRetries: stripe.Int64(0),
		URL:               stripe.String(url),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // its errors are returned, too
	})))
}

// run makes a payment, reads it, and makes a wrong one. dir gets the journal and stripe-mock.
func run(ctx context.Context, out io.Writer, dir string) error {
	mock, err := startMock(ctx, dir)
	if err != nil {
		return err
	}
	defer mock.stop()
	client, err := oncehttp.Open(filepath.Join(dir, "stripe.db"), config())
	if err != nil {
		return err
	}
	defer client.Close()
	sc := newStripe(client.StandardClient(), mock.url, "sk_test_123")

	params := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(4200), Currency: stripe.String("eur")}
	// Without it the SDK makes a new key for each call, and a repeated call after an
	// error is a second payment.
	params.SetIdempotencyKey(string(oncehttp.NewScope("order").Key("uid123", "order456")))
	intent, err := sc.V1PaymentIntents.Create(ctx, params)
	if err != nil {
		return err
	}
	record, err := client.Lookup(ctx, oncehttp.Key(intent.LastResponse.IdempotencyKey))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "created %s; in the journal %s is %v after %d sends\n", intent.ID, record.Key, record.State, record.Sends)

	again, err := sc.V1PaymentIntents.Retrieve(ctx, intent.ID, nil) // a GET streams through, without a record
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "retrieved", again.ID)

	_, err = sc.V1PaymentIntents.Create(ctx, &stripe.PaymentIntentCreateParams{}) // neither amount nor currency
	if refused := (*stripe.Error)(nil); errors.As(err, &refused) {
		fmt.Fprintf(out, "an error is the SDK's own: %T, %d %s\n", refused, refused.HTTPStatusCode, refused.Type)
		return nil
	}
	return fmt.Errorf("an incomplete payment was not refused, but: %w", err)
}
