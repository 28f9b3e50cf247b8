package erase_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestErasePlaces: an operation of a second account header of a key, such as another Stripe-Account, is erased as any other: nothing is paid once more,
// by whichever way, the call that erased it may be made again, and Lookup finds it. The others of the key stay.
func TestErasePlaces(t *testing.T) {
	t.Parallel()
	scoped := clienttest.WithProfile("x", func(p *profile.Profile) { p.AccountHeaders = []string{"Stripe-Account", "Stripe-Context"} })
	accounts := []string{"acct_1", "acct_2", "acct canary|3"}
	for name, change := range map[string]func(*oncehttp.Config){
		"no account": func(*oncehttp.Config) {},
		"an account": func(cfg *oncehttp.Config) { cfg.Account = "shop=|canary" },
	} {
		for i, victim := range accounts {
			for _, sealed := range []bool{false, true} {
				for _, form := range []string{"scoped", "stored"} {
					t.Run(name+", "+victim+", "+form+map[bool]string{true: ", sealed"}[sealed], func(t *testing.T) {
						t.Parallel()
						journaltest.Each(t, func(t *testing.T, j persist.Journal) {
							if sealed {
								j = journaltest.Sealed(t, j, "a")
							}
							w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: `{"id":"p"}`}}}
							c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, scoped, change))
							of := func(acct string) *http.Request {
								req := clienttest.Post(t, "{}")
								req.Header.Set("Stripe-Account", acct)
								req.Header.Set("Stripe-Context", "of "+acct)
								return req
							}
							call := func(acct string) error {
								_, err := c.DoKey(of(acct), "k")
								return err
							}
							for _, acct := range accounts {
								clienttest.Must(t, call(acct))
							}
							time.Sleep(long)
							at := ""
							for _, rec := range journaltest.All(t, j) {
								if rec.Scopes[0].Value == victim {
									at = map[string]string{"scoped": rec.ScopedAccount(), "stored": rec.Account}[form]
								}
							}
							if i == 0 && form == "stored" {
								return // it stands at the account itself, as several do inside
							}
							for range 2 {
								clienttest.Must(t, c.Erase(t.Context(), "k", oncehttp.OfAccount(at)))
							}
							rec, err := c.Lookup(t.Context(), "k", oncehttp.OfAccount(at))
							if err != nil || !rec.Erased {
								t.Errorf("Lookup: erased %t, %v", rec.Erased, err)
							}
							for _, acct := range accounts {
								if err := call(acct); acct == victim && !errors.Is(err, oncehttp.ErrFinal) || acct != victim && err != nil {
									t.Errorf("%s: %v", acct, err)
								}
							}
							if err := c.Enqueue(of(victim), "k"); !errors.Is(err, oncehttp.ErrFinal) {
								t.Errorf("Enqueue: %v", err)
							}
							clienttest.Resume(t, c)
							if w.Count() != len(accounts) {
								t.Errorf("%d requests, want %d", w.Count(), len(accounts))
							}
						})
					})
				}
			}
		}
	}
}

// TestErasedIsNotAssigned: the text of key and account does not come back.
func TestErasedIsNotAssigned(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: `{"id":"p"}`}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		clienttest.Do(t, c, clienttest.Post(t, "{}"), "canary")
		time.Sleep(long)
		clienttest.Must(t, c.Erase(t.Context(), "canary"))
		ctx := oncehttp.ContextWithAccount(context.Background(), "canary-account")
		err := c.Assign(ctx, "canary")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("Assign: %v", err)
		}
		for _, rec := range journaltest.All(t, j) {
			canaries(t, rec)
		}
		for how, ctx := range map[string]context.Context{"in the account": ctx, "under none": t.Context()} {
			if _, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "canary"); err == nil {
				t.Errorf("Do %s is answered", how)
			}
		}
		if w.Count() != 1 {
			t.Errorf("%d requests, want 1", w.Count())
		}
	})
}

// TestEraseAfterABrokenRedrive: a Redrive was broken off before its new operation, and a sweep has taken the request since: nothing begins it any
// more, and the rest may be erased.
func TestEraseAfterABrokenRedrive(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, inner persist.Journal) {
		j := &journaltest.Faulty{Journal: inner}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: `{"of":"canary"}`}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, keeping))
		clienttest.Must(t, c.Enqueue(post(t, card), "k"))
		clienttest.Resume(t, c)
		j.OnBegin = journaltest.Fails(journaltest.ErrDisk)
		if _, err := c.Redrive(t.Context(), "k"); err == nil {
			t.Fatal("the Redrive was not broken off")
		}
		j.OnBegin = nil
		time.Sleep(long)
		d, _ := clienttest.New(t, w, clienttest.On(inner, keeping))
		if err := d.Erase(t.Context(), "k"); err == nil {
			t.Error("erased while a Redrive may go on with its request")
		}
		if _, err := d.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		clienttest.Must(t, d.Erase(t.Context(), "k"))
		canaries(t, clienttest.Lookup(t, d, "k"))
		if _, err := d.Redrive(t.Context(), "k"); err == nil || w.Count() != 1 {
			t.Errorf("Redrive: %v; %d requests", err, w.Count())
		}
	})
}
