package servertest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Shop is an API without idempotency keys: an order number is unique, and the second order with it is answered 409.
type Shop struct {
	mu      sync.Mutex
	Orders  []map[string]any
	Effects int
	Gets    int
	Posts   int
	Lose    int  // the number of POSTs to lose the answer of, after their effect
	Hide    bool // lookups find nothing
	Broken  bool // lookups fail
	Forget  bool // for ForgetOrChange
	Change  bool // for ForgetOrChange
}

// RoundTrip implements [http.RoundTripper]. A GET lists orders. Any other method is an order, of which the answer may be lost.
func (s *Shop) RoundTrip(req *http.Request) (*http.Response, error) {
	wiretest.HandedOver(req) // for the client the request may have arrived from now on
	w := httptest.NewRecorder()
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Method == http.MethodGet {
		s.list(w, req)
	} else if lost := s.order(w, req); lost {
		return nil, wiretest.ErrLost
	}
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

// order takes an order, once for each number: any further one with the number gets a 409. lost is true if the answer to a new order must be lost: that of the
// next Lose new orders is.
func (s *Shop) order(w http.ResponseWriter, req *http.Request) (lost bool) {
	s.Posts++
	var order map[string]any
	body, _ := io.ReadAll(req.Body)
	_ = json.Unmarshal(body, &order)
	for _, other := range s.Orders {
		if other["number"] == order["number"] {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"error":{"code":"duplicate_order"}}`)
			return false
		}
	}
	s.Orders, s.Effects = append(s.Orders, order), s.Effects+1
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
	s.Lose-- // below zero for all further orders
	return s.Lose >= 0
}

// list answers a lookup by the order number: with the list of the orders found, empty if Hide is set (as if a new order was not listed yet), or with a 500 if
// Broken is.
func (s *Shop) list(w http.ResponseWriter, req *http.Request) {
	s.Gets++
	if s.Broken {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	found := []map[string]any{}
	for _, order := range s.Orders {
		if order["number"] == req.URL.Query().Get("number") && !s.Hide {
			found = append(found, order)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": found})
}

// ForgetOrChange changes the faults of the shop between two calls: it sets Broken as in how, and forgets all orders or changes the first one's amount if how
// says so. A nil how changes nothing.
func (s *Shop) ForgetOrChange(how *Shop) {
	if how == nil {
		return
	}
	s.Broken = how.Broken
	if how.Forget {
		s.Orders = nil
	}
	if how.Change {
		s.Orders[0]["amount"] = 999
	}
}

// ByNumber returns the profile of the test's shop. The shop protects by the order's number in the body, and not by keys: it answers 409 to a second order, and a
// client finds the first one by its number.
func ByNumber() *profile.Profile {
	p := profile.Draft07()
	p.Name = "shop"
	p.Duplicate = []profile.Matcher{{Status: []int{409}, Pointer: "/error/code", Equals: []string{"duplicate_order"}}}
	p.Reference = &profile.Reference{
		Path: "{path}?number={/number}", List: "/data",
		Same: []profile.Same{{Request: "/number", Resource: "/number"}, {Request: "/amount", Resource: "/amount"}},
	}
	return p
}

// Shopping configures a client for the shop.
func Shopping(cfg *oncehttp.Config) { cfg.Profile = ByNumber() }

// Promising configures a client with one attempt, for a shop with a promise: its lookups find everything within a minute, so that to find nothing after that
// proves there is nothing.
func Promising(cfg *oncehttp.Config) {
	cfg.Profile = ByNumber()
	cfg.Profile.Reference.FoundWithin = time.Minute
	cfg.Retry.MaxAttempts = 1
}

// OrderOne is an order for the shop.
const OrderOne = `{"number":"A/1&x","amount":100}`

// LostOrder returns a client after the loss of its order, under the key "k", on the way to the shop, which has not got it: the outcome is unknown to it. Later
// requests reach the shop. The other results are the client's transport and its journal.
func LostOrder(t *testing.T, through *Shop, change func(*oncehttp.Config)) (*oncehttp.Client, *wiretest.Crashing, persist.Journal) {
	t.Helper()
	lost := true
	w := &wiretest.Crashing{Through: through, Lose: func(*http.Request) bool { was := lost; lost = false; return was }}
	c, j := clienttest.New(t, w, change)
	if _, err := c.DoKey(clienttest.Post(t, OrderOne), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	return c, w, j
}

// Why is a reason for a Rekey.
const Why = "the bank has no such payment"
