package profiles_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAKeyProtectsOnlyWhereItIsHonoured: the methods of a profile that names an API bind. Another one is sent once, and held
// where that leaves a doubt. Draft-07's methods, and a list that nobody knows, bind nobody.
func TestAKeyProtectsOnlyWhereItIsHonoured(t *testing.T) {
	t.Parallel()
	unlisted := profile.StripeV1()
	unlisted.Name, unlisted.Methods = "unlisted", nil
	carried := profile.Draft07()
	carried.Name, carried.Carrier.Name = "draft-07@Idempotency-Key", "Idempotency-Key"
	for _, r := range []struct {
		profile *profile.Profile
		method  string
		bound   bool // one send only
	}{
		{profile.StripeV1(), "POST", false}, {profile.StripeV1(), "PATCH", true}, {profile.StripeV1(), "PUT", true}, {profile.StripeV1(), "DELETE", true},
		{nil, "POST", false}, {nil, "PUT", false}, {nil, "DELETE", false}, {profile.Draft07(), "PUT", false}, {carried, "PUT", false},
		{profile.Draft07Quoted(), "PATCH", false}, {profile.Draft07Quoted(), "PUT", true},
		{unlisted, "POST", false}, {unlisted, "PATCH", false}, {unlisted, "DELETE", false},
	} {
		for door, by := range map[string]func(*testing.T, *oncehttp.Client, *http.Request) error{
			"Do": func(t *testing.T, c *oncehttp.Client, req *http.Request) error {
				_, err := c.DoKey(req, "k")
				return err
			},
			"Resume": func(t *testing.T, c *oncehttp.Client, req *http.Request) error {
				if err := c.Enqueue(req, "k"); err != nil {
					t.Fatal(err)
				}
				return clienttest.Resume(t, c)["k"].Err
			},
			"Transport": func(t *testing.T, c *oncehttp.Client, req *http.Request) error {
				_, err := c.Transport().RoundTrip(req.WithContext(oncehttp.ContextWithKey(t.Context(), "k")))
				return err
			},
		} {
			for first, lost := range map[string]wiretest.Reply{"lost": {Err: wiretest.ErrLost}, "503": {Status: 503}, "409": {Status: 409}} {
				name := "default"
				if r.profile != nil {
					name = r.profile.Name
				}
				t.Run(fmt.Sprint(name, " ", r.method, " ", first, " by ", door), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := &wiretest.Wire{Replies: []wiretest.Reply{lost, {Status: 201, Body: "{}"}}}
						c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Methods = r.profile, []string{r.method} })
						err := by(t, c, clienttest.Request(t, r.method, "https://api.example.com/payments/1", "{}"))
						rec := clienttest.Lookup(t, c, "k")
						if want := !r.bound; rec.Protected != want {
							t.Errorf("protected %t, want %t", rec.Protected, want)
						}
						if r.bound && (w.Count() != 1 || rec.State != persist.StateHeld || rec.HoldReason != persist.HoldNoKey) {
							t.Errorf("%v, %d sends, record %v (%s); want one send, and held", err, w.Count(), rec.State, rec.HoldReason)
						}
						if !r.bound && (err != nil || w.Count() != 2 || rec.State != persist.StateConfirmed) {
							t.Errorf("%v, %d sends, record %v; want the 201", err, w.Count(), rec.State)
						}
					})
				})
			}
		}
	}
}

// TestProtectionIsFrozen: whether a key protects an operation is read from its record, also by a client whose profile has
// other methods now; and what may have been sent without protection is held by whoever finds it.
func TestProtectionIsFrozen(t *testing.T) {
	t.Parallel()
	for protected, sends := range map[bool]int{true: 1, false: 0} {
		journaltest.Each(t, func(t *testing.T, j persist.Journal) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
			c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
				cfg.Profile = profile.Draft07()
				cfg.Profile.Name, cfg.Profile.Methods = "ours", []string{"POST"}
				if protected {
					cfg.Profile.Methods = []string{"PUT"}
				}
			}))
			rec, err := c.Prepare(clienttest.Post(t, "{}"), "k")
			if err != nil || rec.Protected == protected {
				t.Fatalf("prepared with %t, %v", rec.Protected, err)
			}
			rec.Protected, rec.MaybeSent, rec.FirstSent = protected, true, time.Now().Round(0)
			if _, _, err := j.Begin(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
			if got := clienttest.Lookup(t, c, "k"); w.Count() != sends || protected != (err == nil) || !protected && got.HoldReason != persist.HoldNoKey {
				t.Errorf("protected %t: %v after %d sends, record %v (%s)", protected, err, w.Count(), got.State, got.HoldReason)
			}
		})
	}
}

// TestAMethodThatNobodySpeaksOfIsToldOnce, and one on which the API honours no key; a method that the profile names is not.
func TestAMethodThatNobodySpeaksOfIsToldOnce(t *testing.T) {
	t.Parallel()
	unlisted := profile.StripeV1()
	unlisted.Name, unlisted.Methods = "unlisted", nil
	for _, r := range []struct {
		profile *profile.Profile
		method  string
		lines   int
	}{{nil, "PUT", 1}, {nil, "POST", 0}, {nil, "PATCH", 0}, {unlisted, "DELETE", 1}, {unlisted, "POST", 0}, {profile.StripeV1(), "PUT", 1}} {
		synctest.Test(t, func(t *testing.T) {
			log := &clienttest.Log{}
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Logger = r.profile, log.Warner() })
			for i := range 3 {
				if _, err := c.DoKey(clienttest.Request(t, r.method, "https://api.example.com/p", "{}"), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
					t.Fatal(err)
				}
			}
			if log.Lines() != r.lines || r.lines > 0 && !log.Has(r.method) {
				t.Errorf("%s: %d lines, want %d:\n%s", r.method, log.Lines(), r.lines, log)
			}
		})
	}
}

// TestUnprotectedAnswerIsDurable: what may not be asked for again is in the journal before anybody has it.
func TestUnprotectedAnswerIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: string(make([]byte, 500))}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.Protected(cfg); cfg.MaxResponseBytes = 100 })
		put := func() (*http.Response, error) {
			return c.DoKey(clienttest.Request(t, "PUT", "https://api.example.com/p", "{}"), "k")
		}
		if resp, err := put(); err != nil || len(clienttest.Read(t, resp)) != 500 {
			t.Fatal(err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.Answer.Stored {
			t.Error("an answer that no key finds again counts as stored")
		}
		if _, err := put(); !errors.Is(err, oncehttp.ErrAnswerGone) || w.Count() != 1 {
			t.Errorf("%v after %d sends, want ErrAnswerGone after one", err, w.Count())
		}
	})
}
