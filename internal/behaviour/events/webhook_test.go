package events_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/sign"
)

// charges sets a profile with events, and one attempt.
func charges(cfg *oncehttp.Config) {
	cfg.Profile = profile.StripeV1()
	cfg.Retry.MaxAttempts = 1
}

// charge sends a charge under "k" that gets no answer, and forgets the events.
func (s *stage) charge() {
	_, _ = s.c.DoKey(clienttest.Request(s.t, http.MethodPost, "https://api.example.com/v1/charges", "amount=1"), "k")
	s.forget()
}

// charging is charge with an event before the end of the call.
func (s *stage) charging() {
	s.c, _ = clienttest.New(s.t, wiretest.Func(func(req *http.Request) (*http.Response, error) {
		wiretest.HandedOver(req)
		s.post("k")
		return nil, wiretest.ErrLost
	}), func(cfg *oncehttp.Config) {
		charges(cfg)
		cfg.Journal, cfg.Observe = s.j, s.heard.Observe
	})
	_, _ = s.c.DoKey(clienttest.Request(s.t, http.MethodPost, "https://api.example.com/v1/charges", "amount=1"), "k")
}

// post sends an event of a charge under a key.
func (s *stage) post(key string) {
	scheme, _ := sign.WebhookOf("stripe")
	h, err := oncehttp.Webhook(s.c, oncehttp.WebhookConfig{Secrets: [][]byte{[]byte("s")}})
	s.must(err)
	body := `{"type":"charge.succeeded","livemode":true,"created":` + strconv.FormatInt(time.Now().Unix(), 10) + `,"request":{"idempotency_key":"` + key + `"},"data":{"object":{"status":"succeeded"}}}`
	req := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/", strings.NewReader(body))
	req.Header = scheme.Sign([]byte("s"), "", time.Now(), []byte(body))
	h.ServeHTTP(httptest.NewRecorder(), req)
}
