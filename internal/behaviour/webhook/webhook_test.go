package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/sign"
)

const secret = "whsec_of_the_tests"

// scheme returns the scheme of this name.
func scheme(t *testing.T, name string) sign.Webhook {
	t.Helper()
	s, ok := sign.WebhookOf(name)
	if !ok {
		t.Fatalf("no scheme %s", name)
	}
	return s
}

// handler returns the handler of a client for Stripe's events.
func handler(t *testing.T, c *oncehttp.Client, change func(*oncehttp.WebhookConfig)) http.Handler {
	t.Helper()
	cfg := oncehttp.WebhookConfig{Secrets: [][]byte{[]byte(secret)}, Profile: profile.StripeV1()}
	if change != nil {
		change(&cfg)
	}
	h, err := oncehttp.Webhook(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// stripe sets the profile, with one attempt a call.
func stripe(cfg *oncehttp.Config) {
	cfg.Profile = profile.StripeV1()
	cfg.Retry.MaxAttempts = 1
}

// charge returns a request for a charge.
func charge(t *testing.T) *http.Request {
	t.Helper()
	req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur&metadata[order]=o1")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}

// charged returns Stripe's event of a charge that the key named.
func charged(key string) string {
	return fmt.Sprintf(`{"id":"evt_1","object":"event","type":"charge.succeeded","livemode":true,"created":%d,`+
		`"request":{"id":"req_1","idempotency_key":%q},"data":{"object":{"id":"ch_1","object":"charge","status":"succeeded","amount":100,"currency":"eur","metadata":{"order":"o1"}}}}`, time.Now().Unix(), key)
}

// post sends an event with a good signature, and returns the status of the answer.
func post(t *testing.T, h http.Handler, body string) int {
	t.Helper()
	s := scheme(t, "stripe")
	return deliver(t, h, s.Sign([]byte(secret), "", time.Now(), []byte(body)), body)
}

// deliver sends a body with a header.
func deliver(t *testing.T, h http.Handler, header http.Header, body string) int {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks", strings.NewReader(body))
	req.Header = header.Clone()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Code
}

// inDoubt lets a charge get no answer.
func inDoubt(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
	t.Helper()
	if _, err := c.DoKey(charge(t), key); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatalf("%v, want ErrOutcomeUnknown", err)
	}
}

// settled fails unless the operation is settled as happened, with evidence.
func settled(t *testing.T, c *oncehttp.Client, key oncehttp.Key) persist.Record {
	t.Helper()
	rec := clienttest.Lookup(t, c, key)
	if rec.State != persist.StateSettled || rec.Effect != persist.EffectHappened || rec.Evidence == nil {
		t.Errorf("state %v, effect %q, evidence %v; want settled as happened, with evidence", rec.State, rec.Effect, rec.Evidence)
	}
	return rec
}

// TestEventSettles: a signed event of a charge in doubt settles it as happened, on every journal. Nothing is sent after it.
func TestEventSettles(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		events := &clienttest.Events{}
		c, _ := clienttest.New(t, w, clienttest.On(s.Open(), stripe, func(cfg *oncehttp.Config) { cfg.Observe = events.Observe }))
		h := handler(t, c, nil)
		inDoubt(t, c, "k")
		if code := post(t, h, charged("k")); code != http.StatusOK {
			t.Fatalf("answered %d, want 200", code)
		}
		rec := settled(t, c, "k")
		if e := rec.Evidence; e.Event != "evt_1" || e.Type != "charge.succeeded" || e.By != "key" || e.Scheme != "stripe" || len(e.Digest) != 32 {
			t.Errorf("evidence %+v", e)
		}
		if n := len(events.Of(oncehttp.EventWitnessed)); n != 1 {
			t.Errorf("%d events witnessed, want 1", n)
		}
		_, err := c.DoKey(charge(t), "k")
		if !errors.Is(err, oncehttp.ErrFinal) || !errors.Is(err, oncehttp.ErrSettled) || effect(err) != persist.EffectHappened {
			t.Errorf("Do after it: %v, want ErrFinal and ErrSettled, effect happened", err)
		}
		if code := post(t, h, charged("k")); code != http.StatusOK {
			t.Errorf("the same event again: %d, want 200", code)
		}
		if n := w.Count(); n != 1 {
			t.Errorf("%d sends, want 1", n)
		}
	})
}

// effect returns the effect named by an error.
func effect(err error) persist.Effect {
	if e := (*oncehttp.Error)(nil); errors.As(err, &e) {
		return e.Effect()
	}
	return "no *Error"
}

// holding is a transport that waits with its answer.
type holding struct {
	arrived, answer chan struct{}
	reply           func(*http.Request) (*http.Response, error)
}

func newHolding(reply func(*http.Request) (*http.Response, error)) *holding {
	return &holding{make(chan struct{}), make(chan struct{}), reply}
}

// RoundTrip implements http.RoundTripper.
func (h *holding) RoundTrip(req *http.Request) (*http.Response, error) {
	wiretest.HandedOver(req)
	close(h.arrived)
	<-h.answer
	return h.reply(req)
}

// answers returns a reply with this status and JSON.
func answers(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		resp := w.Result()
		resp.Request = req
		return resp, nil
	}
}

