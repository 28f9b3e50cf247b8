package clients_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-resty/resty/v2"
	"github.com/gojek/heimdall/v7"
	"github.com/gojek/heimdall/v7/httpclient"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/stripe/stripe-go/v85"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// attemptTimeout is what each client waits for an answer, where its users set it.
const attemptTimeout = 10 * time.Second

// peer is a client in Go: it sends one operation, as its users would.
type peer struct {
	name    string
	module  string // whose version is shown; "" for none
	setup   string // in words, for the table
	profile *profile.Profile
	open    func(t *testing.T, transport http.RoundTripper, url string) (send func(reference string))
}

func peers() []peer {
	return []peer{
		{"oncehttp", "", "`Do`, defaults", nil, ours},
		{"oncehttp under stripe-go", "github.com/stripe/stripe-go/v85", "`StandardClient`, its own retries off", profile.StripeV1(), stripeOverOurs},
		{"stripe-go", "github.com/stripe/stripe-go/v85", "defaults (2 retries)", profile.StripeV1(), stripeAlone},
		{"go-retryablehttp", "github.com/hashicorp/go-retryablehttp", "defaults (4 retries)", nil, retryable},
		{"resty", "github.com/go-resty/resty/v2", "3 retries, on errors, 429 and 5xx", nil, restyClient},
		{"failsafe-go", "github.com/failsafe-go/failsafe-go", "`failsafehttp`, default retry policy", nil, failsafe},
		{"heimdall", "github.com/gojek/heimdall/v7", "4 retries, exponential backoff", nil, heimdallClient},
		{"a bare loop", "", "net/http, 5 tries, 100 ms, on errors and 5xx", nil, bareLoop},
	}
}

// post is the request of one operation, with a key that the caller makes once.
func post(t *testing.T, url, reference string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url+"/payments", strings.NewReader(fmt.Sprintf(`{"reference":%q}`, reference)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", string(oncehttp.RandomKey()))
	return req
}

// drain reads an answer as a user does; what is lost there is lost.
func drain(response *http.Response, err error) {
	if err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

func ours(t *testing.T, transport http.RoundTripper, url string) func(string) {
	once, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return func(reference string) {
		req := post(t, url, reference)
		req.Header.Del("Idempotency-Key") // it makes one of its own
		drain(once.Do(req))
	}
}

func bareLoop(t *testing.T, transport http.RoundTripper, url string) func(string) {
	plain := &http.Client{Transport: transport, Timeout: attemptTimeout}
	return func(reference string) {
		req := post(t, url, reference)
		for range 5 {
			again := req.Clone(context.Background())
			again.Body, _ = req.GetBody() // of a strings.Reader: no error
			response, err := plain.Do(again)
			if err == nil {
				drain(response, nil)
				if response.StatusCode < 500 {
					return
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func retryable(t *testing.T, transport http.RoundTripper, url string) func(string) {
	rc := retryablehttp.NewClient()
	rc.Logger = nil
	rc.HTTPClient = &http.Client{Transport: transport, Timeout: attemptTimeout}
	return func(reference string) {
		wrapped, err := retryablehttp.FromRequest(post(t, url, reference))
		if err != nil {
			t.Fatal(err)
		}
		drain(rc.Do(wrapped))
	}
}

func restyClient(t *testing.T, transport http.RoundTripper, url string) func(string) {
	client := resty.New().SetTransport(transport).SetTimeout(attemptTimeout).SetRetryCount(3).SetLogger(silent{}).
		AddRetryCondition(func(r *resty.Response, err error) bool {
			return err != nil || r.StatusCode() == http.StatusTooManyRequests || r.StatusCode() >= 500
		})
	return func(reference string) {
		req := post(t, url, reference)
		_, _ = client.R().SetHeader("Idempotency-Key", req.Header.Get("Idempotency-Key")).SetHeader("Content-Type", "application/json").
			SetBody(fmt.Sprintf(`{"reference":%q}`, reference)).Post(url + "/payments") // what it makes of it, the referee sees
	}
}

// silent is resty's logger.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

func failsafe(t *testing.T, transport http.RoundTripper, url string) func(string) {
	client := &http.Client{Transport: failsafehttp.NewRoundTripper(transport, failsafehttp.NewRetryPolicyBuilder().Build()), Timeout: attemptTimeout}
	return func(reference string) { drain(client.Do(post(t, url, reference))) }
}

func heimdallClient(t *testing.T, transport http.RoundTripper, url string) func(string) {
	backoff := heimdall.NewExponentialBackoff(100*time.Millisecond, 5*time.Second, 2, 50*time.Millisecond)
	client := httpclient.NewClient(
		httpclient.WithHTTPClient(&http.Client{Transport: transport, Timeout: attemptTimeout}),
		httpclient.WithRetryCount(4), httpclient.WithRetrier(heimdall.NewRetrier(backoff)),
	)
	return func(reference string) { drain(client.Do(post(t, url, reference))) }
}

func stripeAlone(t *testing.T, transport http.RoundTripper, url string) func(string) {
	return stripeClient(t, &http.Client{Transport: transport, Timeout: 80 * time.Second}, url, 2)
}

func stripeOverOurs(t *testing.T, transport http.RoundTripper, url string) func(string) {
	once, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: transport, Profile: profile.StripeV1()})
	if err != nil {
		t.Fatal(err)
	}
	return stripeClient(t, once.StandardClient(), url, 0)
}

func stripeClient(t *testing.T, client *http.Client, url string, retries int64) func(string) {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(url), HTTPClient: client, MaxNetworkRetries: stripe.Int64(retries),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, EnableTelemetry: stripe.Bool(false),
	})
	sc := stripe.NewClient("sk_test_123", stripe.WithBackends(&stripe.Backends{API: backend}))
	return func(reference string) {
		params := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(100), Currency: stripe.String("eur")}
		params.AddExtra("reference", reference)                // by which the referee knows an operation
		_, _ = sc.V1PaymentIntents.Create(t.Context(), params) // what it makes of it, the referee sees
	}
}
