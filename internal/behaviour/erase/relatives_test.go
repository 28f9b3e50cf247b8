package erase_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// problem is a final refusal.
var problem = wiretest.Reply{Status: 402, Header: "Content-Type: application/problem+json", Body: `{}`}

// TestErasePartedByAssign: an Assign of one of two operations of an intent does not keep an Erase of it from the other.
func TestErasePartedByAssign(t *testing.T) {
	t.Parallel()
	for moved, other := range map[oncehttp.Key]oncehttp.Key{"k": "k:gen=2", "k:gen=2": "k"} {
		t.Run(string(moved), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{problem, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, keeping))
				a, _ := clienttest.New(t, w, clienttest.On(j, keeping, func(cfg *oncehttp.Config) { cfg.Account = "A" }))
				_, err := c.DoKey(post(t, card), "k")
				clienttest.Must(t, err)
				time.Sleep(time.Hour)
				_, err = c.Redrive(t.Context(), "k")
				clienttest.Must(t, err)
				clienttest.Resume(t, c)
				clienttest.Must(t, a.Assign(t.Context(), moved))
				time.Sleep(long)
				clienttest.Must(t, a.Erase(t.Context(), moved))
				for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
					clienttest.Must(t, err)
					canaries(t, rec)
				}
				canaries(t, clienttest.Lookup(t, c, other))
			})
		})
	}
}

// TestEraseNamesItsOwnEffect: an Erase that another operation of the intent forbids tells the effect of its own key.
func TestEraseNamesItsOwnEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{problem, {Status: 201}}}
		kept, _ := clienttest.New(t, w, clienttest.On(j, keeping, func(cfg *oncehttp.Config) { cfg.KeepAnswer = long }))
		c, _ := clienttest.New(t, w, clienttest.On(j, keeping))
		for i, client := range []*oncehttp.Client{kept, c} {
			key := oncehttp.Key("k").Generation(i + 1)
			w.Replies = []wiretest.Reply{{Status: 201}}
			if key == "k" {
				w.Replies = []wiretest.Reply{problem}
			}
			w.Sends = nil
			_, err := client.DoKey(post(t, card), key)
			clienttest.Must(t, err)
		}
		time.Sleep(48 * time.Hour)
		for key, want := range map[oncehttp.Key]persist.Effect{"k:gen=2": persist.EffectHappened, "k": persist.EffectRefused} {
			err := c.Erase(t.Context(), key)
			var e *oncehttp.Error
			if !errors.As(err, &e) || e.Effect() != want || e.Key != key || errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("Erase(%q): %v, effect %q", key, err, e.Effect())
			}
		}
	})
}
