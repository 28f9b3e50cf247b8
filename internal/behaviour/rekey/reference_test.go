package rekey_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestDuplicateAfterALostAnswer: the order that the lookup finds is this operation's own, so that it is confirmed with it.
func TestDuplicateAfterALostAnswer(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		s := &servertest.Shop{Lose: 1}
		c, _ := clienttest.New(t, s, clienttest.On(j, servertest.Shopping))
		resp, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "k")
		if err != nil {
			t.Fatal(err)
		}
		if res := oncehttp.ResultOf(resp); resp.StatusCode != http.StatusOK || !res.AlreadyDone || !strings.Contains(clienttest.Read(t, resp), `"A/1\u0026x"`) {
			t.Errorf("%v, %+v; want the order that was found, already done", resp.Status, res)
		}
		if rec := clienttest.Lookup(t, c, "k"); s.Effects != 1 || s.Gets != 1 || rec.State != persist.StateConfirmed {
			t.Errorf("%d effects, %d lookups, %v; want 1, 1, confirmed", s.Effects, s.Gets, rec.State)
		}
		if resp, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "k"); err != nil || resp.StatusCode != http.StatusOK || s.Gets != 1 {
			t.Errorf("asked again: %v after %d lookups", err, s.Gets)
		}
	})
}

// TestDuplicateOnTheFirstSend: somebody has the number, and the answer does not say who. It is never confirmed, nothing
// more is sent, and nobody is told that there was no effect.
func TestDuplicateOnTheFirstSend(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		s := &servertest.Shop{}
		c, _ := clienttest.New(t, s, clienttest.On(j, servertest.Shopping))
		if _, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "theirs"); err != nil {
			t.Fatal(err)
		}
		_, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "mine")
		if !errors.Is(err, oncehttp.ErrDuplicate) || !errors.Is(err, oncehttp.ErrHeld) {
			t.Errorf("%v, want ErrDuplicate and ErrHeld", err)
		}
		clienttest.ExactlyOne(t, err)
		if errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("%v claims that there was no effect", err)
		}
		time.Sleep(time.Hour)
		clienttest.Resume(t, c)
		if _, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "mine"); !errors.Is(err, oncehttp.ErrDuplicate) || !errors.Is(err, oncehttp.ErrHeld) {
			t.Errorf("asked again: %v, want ErrDuplicate and ErrHeld", err)
		}
		if rec := clienttest.Lookup(t, c, "mine"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldDuplicate || rec.Sends != 1 || s.Gets != 0 {
			t.Errorf("%v %s after %d sends and %d lookups; want held, 1, 0", rec.State, rec.HoldReason, rec.Sends, s.Gets)
		}
	})
}