// TestEventDuringACall: an event that comes while a call runs the operation is durable at once, and the call heeds it at its end.
func TestEventDuringACall(t *testing.T) {
	t.Parallel()
	lost := func(*http.Request) (*http.Response, error) { return nil, wiretest.ErrLost }
	for name, row := range map[string]struct {
		reply func(*http.Request) (*http.Response, error)
		state persist.State
		is    []error // of the call
	}{
		"lost":     {lost, persist.StateSettled, []error{oncehttp.ErrFinal, oncehttp.ErrSettled}},
		"success":  {answers(200, `{"id":"ch_1"}`), persist.StateConfirmed, nil},
		"refusal":  {answers(402, `{"error":{"type":"card_error"}}`), persist.StateSettled, []error{oncehttp.ErrFinal, oncehttp.ErrSettled}},
		"too busy": {answers(429, `{"error":{}}`), persist.StateSettled, []error{oncehttp.ErrFinal, oncehttp.ErrSettled}},
		"500":      {answers(500, `{"error":{}}`), persist.StateSettled, []error{oncehttp.ErrFinal, oncehttp.ErrSettled}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
				wire := newHolding(row.reply)
				j := s.Open()
				events := &clienttest.Events{}
				c, _ := clienttest.New(t, wire, clienttest.On(j, stripe, func(cfg *oncehttp.Config) { cfg.Observe = events.Observe }))
				h := handler(t, c, nil)
				done := make(chan error, 1)
				go func() {
					_, err := c.DoKey(charge(t), "k")
					done <- err
				}()
				<-wire.arrived
				if code := post(t, h, charged("k")); code != http.StatusOK {
					t.Errorf("answered %d, want 200", code)
				}
				if rec, err := j.Get(t.Context(), persist.ID{Key: "k"}); err != nil || rec.Evidence == nil || rec.State != persist.StatePending {
					t.Errorf("during the call: %v, %v, evidence %v; want pending, with evidence", err, rec.State, rec.Evidence)
				}
				close(wire.answer)
				err := <-done
				if s.Server && name == "refusal" { // the caller has the answer before the record, and somebody is told
					clienttest.Must(t, err)
					clienttest.Must(t, c.Flush(t.Context()))
					rec := clienttest.Lookup(t, c, "k")
					if rec.FinalEffect() != persist.EffectRefused || rec.Evidence == nil || len(events.Of(oncehttp.EventContradicted)) != 1 {
						t.Errorf("%v, %q, evidence %v, %d events; want confirmed, refused, with evidence, one event", rec.State, rec.FinalEffect(), rec.Evidence, len(events.Of(oncehttp.EventContradicted)))
					}
					return
				}
				for _, is := range row.is {
					if !errors.Is(err, is) {
						t.Errorf("the call: %v, want %v", err, is)
					}
				}
				if row.is == nil && err != nil || row.is != nil && effect(err) != persist.EffectHappened {
					t.Errorf("the call: %v, with the effect %q", err, effect(err))
				}
				rec := clienttest.Lookup(t, c, "k")
				if rec.State != row.state || rec.FinalEffect() != persist.EffectHappened || rec.Evidence == nil {
					t.Errorf("after the call: %v, %q, evidence %v; want %v, happened, with evidence", rec.State, rec.FinalEffect(), rec.Evidence, row.state)
				}
			})
		})
	}
}

// TestCrashBeforeTheEvidenceApplies: the process that stores the evidence dies before it settles the operation. A later Resume or Do settles it, and
// sends nothing.
func TestCrashBeforeTheEvidenceApplies(t *testing.T) {
	t.Parallel()
	for name, proceed := range map[string]func(t *testing.T, c *oncehttp.Client){
		"Resume": func(t *testing.T, c *oncehttp.Client) {
			if r := clienttest.Resume(t, c)["k"]; r.Err != nil || r.Result.Effect != persist.EffectHappened {
				t.Errorf("Resume: %+v", r)
			}
		},
		"Do": func(t *testing.T, c *oncehttp.Client) {
			if _, err := c.DoKey(charge(t), "k"); !errors.Is(err, oncehttp.ErrSettled) {
				t.Errorf("Do: %v, want ErrSettled", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				c, _ := clienttest.New(t, w, clienttest.On(s.Open(), stripe))
				inDoubt(t, c, "k")
				j := s.Open()
				dying := &dead{Journal: j}
				one, _ := clienttest.New(t, w, clienttest.On(dying, stripe))
				if code := post(t, handler(t, one, nil), charged("k")); code != http.StatusOK {
					t.Errorf("answered %d, want 200", code)
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || rec.Evidence == nil {
					t.Fatalf("%v, evidence %v; want pending, with evidence", rec.State, rec.Evidence)
				}
				next, _ := clienttest.New(t, w, clienttest.On(s.Open(), stripe))
				proceed(t, next)
				settled(t, next, "k")
				if n := w.Count(); n != 1 {
					t.Errorf("%d sends, want 1", n)
				}
			})
		})
	}
}

// dead is a journal of a process that dies before it ends an operation.
type dead struct{ persist.Journal }

var errDead = errors.New("the process is dead")

// Finish implements persist.Journal.
func (d *dead) Finish(context.Context, persist.Record) error { return errDead }

// Attach implements persist.Journal: another process.
func (d *dead) Attach(create func() any) any { return create() }

// Unwrap returns the journal below.
func (d *dead) Unwrap() persist.Journal { return d.Journal }
