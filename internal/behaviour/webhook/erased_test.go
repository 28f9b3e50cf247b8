package webhook_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// usedUp makes a charge with this status under the key "k", of an account of Stripe if one is named, and takes the text out of its record.
func usedUp(t *testing.T, j persist.Journal, status int, of string, erase func(*oncehttp.Client)) (*oncehttp.Client, *clienttest.Events) {
	t.Helper()
	events := &clienttest.Events{}
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Body: `{"error":{"type":"card_error"}}`}}}
	c, _ := clienttest.New(t, w, clienttest.On(j, stripe, func(cfg *oncehttp.Config) { cfg.Observe, cfg.Account = events.Observe, "shop" }))
	req := charge(t)
	if of != "" {
		req.Header.Set("Stripe-Account", of)
	}
	resp, err := c.DoKey(req, "k")
	clienttest.Must(t, err)
	_ = resp.Body.Close()
	clienttest.Must(t, c.Flush(t.Context()))
	erase(c)
	if rec := clienttest.Lookup(t, c, "k"); !rec.Erased {
		t.Fatal("the record has its text")
	}
	return c, events
}

// tells delivers an event twice, and requires each to be told as contradicting an end, or as proving nothing. Nothing is written.
func tells(t *testing.T, j persist.Journal, c *oncehttp.Client, events *clienttest.Events, body string, contradicted, unproved int) {
	t.Helper()
	before, h := journaltest.All(t, j), handler(t, c, nil)
	for range 2 {
		if code := post(t, h, body); code != http.StatusOK {
			t.Errorf("answered %d, want 200", code)
		}
	}
	if n, m := len(events.Of(oncehttp.EventContradicted)), len(events.Of(oncehttp.EventUnproved)); n != contradicted || m != unproved {
		t.Errorf("%d contradicted, %d unproved %v; want %d and %d", n, m, events.Of(oncehttp.EventUnproved), contradicted, unproved)
	}
	for _, e := range events.Of(oncehttp.EventContradicted) {
		if e.Key != "k" {
			t.Errorf("told of the key %q", e.Key)
		}
	}
	if after := journaltest.All(t, j); !reflect.DeepEqual(after, before) {
		t.Errorf("the journal has changed: %+v, was %+v", after, before)
	}
}

// of returns the event with an account.
func of(event, account string) string {
	return strings.Replace(event, `"livemode"`, `"account":"`+account+`","livemode"`, 1)
}

// TestEventOfAUsedKey: an event proves an operation that was refused, and whose record a sweep has left without its text. The operation is found by the digest of its key, and
// that is told each time, on every journal. (Invariants 56 and 57.)
func TestEventOfAUsedKey(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
		j := s.Open()
		loses := func(*oncehttp.Client) {
			_, err := j.Sweep(t.Context(), persist.Limits{Prune: true, KeepAnswer: -1, KeepText: -1, Now: time.Now().Add(400 * 24 * time.Hour)})
			clienttest.Must(t, err)
		}
		c, events := usedUp(t, j, http.StatusPaymentRequired, "", loses)
		tells(t, j, c, events, charged("k"), 2, 0)
		tells(t, j, c, events, charged("another"), 2, 2)
	})
}

// TestEventOfAnErasedKey: so it is after an Erase, of a sealed record, too, and where the event names the account of the request, of which the record has a digest. What took effect, or is of another
// account, is contradicted by nothing. (Invariants 56 and 57.)
func TestEventOfAnErasedKey(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status                 int
		of, event              string
		contradicted, unproved int
	}{
		"refused":            {http.StatusPaymentRequired, "", charged("k"), 2, 0},
		"of an account":      {http.StatusPaymentRequired, "acct_1", of(charged("k"), "acct_1"), 2, 0},
		"of another account": {http.StatusPaymentRequired, "acct_1", of(charged("k"), "acct_2"), 0, 2},
		"happened":           {http.StatusOK, "", charged("k"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				for _, j := range []persist.Journal{j, journaltest.Sealed(t, memory.New(), "a")} {
					c, events := usedUp(t, j, row.status, row.of, func(c *oncehttp.Client) {
						time.Sleep(400 * 24 * time.Hour)
						clienttest.Must(t, c.Erase(t.Context(), "k"))
					})
					tells(t, j, c, events, row.event, row.contradicted, row.unproved)
				}
			})
		})
	}
}

// TestGenerationOfAnErasedKey: a charge was refused, and its record has lost its text. The program has enqueued the next generation, and then an event proves the first one. The
// generation finds nothing of that in the record, and is held all the same. (Invariants 1, 54, 56 and 57.)
func TestGenerationOfAnErasedKey(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		for _, of := range []string{"", "acct_1"} {
			events := &clienttest.Events{}
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: `{"error":{"type":"card_error"}}`}, {Status: 200, Body: `{"id":"ch_2"}`}}}
			c, _ := clienttest.New(t, w, clienttest.On(j, stripe, func(cfg *oncehttp.Config) {
				cfg.Observe, cfg.Account, cfg.KeepText, cfg.KeepAnswer = events.Observe, "shop"+of, 31*24*time.Hour, -1
			}))
			begin := func(key oncehttp.Key) {
				req := charge(t)
				if of != "" {
					req.Header.Set("Stripe-Account", of)
				}
				clienttest.Must(t, c.Enqueue(req, key))
			}
			begin("k")
			clienttest.Resume(t, c)
			time.Sleep(32 * 24 * time.Hour)
			begin("k:gen=2")
			for range 2 {
				_, err := c.Sweep(t.Context())
				clienttest.Must(t, err)
			}
			if rec := clienttest.Lookup(t, c, "k"); !rec.Erased {
				t.Fatal("the record has its text")
			}
			event := charged("k")
			if of != "" {
				event = strings.Replace(event, `"livemode"`, `"account":"`+of+`","livemode"`, 1)
			}
			for range 2 {
				if code := post(t, handler(t, c, nil), event); code != http.StatusOK {
					t.Errorf("answered %d", code)
				}
			}
			clienttest.Resume(t, c)
			rec := clienttest.Lookup(t, c, "k:gen=2")
			if w.Count() != 1 || rec.State != persist.StateHeld || rec.HoldReason != persist.HoldPredecessor || !strings.Contains(rec.Note, `"k" took effect`) || len(events.Of(oncehttp.EventHeld)) != 1 {
				t.Errorf("%d sends, the generation is %v %q (%s), told %d times; want one, held (predecessor), told once", w.Count(), rec.State, rec.HoldReason, rec.Note, len(events.Of(oncehttp.EventHeld)))
			}
		}
	})
}