// TestDuplicateThatDoesNotSettle: what the lookup must not find for the operation to be confirmed.
func TestDuplicateThatDoesNotSettle(t *testing.T) {
	t.Parallel()
	other := map[string]any{"number": "A/1&x", "amount": 999.0}
	for name, row := range map[string]struct {
		shop    *servertest.Shop
		change  func(*profile.Profile)
		body    string
		state   persist.State
		why     persist.HoldReason
		is      error
		lookups bool
	}{
		"another amount":       {shop: &servertest.Shop{Orders: []map[string]any{other}}, state: persist.StateHeld, why: persist.HoldMismatch, is: oncehttp.ErrKeyReused, lookups: true},
		"two orders":           {shop: &servertest.Shop{Orders: []map[string]any{other, other}}, state: persist.StateHeld, why: persist.HoldMismatch, is: oncehttp.ErrKeyReused, lookups: true},
		"none is found":        {shop: &servertest.Shop{Orders: []map[string]any{other}, Hide: true}, state: persist.StatePending, lookups: true},
		"the lookup fails":     {shop: &servertest.Shop{Orders: []map[string]any{other}, Broken: true}, state: persist.StatePending, lookups: true},
		"there is no lookup":   {shop: &servertest.Shop{Orders: []map[string]any{other}}, change: func(p *profile.Profile) { p.Reference = nil }, state: persist.StateHeld, why: persist.HoldDuplicate, is: oncehttp.ErrDuplicate},
		"a value is missing":   {shop: &servertest.Shop{Orders: []map[string]any{other}}, body: `{"number":"A/1&x"}`, state: persist.StatePending, lookups: true},
		"the number is absent": {shop: &servertest.Shop{Orders: []map[string]any{{}}}, body: `{}`, state: persist.StateHeld, why: persist.HoldDuplicate, is: oncehttp.ErrDuplicate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, body := servertest.ByNumber(), servertest.OrderOne
				if row.change != nil {
					row.change(p)
				}
				if row.body != "" {
					body = row.body
				}
				first := true
				s := row.shop
				c, _ := clienttest.New(t, loseFirst{s, &first}, func(cfg *oncehttp.Config) { cfg.Profile = p })
				_, err := c.DoKey(clienttest.Post(t, body), "k")
				if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || row.is != nil && !errors.Is(err, row.is) {
					t.Errorf("%v, want ErrOutcomeUnknown and %v", err, row.is)
				}
				rec := clienttest.Lookup(t, c, "k")
				if rec.State != row.state || rec.HoldReason != row.why || s.Gets > 0 != row.lookups || s.Effects != 0 {
					t.Errorf("%v %q after %d lookups and %d effects; want %v %q", rec.State, rec.HoldReason, s.Gets, s.Effects, row.state, row.why)
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
		wiretest.HandedOver(req)
		return nil, wiretest.ErrLost
	}
	return l.next.RoundTrip(req)
}

// TestDuplicateIsResolvedByALaterLife: the process dies after the effect; the next one finds the order.
func TestDuplicateIsResolvedByALaterLife(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		s := &servertest.Shop{Lose: 1, Hide: true}
		first, _ := clienttest.New(t, s, clienttest.On(j, servertest.Shopping))
		if _, err := first.DoKey(clienttest.Post(t, servertest.OrderOne), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrHeld) {
			t.Fatalf("%v, want it unknown and not held", err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		s.Hide = false
		time.Sleep(time.Hour)
		second, _ := clienttest.New(t, s, clienttest.On(j, servertest.Shopping))
		got := clienttest.Resume(t, second)
		if len(got) != 1 || got["k"].Err != nil || !got["k"].Result.AlreadyDone || got["k"].Result.Outcome != oncehttp.OutcomeConfirmed || s.Effects != 1 {
			t.Errorf("%+v, %d effects; want it confirmed as already done, 1", got, s.Effects)
		}
	})
}

// TestAskFirst: what a lookup finds before an operation in doubt is sent again, inside the retention window and after it.
func TestAskFirst(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		shop     *servertest.Shop // before the second run
		after    time.Duration
		state    persist.State
		why      persist.HoldReason
		effects  int
		outcome  oncehttp.Outcome
		requests int // POSTs, the first one included
	}{
		"it took effect":                 {after: time.Hour, state: persist.StateConfirmed, effects: 1, outcome: oncehttp.OutcomeConfirmed, requests: 1},
		"it did, and the window over":    {after: 25 * time.Hour, state: persist.StateConfirmed, effects: 1, outcome: oncehttp.OutcomeConfirmed, requests: 1},
		"not found":                      {shop: &servertest.Shop{Forget: true}, after: time.Hour, state: persist.StateConfirmed, effects: 2, outcome: oncehttp.OutcomeConfirmed, requests: 2},
		"not found, and too late":        {shop: &servertest.Shop{Forget: true}, after: 25 * time.Hour, state: persist.StateHeld, why: persist.HoldExpired, effects: 1, outcome: oncehttp.OutcomeExpired, requests: 1},
		"the lookup fails":               {shop: &servertest.Shop{Broken: true}, after: time.Hour, state: persist.StatePending, effects: 1, outcome: oncehttp.OutcomeUnknown, requests: 1},
		"the lookup fails, and too late": {shop: &servertest.Shop{Broken: true}, after: 25 * time.Hour, state: persist.StateHeld, why: persist.HoldExpired, effects: 1, outcome: oncehttp.OutcomeExpired, requests: 1},
		"another amount":                 {shop: &servertest.Shop{Change: true}, after: time.Hour, state: persist.StateHeld, why: persist.HoldMismatch, effects: 1, outcome: oncehttp.OutcomeMismatch, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				s := &servertest.Shop{Lose: 1}
				c, _ := clienttest.New(t, s, clienttest.On(j, servertest.Shopping, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Retry.AskFirst = true }))
				if _, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || s.Gets != 0 {
					t.Fatalf("%v after %d lookups, want it unknown after none", err, s.Gets)
				}
				s.ForgetOrChange(row.shop)
				time.Sleep(row.after)
				_, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "k")
				var e *oncehttp.Error
				if row.outcome != oncehttp.OutcomeConfirmed && (!errors.As(err, &e) || e.Outcome != row.outcome) || row.outcome == oncehttp.OutcomeConfirmed && err != nil {
					t.Errorf("%v, want %v", err, row.outcome)
				}
				rec := clienttest.Lookup(t, c, "k")
				if rec.State != row.state || rec.HoldReason != row.why || s.Effects != row.effects || s.Posts != row.requests || s.Gets == 0 {
					t.Errorf("%v %q, %d effects of %d POSTs, %d lookups; want %v %q, %d of %d", rec.State, rec.HoldReason, s.Effects, s.Posts, s.Gets, row.state, row.why, row.effects, row.requests)
				}
			})
		})
	}
}

