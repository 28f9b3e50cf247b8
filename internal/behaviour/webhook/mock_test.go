package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// toHandler is a transport to a handler in this process, once there is one.
type toHandler struct{ h atomic.Pointer[http.Handler] }

// RoundTrip implements http.RoundTripper.
func (t *toHandler) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	(*t.h.Load()).ServeHTTP(w, req)
	return w.Result(), nil
}

// takesAll is an API that does whatever it is asked.
func takesAll(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":"ch_1"}`)
}

// TestMockSendsEvents: the mock acts, and its answer is lost. Its event comes as an API's does: late, twice, out of order, forged, or of the other
// environment. Only a true one settles the operation, and there is one effect.
func TestMockSendsEvents(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		script   []mockserver.EventFault
		happened [2]bool // the operations k and l
	}{
		"in time":               {nil, [2]bool{true, true}},
		"late":                  {[]mockserver.EventFault{mockserver.EventLate}, [2]bool{true, true}},
		"twice":                 {[]mockserver.EventFault{mockserver.EventTwice, mockserver.EventTwice}, [2]bool{true, true}},
		"out of order":          {[]mockserver.EventFault{mockserver.EventAfter}, [2]bool{true, true}},
		"forged before":         {[]mockserver.EventFault{mockserver.EventForged}, [2]bool{true, true}},
		"only forged":           {[]mockserver.EventFault{mockserver.EventFalse}, [2]bool{false, true}},
		"the other environment": {[]mockserver.EventFault{mockserver.EventOther}, [2]bool{false, true}},
		"dropped":               {[]mockserver.EventFault{mockserver.EventDropped}, [2]bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, s enginetest.Shared) {
				to := &toHandler{}
				mock, wire := servertest.Till(t, mockserver.Config{
					Profile: profile.StripeV1(), Handler: http.HandlerFunc(takesAll), Script: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.DropAfter}},
					Webhooks: &mockserver.Webhooks{URL: "http://127.0.0.1/webhooks", Secret: secret, Script: row.script, Transport: to},
				})
				c, _ := clienttest.New(t, wire, clienttest.On(s.Open(), stripe))
				h := handler(t, c, nil)
				to.h.Store(&h)
				send := func(key oncehttp.Key) {
					req := clienttest.Request(t, http.MethodPost, "http://mock.test/v1/charges", "amount=100&currency=eur")
					req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					_, _ = c.DoKey(req, key) // lost, unless the event was faster
				}
				send("k")
				send("l")
				for i, key := range []oncehttp.Key{"k", "l"} {
					happened := func() bool {
						rec := clienttest.Lookup(t, c, key)
						if rec.State == persist.StatePending && rec.Evidence != nil { // it came just as its call ended: the next pass settles it
							clienttest.Resume(t, c)
							rec = clienttest.Lookup(t, c, key)
						}
						return rec.State == persist.StateSettled && rec.Effect == persist.EffectHappened && rec.Evidence != nil
					}
					if !s.Await(time.Second, func() bool { return happened() == row.happened[i] }) {
						rec := clienttest.Lookup(t, c, key)
						t.Errorf("%s is %v, %q, evidence %v; answers %v", key, rec.State, rec.Effect, rec.Evidence, mock.EventAnswers())
					}
				}
				for i, key := range []oncehttp.Key{"k", "l"} { // once more, after all events
					if rec := clienttest.Lookup(t, c, key); rec.State.Final() != row.happened[i] {
						t.Errorf("%s is %v", key, rec.State)
					}
				}
				if n := servertest.Effects(mock); n != 2 {
					t.Errorf("%d effects, want 2", n)
				}
			})
		})
	}
}

// TestEachAPI: the mock of each API with listed proofs signs events that its handler takes, in code of its own.
func TestEachAPI(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c, _, h := a.client(t, nil)
		to := &toHandler{}
		to.h.Store(&h)
		w := &mockserver.Webhooks{URL: address, Secret: a.secret, Transport: to, Merchant: a.merchant}
		if len(a.references) > 0 {
			w.Reference = profile.EventField{Event: a.references[0].Event, Request: a.references[0].Request}
		}
		mock := mockserver.New(mockserver.Config{Profile: clienttest.Named(t, a.name), Handler: http.HandlerFunc(takesAll), Webhooks: w})
		defer mock.Close()
		a.lose(t, c, "k", "o1")
		req := clienttest.Request(t, http.MethodPost, "http://mock.test"+a.path, a.request("o1"))
		req.Header.Set("Idempotency-Key", "k")
		mock.ServeHTTP(httptest.NewRecorder(), req)
		for range 500 {
			if clienttest.Lookup(t, c, "k").State.Final() {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		settled(t, c, "k")
	})
}
