package redrive_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"net/http/httptest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/sign"
)

// enqueueCharge begins a charge, sent by a pass.
func enqueueCharge(t *testing.T, c *oncehttp.Client, key oncehttp.Key, header ...string) {
	t.Helper()
	req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	clienttest.Must(t, c.Enqueue(req, key))
}

// charged delivers Stripe's event of a charge with the key.
func charged(t *testing.T, c *oncehttp.Client, key string) {
	t.Helper()
	s, _ := sign.WebhookOf("stripe")
	h, err := oncehttp.Webhook(c, oncehttp.WebhookConfig{Secrets: [][]byte{[]byte("s")}, Profile: profile.StripeV1()})
	clienttest.Must(t, err)
	body := `{"id":"evt_1","type":"charge.succeeded","livemode":true,"created":` + strconv.FormatInt(time.Now().Unix(), 10) +
		`,"request":{"idempotency_key":"` + key + `"},"data":{"object":{"status":"succeeded","amount":100,"currency":"eur"}}}`
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	req.Header = s.Sign([]byte("s"), "", time.Now(), []byte(body))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusOK {
		t.Fatalf("answered %d", w.Code)
	}
}

// TestContradictedPredecessor: an event says that a refused operation took effect, after its successor was begun, or sent in vain. The successor is sent no more: it is
// held, with a reason of its own, on every journal. A person settles it.
func TestContradictedPredecessor(t *testing.T) {
	t.Parallel()
	stripe := func(cfg *oncehttp.Config) { cfg.Profile, cfg.Retry.MaxAttempts = profile.StripeV1(), 1 }
	for name, sent := range map[string]bool{"before its first send": false, "after a lost send": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
				var events clienttest.Events
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: `{"error":{"type":"card_error"}}`}, {Err: wiretest.ErrLost}, {Status: 200, Body: `{"id":"ch_2"}`}}}
				c, _ := clienttest.New(t, w, clienttest.On(s.Open(), stripe, func(cfg *oncehttp.Config) { cfg.Observe = events.Observe }))
				enqueueCharge(t, c, "k")
				clienttest.Resume(t, c)
				if _, err := c.Redrive(t.Context(), "k"); err != nil {
					t.Fatal(err)
				}
				if sent {
					clienttest.Resume(t, c)
					s.FallDue(t)
				}
				before := w.Count()
				charged(t, c, "k")
				if n := len(events.Of(oncehttp.EventContradicted)); n != 1 {
					t.Fatalf("%d events contradicted, want 1", n)
				}
				clienttest.Resume(t, c)
				rec := clienttest.Lookup(t, c, "k:gen=2")
				if rec.State != persist.StateHeld || rec.HoldReason != persist.HoldPredecessor || w.Count() != before {
					t.Errorf("%v %q after %d sends, want held (predecessor) after %d", rec.State, rec.HoldReason, w.Count(), before)
				}
				clienttest.Resume(t, c)
				if err := c.Abandon(t.Context(), "k:gen=2"); err != nil || w.Count() != before {
					t.Errorf("abandoned: %v, after %d sends", err, w.Count())
				}
			})
		})
	}
}

// TestContradictedBetween: of three tries begun in each other's place none had an effect, and an event proves the second one. A call with the key of the first is told of that
// one, and not of the refusal of its own. (Invariants 1, 54 and 56.)
func TestContradictedBetween(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, nil, cardError, cardError)
		f.enqueue("k")
		f.redriven("k")
		clienttest.Resume(t, f.Client)
		f.redriven("k:gen=2")
		f.absent("k:gen=3")
		charged(t, f.Client, "k:gen=2")
		for how, err := range map[string]error{"Do": f.do(f.Client, "k"), "Enqueue": f.Enqueue(charge(t), "k")} {
			var e *oncehttp.Error
			if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrFinal) || e.Effect() != persist.EffectUnknown || e.Key != "k:gen=2" {
				t.Errorf("%s: %v, want the unknown effect of the second one", how, err)
			}
		}
		f.sends(2)
	})
}
