package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stripe/stripe-go/v85"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/referee"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// asJSON shows the referee, which knows an operation by a member of a JSON body,
// what stripe-go sends as a form. Nothing else of a request changes.
type asJSON struct{ http.RoundTripper }

func (a asJSON) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost {
		return a.RoundTripper.RoundTrip(req)
	}
	form, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(string(form))
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]string{"reference": values.Get("metadata[reference]"), "form": string(form)})
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.Body, out.GetBody, out.ContentLength = io.NopCloser(bytes.NewReader(body)), nil, int64(len(body))
	out.Header.Set("Content-Type", "application/json")
	return a.RoundTripper.RoundTrip(out)
}

// TestReferee plays the mock's default script to stripe-go, alone and over
// StandardClient, and names the rules that each breaks, as measured. It is in
// virtual time. docs/clients.md has the table.
func TestReferee(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retries int64
		ours    bool
		want    []string
	}{
		"stripe-go, defaults":               {2, false, []string{"answer/final-not-retried", "answer/in-progress-asked-again", "answer/unavailable-asked-again"}},
		"stripe-go over our StandardClient": {0, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				script := referee.DefaultScript()
				judge := referee.New(script)
				server := mockserver.New(mockserver.Config{Referee: judge, Profile: profile.StripeV1()})
				pipe := server.Pipe()
				client := &http.Client{Transport: asJSON{pipe.Transport()}, Timeout: 80 * time.Second}
				if c.ours {
					once, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: asJSON{pipe.Transport()}, Profile: profile.StripeV1()})
					if err != nil {
						t.Fatal(err)
					}
					defer once.Close()
					client = once.StandardClient()
				}
				backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
					URL: stripe.String(pipe.URL), HTTPClient: client, MaxNetworkRetries: stripe.Int64(c.retries),
					LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, EnableTelemetry: stripe.Bool(false),
				})
				sc := stripe.NewClient("sk_test_123", stripe.WithBackends(&stripe.Backends{API: backend}))
				for i := range script.Expect {
					params := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(100), Currency: stripe.String("eur")}
					params.AddMetadata("reference", fmt.Sprintf("order-%d", i))
					_, _ = sc.V1PaymentIntents.Create(t.Context(), params) // what it makes of it, the referee sees
				}
				select {
				case <-judge.Finished():
				case <-time.After(time.Hour):
					t.Error("the referee did not see the end")
				}
				var broken []string
				for _, c := range judge.Report().Cases {
					if c.Verdict == referee.Fail || c.Verdict == referee.Warn {
						broken = append(broken, c.ID)
						t.Logf("%s: %s", c.ID, c.Actual)
					}
				}
				slices.Sort(broken)
				if !slices.Equal(broken, c.want) {
					t.Errorf("broken %q, want %q", broken, c.want)
				}
				if err := server.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
