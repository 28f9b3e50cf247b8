package oncehttp_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// shop is an API without idempotency keys: an order number is unique, and the second order with it is answered 409.
type shop struct {
	mu      sync.Mutex
	orders  []map[string]any
	effects int
	gets    int
	// lose: answers of so many POSTs are lost after their effect. hide: lookups find nothing. broken: lookups fail.
	lose         int
	hide, broken bool
	// forget and change are for forgetOrChange.
	forget, change bool
	posts          int
}

// RoundTrip implements http.RoundTripper.
func (s *shop) RoundTrip(req *http.Request) (*http.Response, error) {
	handedOver(req)
	w := httptest.NewRecorder()
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Method == http.MethodGet {
		s.list(w, req)
	} else if lost := s.order(w, req); lost {
		return nil, errLost
	}
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

func (s *shop) order(w http.ResponseWriter, req *http.Request) (lost bool) {
	s.posts++
	var order map[string]any
	body, _ := io.ReadAll(req.Body)
	_ = json.Unmarshal(body, &order)
	for _, other := range s.orders {
		if other["number"] == order["number"] {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"error":{"code":"duplicate_order"}}`)
			return false
		}
	}
	s.orders, s.effects = append(s.orders, order), s.effects+1
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
	s.lose--
	return s.lose >= 0
}

func (s *shop) list(w http.ResponseWriter, req *http.Request) {
	s.gets++
	if s.broken {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	found := []map[string]any{}
	for _, order := range s.orders {
		if order["number"] == req.URL.Query().Get("number") && !s.hide {
			found = append(found, order)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": found})
}

// byNumber is the shop's profile.
func byNumber() *profile.Profile {
	p := profile.Draft07()
	p.Name = "shop"
	p.Duplicate = []profile.Matcher{{Status: []int{409}, Pointer: "/error/code", Equals: []string{"duplicate_order"}}}
	p.Reference = &profile.Reference{
		Path: "{path}?number={/number}", List: "/data",
		Same: []profile.Same{{Request: "/number", Resource: "/number"}, {Request: "/amount", Resource: "/amount"}},
	}
	return p
}

func shopping(cfg *oncehttp.Config) { cfg.Profile = byNumber() }

const orderOne = `{"number":"A/1&x","amount":100}`

// TestDuplicateAfterALostAnswer: the order that the lookup finds is this operation's own, so that it is confirmed with it.
func TestDuplicateAfterALostAnswer(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		s := &shop{lose: 1}
		c, _ := newClient(t, s, on(j, shopping))
		resp, err := c.DoKey(post(t, orderOne), "k")
		if err != nil {
			t.Fatal(err)
		}
		if res := oncehttp.ResultOf(resp); resp.StatusCode != http.StatusOK || !res.AlreadyDone || !strings.Contains(read(t, resp), `"A/1\u0026x"`) {
			t.Errorf("%v, %+v; want the order that was found, already done", resp.Status, res)
		}
		if rec := lookup(t, c, "k"); s.effects != 1 || s.gets != 1 || rec.State != persist.StateConfirmed {
			t.Errorf("%d effects, %d lookups, %v; want 1, 1, confirmed", s.effects, s.gets, rec.State)
		}
		if resp, err := c.DoKey(post(t, orderOne), "k"); err != nil || resp.StatusCode != http.StatusOK || s.gets != 1 {
			t.Errorf("asked again: %v after %d lookups", err, s.gets)
		}
	})
}

// TestDuplicateOnTheFirstSend: somebody has the number, and the answer does not say who. It is never confirmed, nothing
// more is sent, and nobody is told that there was no effect.
func TestDuplicateOnTheFirstSend(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		s := &shop{}
		c, _ := newClient(t, s, on(j, shopping))
		if _, err := c.DoKey(post(t, orderOne), "theirs"); err != nil {
			t.Fatal(err)
		}
		_, err := c.DoKey(post(t, orderOne), "mine")
		if !errors.Is(err, oncehttp.ErrDuplicate) || !errors.Is(err, oncehttp.ErrHeld) {
			t.Errorf("%v, want ErrDuplicate and ErrHeld", err)
		}
		exactlyOne(t, err)
		if errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("%v claims that there was no effect", err)
		}
		time.Sleep(time.Hour)
		resume(t, c)
		if _, err := c.DoKey(post(t, orderOne), "mine"); !errors.Is(err, oncehttp.ErrDuplicate) || !errors.Is(err, oncehttp.ErrHeld) {
			t.Errorf("asked again: %v, want ErrDuplicate and ErrHeld", err)
		}
		if rec := lookup(t, c, "mine"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldDuplicate || rec.Sends != 1 || s.gets != 0 {
			t.Errorf("%v %s after %d sends and %d lookups; want held, 1, 0", rec.State, rec.HoldReason, rec.Sends, s.gets)
		}
	})
}

// TestDuplicateThatDoesNotSettle: what the lookup must not find for the operation to be confirmed.
func TestDuplicateThatDoesNotSettle(t *testing.T) {
	t.Parallel()
	other := map[string]any{"number": "A/1&x", "amount": 999.0}
	for name, row := range map[string]struct {
		shop    *shop
		change  func(*profile.Profile)
		body    string
		state   persist.State
		why     persist.HoldReason
		is      error
		lookups bool
	}{
		"another amount":       {shop: &shop{orders: []map[string]any{other}}, state: persist.StateHeld, why: persist.HoldMismatch, is: oncehttp.ErrKeyReused, lookups: true},
		"two orders":           {shop: &shop{orders: []map[string]any{other, other}}, state: persist.StateHeld, why: persist.HoldMismatch, is: oncehttp.ErrKeyReused, lookups: true},
		"none is found":        {shop: &shop{orders: []map[string]any{other}, hide: true}, state: persist.StatePending, lookups: true},
		"the lookup fails":     {shop: &shop{orders: []map[string]any{other}, broken: true}, state: persist.StatePending, lookups: true},
		"there is no lookup":   {shop: &shop{orders: []map[string]any{other}}, change: func(p *profile.Profile) { p.Reference = nil }, state: persist.StateHeld, why: persist.HoldDuplicate, is: oncehttp.ErrDuplicate},
		"a value is missing":   {shop: &shop{orders: []map[string]any{other}}, body: `{"number":"A/1&x"}`, state: persist.StatePending, lookups: true},
		"the number is absent": {shop: &shop{orders: []map[string]any{{}}}, body: `{}`, state: persist.StateHeld, why: persist.HoldDuplicate, is: oncehttp.ErrDuplicate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				p, body := byNumber(), orderOne
				if row.change != nil {
					row.change(p)
				}
				if row.body != "" {
					body = row.body
				}
				first := true
				s := row.shop
				c, _ := newClient(t, loseFirst{s, &first}, func(cfg *oncehttp.Config) { cfg.Profile = p })
				_, err := c.DoKey(post(t, body), "k")
				if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || row.is != nil && !errors.Is(err, row.is) {
					t.Errorf("%v, want ErrOutcomeUnknown and %v", err, row.is)
				}
				rec := lookup(t, c, "k")
				if rec.State != row.state || rec.HoldReason != row.why || s.gets > 0 != row.lookups || s.effects != 0 {
					t.Errorf("%v %q after %d lookups and %d effects; want %v %q", rec.State, rec.HoldReason, s.gets, s.effects, row.state, row.why)
				}
			})
		})
	}
}

// loseFirst loses the first request on its way, so that the operation is in doubt.
type loseFirst struct {
	next  http.RoundTripper
	first *bool
}

// RoundTrip implements http.RoundTripper.
func (l loseFirst) RoundTrip(req *http.Request) (*http.Response, error) {
	if *l.first {
		*l.first = false
		handedOver(req)
		return nil, errLost
	}
	return l.next.RoundTrip(req)
}

// TestDuplicateIsResolvedByALaterLife: the process dies after the effect; the next one finds the order.
func TestDuplicateIsResolvedByALaterLife(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		s := &shop{lose: 1, hide: true}
		first, _ := newClient(t, s, on(j, shopping))
		if _, err := first.DoKey(post(t, orderOne), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrHeld) {
			t.Fatalf("%v, want it unknown and not held", err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		s.hide = false
		time.Sleep(time.Hour)
		second, _ := newClient(t, s, on(j, shopping))
		got := resume(t, second)
		if len(got) != 1 || got["k"].err != nil || !got["k"].result.AlreadyDone || got["k"].result.Outcome != oncehttp.OutcomeConfirmed || s.effects != 1 {
			t.Errorf("%+v, %d effects; want it confirmed as already done, 1", got, s.effects)
		}
	})
}

// TestAskFirst: what a lookup finds before an operation in doubt is sent again, inside the retention window and after it.
func TestAskFirst(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		shop     *shop // before the second run
		after    time.Duration
		state    persist.State
		why      persist.HoldReason
		effects  int
		outcome  oncehttp.Outcome
		requests int // POSTs, the first one included
	}{
		"it took effect":                 {after: time.Hour, state: persist.StateConfirmed, effects: 1, outcome: oncehttp.OutcomeConfirmed, requests: 1},
		"it did, and the window over":    {after: 25 * time.Hour, state: persist.StateConfirmed, effects: 1, outcome: oncehttp.OutcomeConfirmed, requests: 1},
		"not found":                      {shop: &shop{forget: true}, after: time.Hour, state: persist.StateConfirmed, effects: 2, outcome: oncehttp.OutcomeConfirmed, requests: 2},
		"not found, and too late":        {shop: &shop{forget: true}, after: 25 * time.Hour, state: persist.StateHeld, why: persist.HoldExpired, effects: 1, outcome: oncehttp.OutcomeExpired, requests: 1},
		"the lookup fails":               {shop: &shop{broken: true}, after: time.Hour, state: persist.StatePending, effects: 1, outcome: oncehttp.OutcomeUnknown, requests: 1},
		"the lookup fails, and too late": {shop: &shop{broken: true}, after: 25 * time.Hour, state: persist.StateHeld, why: persist.HoldExpired, effects: 1, outcome: oncehttp.OutcomeExpired, requests: 1},
		"another amount":                 {shop: &shop{change: true}, after: time.Hour, state: persist.StateHeld, why: persist.HoldMismatch, effects: 1, outcome: oncehttp.OutcomeMismatch, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				s := &shop{lose: 1}
				c, _ := newClient(t, s, on(j, shopping, oneAttempt, func(cfg *oncehttp.Config) { cfg.Retry.AskFirst = true }))
				if _, err := c.DoKey(post(t, orderOne), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || s.gets != 0 {
					t.Fatalf("%v after %d lookups, want it unknown after none", err, s.gets)
				}
				s.forgetOrChange(row.shop)
				time.Sleep(row.after)
				_, err := c.DoKey(post(t, orderOne), "k")
				var e *oncehttp.Error
				if row.outcome != oncehttp.OutcomeConfirmed && (!errors.As(err, &e) || e.Outcome != row.outcome) || row.outcome == oncehttp.OutcomeConfirmed && err != nil {
					t.Errorf("%v, want %v", err, row.outcome)
				}
				rec := lookup(t, c, "k")
				if rec.State != row.state || rec.HoldReason != row.why || s.effects != row.effects || s.posts != row.requests || s.gets == 0 {
					t.Errorf("%v %q, %d effects of %d POSTs, %d lookups; want %v %q, %d of %d", rec.State, rec.HoldReason, s.effects, s.posts, s.gets, row.state, row.why, row.effects, row.requests)
				}
			})
		})
	}
}

// forgetOrChange makes the shop behave from now on as how says.
func (s *shop) forgetOrChange(how *shop) {
	if how == nil {
		return
	}
	s.broken = how.broken
	if how.forget {
		s.orders = nil
	}
	if how.change {
		s.orders[0]["amount"] = 999
	}
}

// TestNaturalKeyAlone: an API without keys that accepts an order number only once. An operation in doubt is sent again, as
// one with a key is; a request without a number is not.
func TestNaturalKeyAlone(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		state persist.State
		posts int
	}{orderOne: {persist.StateConfirmed, 2}, `{"amount":100}`: {persist.StateHeld, 1}} {
		eachJournal(t, func(t *testing.T, j persist.Journal) {
			s := &shop{lose: 1}
			c, _ := newClient(t, s, on(j, func(cfg *oncehttp.Config) {
				p := byNumber()
				p.Carrier = profile.Carrier{Place: profile.Nowhere}
				cfg.Profile = p
			}))
			_, err := c.DoKey(post(t, body), "k")
			rec := lookup(t, c, "k")
			if rec.State != want.state || s.posts != want.posts || s.effects != 1 || (err == nil) != (want.state == persist.StateConfirmed) {
				t.Errorf("%s: %v, %v after %d POSTs with %d effects; want %v after %d with 1", body, err, rec.State, s.posts, s.effects, want.state, want.posts)
			}
		})
	}
}

// TestAskFirstNeedsUniqueReferences: without an answer that says that a reference was used before, a resource that looks the
// same may be another payment. The operation is sent again instead.
func TestAskFirstNeedsUniqueReferences(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		first := true
		s := &shop{orders: []map[string]any{{"number": "A/1&x", "amount": 100.0}}} // of last month
		c, _ := newClient(t, loseFirst{s, &first}, func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.Retry.AskFirst = byNumber(), true
			cfg.Profile.Name, cfg.Profile.Duplicate = "no duplicate", nil
			cfg.ProfileByHost = map[string]*profile.Profile{"other.test": byNumber()} // whose facts AskFirst is about
		})
		_, _ = c.DoKey(post(t, orderOne), "k")
		if s.gets != 0 || s.posts == 0 {
			t.Errorf("%d lookups and %d POSTs; want none, and that it is sent", s.gets, s.posts)
		}
	})
}

// TestReferenceIsChecked: a lookup that would take any resource for the request's own, or leads elsewhere, is refused.
func TestReferenceIsChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*profile.Reference){
		"nothing is the same":       func(r *profile.Reference) { r.Same = nil },
		"the reference is not":      func(r *profile.Reference) { r.Same = r.Same[1:] },
		"a path that is no path":    func(r *profile.Reference) { r.Path = "{/number}" },
		"a path without a value":    func(r *profile.Reference) { r.Path = "/orders" },
		"a pointer that is no path": func(r *profile.Reference) { r.Same[0].Resource = "number" },
	} {
		p := byNumber()
		change(p.Reference)
		if _, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Profile: p}); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "reference") {
			t.Errorf("%s: %v, want ErrConfig that names the reference", name, err)
		}
	}
}

// TestNaturalKeyDeclineDoesNotSettle: without a key no answer is stored for the attempt that was lost, so that a decline of
// the next one says nothing of it.
func TestNaturalKeyDeclineDoesNotSettle(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}, {status: 402, header: "Content-Type: application/problem+json", body: "{}"}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.Profile = byNumber()
			cfg.Profile.Carrier = profile.Carrier{Place: profile.Nowhere}
		})
		_, err := c.DoKey(post(t, orderOne), "k")
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || lookup(t, c, "k").State.Final() {
			t.Errorf("%v, %v; want it unknown", err, lookup(t, c, "k").State)
		}
	})
}