// TestNaturalKeyAlone: an API without keys that accepts an order number only once. An operation in doubt is sent again, as
// one with a key is; a request without a number is not.
func TestNaturalKeyAlone(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		state persist.State
		posts int
	}{servertest.OrderOne: {persist.StateConfirmed, 2}, `{"amount":100}`: {persist.StateHeld, 1}} {
		journaltest.Each(t, func(t *testing.T, j persist.Journal) {
			s := &servertest.Shop{Lose: 1}
			c, _ := clienttest.New(t, s, clienttest.On(j, func(cfg *oncehttp.Config) {
				p := servertest.ByNumber()
				p.Carrier = profile.Carrier{Place: profile.Nowhere}
				cfg.Profile = p
			}))
			_, err := c.DoKey(clienttest.Post(t, body), "k")
			rec := clienttest.Lookup(t, c, "k")
			if rec.State != want.state || s.Posts != want.posts || s.Effects != 1 || (err == nil) != (want.state == persist.StateConfirmed) {
				t.Errorf("%s: %v, %v after %d POSTs with %d effects; want %v after %d with 1", body, err, rec.State, s.Posts, s.Effects, want.state, want.posts)
			}
		})
	}
}

// TestAskFirstNeedsUniqueReferences: without an answer that says that a reference was used before, a resource that looks the
// same may be another payment. The operation is sent again instead.
func TestAskFirstNeedsUniqueReferences(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := true
		s := &servertest.Shop{Orders: []map[string]any{{"number": "A/1&x", "amount": 100.0}}} // of last month
		c, _ := clienttest.New(t, loseFirst{s, &first}, func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.Retry.AskFirst = servertest.ByNumber(), true
			cfg.Profile.Name, cfg.Profile.Duplicate = "no duplicate", nil
			cfg.ProfileByHost = map[string]*profile.Profile{"other.test": servertest.ByNumber()} // whose facts AskFirst is about
		})
		_, _ = c.DoKey(clienttest.Post(t, servertest.OrderOne), "k")
		if s.Gets != 0 || s.Posts == 0 {
			t.Errorf("%d lookups and %d POSTs; want none, and that it is sent", s.Gets, s.Posts)
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
		p := servertest.ByNumber()
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
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 402, Header: "Content-Type: application/problem+json", Body: "{}"}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Profile = servertest.ByNumber()
			cfg.Profile.Carrier = profile.Carrier{Place: profile.Nowhere}
		})
		_, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "k")
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || clienttest.Lookup(t, c, "k").State.Final() {
			t.Errorf("%v, %v; want it unknown", err, clienttest.Lookup(t, c, "k").State)
		}
	})
}
