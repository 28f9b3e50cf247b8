package keeping_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// keepsText sets for how long a client keeps the texts of used keys.
func keepsText(text time.Duration) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.KeepText = text }
}

// TestKeepText: a used key without its text is final for every repeat, with its state and its effect. Nothing is sent.
func TestKeepText(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		reply  wiretest.Reply
		effect persist.Effect
	}{
		"success": {wiretest.Reply{Status: 201, Body: "canary"}, persist.EffectHappened},
		"refusal": {wiretest.Reply{Status: 402, Body: "canary"}, persist.EffectRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				testKeepText(t, j, r.reply, r.effect)
				testKeepText(t, journaltest.Sealed(t, memory.New(), "a"), r.reply, r.effect)
			})
		})
	}
}

// testKeepText is TestKeepText on a journal.
func testKeepText(t *testing.T, j persist.Journal, reply wiretest.Reply, effect persist.Effect) {
	t.Helper()
	w := &wiretest.Wire{Replies: []wiretest.Reply{reply}}
	c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, keepsText(50*time.Hour), func(cfg *oncehttp.Config) { cfg.Account = "canary shop" }))
	_, _ = c.DoKey(clienttest.Post(t, `{"of":"canary"}`), "canary-1")
	if rec := clienttest.Lookup(t, c, "canary-1"); rec.KeepText != 50*time.Hour || rec.FinalEffect() != effect {
		t.Fatalf("begun with %v, ended as %q", rec.KeepText, rec.FinalEffect())
	}
	time.Sleep(50*time.Hour - 1)
	if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("swept %d, error %v, want the answer", n, err)
	}
	if rec := clienttest.Lookup(t, c, "canary-1"); !rec.Swept || rec.Erased {
		t.Errorf("swept %t, without its text %t", rec.Swept, rec.Erased)
	}
	time.Sleep(time.Nanosecond)
	if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("swept %d, error %v, want the text", n, err)
	}
	for _, body := range []string{`{"of":"canary"}`, `{"of":"another"}`} {
		for how, err := range map[string]error{
			"DoKey":   func() error { _, err := c.DoKey(clienttest.Post(t, body), "canary-1"); return err }(),
			"Enqueue": c.Enqueue(clienttest.Post(t, body), "canary-1"),
		} {
			var e *oncehttp.Error
			if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrFinal) || e.Effect() != effect {
				t.Errorf("%s, %s: %v, effect %q", how, body, err, e.Effect())
			}
		}
	}
	if rec := clienttest.Lookup(t, c, "canary-1"); !rec.Erased || rec.FinalEffect() != effect {
		t.Errorf("Lookup: without its text %t, effect %q", rec.Erased, rec.FinalEffect())
	}
	for _, rec := range journaltest.All(t, j) {
		if text := fmt.Sprintf("%+v", rec); strings.Contains(text, "canary") {
			t.Errorf("the record has its text: %s", text)
		}
	}
	clienttest.Must(t, c.Erase(t.Context(), "canary-1"))
	if w.Count() != 1 {
		t.Errorf("%d requests", w.Count())
	}
}

// TestKeepTextOfScopes: a used key of one account header stops that account alone, also without its text. Each of them stops a repeat.
func TestKeepTextOfScopes(t *testing.T) {
	t.Parallel()
	scoped := clienttest.WithProfile("x", func(p *profile.Profile) { p.AccountHeaders = []string{"Stripe-Account"} })
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		testKeepTextOfScopes(t, j, scoped)
		testKeepTextOfScopes(t, journaltest.Sealed(t, memory.New(), "a"), scoped)
	})
}

// testKeepTextOfScopes is TestKeepTextOfScopes on a journal.
func testKeepTextOfScopes(t *testing.T, j persist.Journal, scoped func(*oncehttp.Config)) {
	t.Helper()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}
	c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, scoped, keepsText(-1)))
	call := func(account string) error {
		req := clienttest.Post(t, "{}")
		if account != "" {
			req.Header = http.Header{"Stripe-Account": {account}}
		}
		_, err := c.DoKey(req, "k")
		return err
	}
	accounts := []string{"acct_1", "", "acct_2"}
	for _, account := range accounts {
		clienttest.Must(t, call(account))
		time.Sleep(25 * time.Hour)
		if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
			t.Errorf("swept %d, error %v", n, err)
		}
	}
	for _, account := range accounts {
		if err := call(account); !errors.Is(err, oncehttp.ErrFinal) {
			t.Errorf("%q again: %v", account, err)
		}
	}
	if err := call("acct_3"); err != nil || w.Count() != len(accounts)+1 {
		t.Errorf("another account: %v, %d requests", err, w.Count())
	}
}

// TestTextTellsTheOwner: two customers have credentials of their own, the same key, and no account that the program names. The text of the key stays: else the
// second customer would be told of the first one's payment. Of a named account it goes.
func TestTextTellsTheOwner(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		for _, j := range []persist.Journal{j, journaltest.Sealed(t, memory.New(), "a")} {
			for _, account := range []string{"", "shop"} {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, keepsText(-1), func(cfg *oncehttp.Config) { cfg.Account = account }))
				call := func(who string) error {
					req := clienttest.Post(t, "{}")
					req.Header.Set("Authorization", "Bearer "+who)
					_, err := c.DoKey(req, oncehttp.Key("k"+account))
					return err
				}
				clienttest.Must(t, call("a"))
				for range 2 {
					time.Sleep(100 * time.Hour)
					_, err := c.Sweep(t.Context())
					clienttest.Must(t, err)
				}
				err := call("b")
				var told *oncehttp.Error
				if stranger := errors.Is(err, oncehttp.ErrAccount); !errors.As(err, &told) || stranger != (account == "") || stranger && told.Effect() == oncehttp.EffectHappened {
					t.Errorf("account %q: another customer is told: %v", account, err)
				}
				if w.Count() != 1 {
					t.Errorf("account %q: %d sends", account, w.Count())
				}
			}
		}
	})
}
