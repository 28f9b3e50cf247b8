package main

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v85"

	"github.com/oncehttp/oncehttp"
)

// intend records a payment as an intent, durably, and sends nothing: Capture takes the request that the SDK makes, and Run or Resume sends it. For a
// transaction of the caller's own, give the captured request to client.Prepare, and the record to postgres.Begin or mysql.Begin.
func intend(ctx context.Context, client *oncehttp.Client, url, secret string, key oncehttp.Key, params *stripe.PaymentIntentCreateParams) error {
	req, err := client.Capture(ctx, key, func(hc *http.Client) error {
		_, err := newStripe(hc, url, secret).V1PaymentIntents.Create(ctx, params)
		return err // ErrCaptured, or the SDK's own error before a request
	})
	if err != nil {
		return err
	}
	return client.Enqueue(req, key)
}
