package main

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// authorized gives a client the secret, as a Resume needs it.
func authorized(c *oncehttp.Config) {
	c.Origins = []string{"http://127.0.0.1:*"}
	c.Authorize = func(req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+secret)
		return nil
	}
}

// A call of the SDK becomes an intent: nothing is sent before a Resume, and then with our key, once, and with the SDK's bytes and
// secret. The SDK's own retries, which are on here, get the same error for the same operation.
func testCaptured(t *testing.T, target string) {
	p := newProxy(t, target, 0)
	b := open(t, t.TempDir()+"/stripe.db", p.url, secret, authorized)
	key := oncehttp.NewScope("order").Key("u1", "o5")
	calls := 0
	req, err := b.once.Capture(t.Context(), key, func(hc *http.Client) error {
		counted := &http.Client{Transport: counting{hc.Transport, &calls}}
		sc := stripe.NewClient(secret, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
			HTTPClient: counted, MaxNetworkRetries: stripe.Int64(1), URL: stripe.String(p.url),
			LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
		})))
		_, err := sc.V1PaymentIntents.Create(t.Context(), payment(""))
		if whole := (*url.Error)(nil); !errors.Is(err, oncehttp.ErrCaptured) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &whole) {
			t.Errorf("the SDK returned a %T: %v; want ErrCaptured", err, err)
		}
		return err
	})
	if err != nil || req.Header.Get("Idempotency-Key") != "" || calls != 2 {
		t.Fatalf("%v, %d calls of the SDK, want 2", err, calls)
	}
	if err := b.once.Enqueue(req, key); err != nil {
		t.Fatal(err)
	}
	if sent := p.received(); len(sent) != 0 {
		t.Fatalf("%d sends before a Resume", len(sent))
	}
	if err := intend(t.Context(), b.once, p.url, secret, key, payment("")); err != nil { // once more: the same operation
		t.Fatal(err)
	}
	for res, err := range b.once.Resume(t.Context()) {
		if err != nil || res.Key != key || res.Outcome != oncehttp.OutcomeConfirmed {
			t.Errorf("%+v, %v", res, err)
		}
	}
	sent := p.received()
	if len(sent) != 1 {
		t.Fatalf("%d sends, want 1", len(sent))
	}
	got, body := parse(t, sent[0])
	if got.Header.Get("Idempotency-Key") != string(key) || got.Header.Get("Authorization") != "Bearer "+secret || body != "amount=4200&currency=eur" {
		t.Errorf("sent\n%s", sent[0])
	}
	if rec, err := b.once.Lookup(t.Context(), key); err != nil || rec.State != persist.StateConfirmed || rec.Sends != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
}

// counting counts the requests of an SDK.
type counting struct {
	http.RoundTripper
	n *int
}

func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	*c.n++
	return c.RoundTripper.RoundTrip(req)
}
