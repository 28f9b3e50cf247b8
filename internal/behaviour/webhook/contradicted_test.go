package webhook_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestRefusalAgainstAnEvent: the API refuses a charge, and says by an event that it took effect. From then on no call with its key is told a refusal, whoever heard
// of it before: a program that hears of one charges under another key. (Invariants 1 and 56.)
func TestRefusalAgainstAnEvent(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, c *oncehttp.Client){
		"nobody was told": func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Enqueue(charge(t), "k"))
			clienttest.Resume(t, c)
		},
		"a caller was told": func(t *testing.T, c *oncehttp.Client) {
			if resp, err := c.DoKey(charge(t), "k"); err != nil || resp.StatusCode != http.StatusPaymentRequired {
				t.Fatal(resp, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: `{"error":{"type":"card_error"}}`}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, stripe))
				begin(t, c)
				if code := post(t, handler(t, c, nil), charged("k")); code != http.StatusOK || clienttest.Lookup(t, c, "k").Evidence == nil {
					t.Fatalf("answered %d, evidence %v", code, clienttest.Lookup(t, c, "k").Evidence)
				}
				for how, call := range map[string]func() error{
					"Do":      func() error { _, err := c.DoKey(charge(t), "k"); return err },
					"Enqueue": func() error { return c.Enqueue(charge(t), "k") },
				} {
					err := call()
					var e *oncehttp.Error
					if !errors.Is(err, oncehttp.ErrFinal) || !errors.As(err, &e) || e.Effect() != persist.EffectUnknown || e.Outcome != oncehttp.OutcomeUnknown {
						t.Errorf("%s: %v; want ErrFinal with an unknown effect", how, err)
					}
				}
				if w.Count() != 1 {
					t.Errorf("%d sends", w.Count())
				}
			})
		})
	}
}

// TestSkippedAgainstAnEvent: a first try was not sent and is forgotten, a second one was refused, and an event says that this one took effect. A call with the first
// key is told of the second one, and never that nothing happened. (Invariants 1, 54 and 56.)
func TestSkippedAgainstAnEvent(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}, {Status: 402, Body: `{"error":{"type":"card_error"}}`}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, stripe, clienttest.OneAttempt))
		if _, err := c.DoKey(charge(t), "k"); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Fatal(err)
		}
		resp, err := c.DoKey(charge(t), "k:gen=2")
		clienttest.Must(t, err)
		_ = resp.Body.Close()
		if _, err := c.DoKey(charge(t), "k"); !errors.Is(err, oncehttp.ErrNoEffect) { // it was refused
			t.Errorf("before the event: %v", err)
		}
		if code := post(t, handler(t, c, nil), charged("k:gen=2")); code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
		_, err = c.DoKey(charge(t), "k")
		var e *oncehttp.Error
		if clienttest.ExactlyOne(t, err); errors.Is(err, oncehttp.ErrNoEffect) || !errors.As(err, &e) || e.Effect() != persist.EffectUnknown || e.Key != "k:gen=2" {
			t.Errorf("after the event: %v; want an unknown effect of the second try", err)
		}
		if w.Count() != 2 {
			t.Errorf("%d sends", w.Count())
		}
	})
}
