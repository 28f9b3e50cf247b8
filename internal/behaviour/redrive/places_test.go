package redrive_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// perAccount counts the sends of each key and account, and answers a first key as refused.
type perAccount struct {
	mu   sync.Mutex
	sent map[string]int
}

// RoundTrip implements http.RoundTripper.
func (p *perAccount) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := req.Header.Get("Idempotency-Key")
	if p.sent == nil {
		p.sent = map[string]int{}
	}
	p.sent[key+" of "+req.Header.Get("Stripe-Account")]++
	reply := wiretest.Reply{Status: 200, Body: `{"id":"ch_1"}`}
	if key == "k" {
		reply = wiretest.Reply{Status: 402, Body: `{"error":{"type":"card_error"}}`}
	}
	return (&wiretest.Wire{Replies: []wiretest.Reply{reply}}).RoundTrip(req)
}

// passes lets a few passes run. Of several accounts, one key comes several times.
func passes(t *testing.T, c *oncehttp.Client) {
	t.Helper()
	for range 3 {
		for range c.Resume(t.Context()) { // what is held counts as an error
			continue
		}
	}
}

// refusedFor lets a charge of each account be refused under the key k, and returns their records.
func refusedFor(t *testing.T, c *oncehttp.Client, j persist.Journal, accounts ...string) (all map[string]persist.Record) {
	t.Helper()
	all = map[string]persist.Record{}
	for _, account := range accounts {
		if account == "" {
			enqueueCharge(t, c, "k")
		} else {
			enqueueCharge(t, c, "k", "Stripe-Account", account)
		}
	}
	passes(t, c)
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true, Key: "k"}) {
		clienttest.Must(t, err)
		if rec.FinalEffect() != persist.EffectRefused {
			t.Fatalf("%v %q, want refused", rec.State, rec.FinalEffect())
		}
		all[rec.Scopes[0].Value] = rec
	}
	if len(all) != len(accounts) {
		t.Fatalf("%d records, want %d", len(all), len(accounts))
	}
	return all
}

func stripeOnce(cfg *oncehttp.Config) { cfg.Profile, cfg.Retry.MaxAttempts = profile.StripeV1(), 1 }

// of selects the operation of a record.
func of(rec *persist.Record) oncehttp.LookupOption { return oncehttp.OfAccount(rec.Account) }

// successors returns the records of the next generation by their account.
func successors(t *testing.T, j persist.Journal) map[string]persist.Record {
	t.Helper()
	all := map[string]persist.Record{}
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true, Key: "k:gen=2"}) {
		clienttest.Must(t, err)
		if before, twice := all[rec.Scopes[0].Value]; twice {
			t.Errorf("two of the account %q: at %q and %q", rec.Scopes[0].Value, before.Account, rec.Account)
		}
		all[rec.Scopes[0].Value] = rec
	}
	return all
}

// TestRedriveOfAccounts: operations of several accounts of one key, named by a header, are each redriven once, in any order, by several clients at once, and by the
// redrive and a Do of the next generation. Each is sent once, for its own account.
func TestRedriveOfAccounts(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
		w := &perAccount{}
		one, other := s.Two()
		c, _ := clienttest.New(t, w, clienttest.On(one, stripeOnce))
		d, _ := clienttest.New(t, w, clienttest.On(other, stripeOnce))
		accounts := []string{"acct_1", "acct_2", ""}
		all := refusedFor(t, c, one, accounts...)
		var wg sync.WaitGroup
		for _, client := range []*oncehttp.Client{c, d, c} {
			for _, account := range []string{"acct_2", "", "acct_1"} {
				rec := all[account]
				wg.Go(func() {
					_, err := client.Redrive(t.Context(), "k", of(&rec))
					if err != nil && !errors.Is(err, oncehttp.ErrInFlight) {
						t.Errorf("%q: %v", account, err)
					}
				})
			}
		}
		wg.Wait()
		for _, account := range accounts {
			rec := all[account]
			if next, err := c.Redrive(t.Context(), "k", of(&rec)); err != nil || next != "k:gen=2" {
				t.Errorf("%q once more: %q, %v", account, next, err)
			}
			header := []string{"Stripe-Account", account}
			if account == "" {
				header = nil
			}
			enqueueCharge(t, d, "k:gen=2", header...) // joins what stands
		}
		if next := successors(t, one); len(next) != len(accounts) {
			t.Errorf("%d successors, want %d", len(next), len(accounts))
		}
		passes(t, c)
		for _, account := range accounts {
			if n := w.sent["k:gen=2 of "+account]; n != 1 {
				t.Errorf("%d sends for %q, want 1: %v", n, account, w.sent)
			}
		}
	})
}

// TestGenerationAtAnotherPlace: a next generation that a caller began at a second place, beside that of another account, is found: nothing is begun beside it.
func TestGenerationAtAnotherPlace(t *testing.T) {
	t.Parallel()
	for _, key := range []oncehttp.Key{"k:gen=2", "k:gen=4"} {
		t.Run(string(key), func(t *testing.T) {
			t.Parallel()
			c, j := clienttest.New(t, &perAccount{}, stripeOnce)
			all := refusedFor(t, c, j, "acct_1", "acct_2")
			for _, account := range []string{"acct_1", "acct_2"} {
				enqueueCharge(t, c, key, "Stripe-Account", account)
			}
			for account, rec := range all {
				next, err := c.Redrive(t.Context(), "k", of(&rec))
				if next != "" || !errors.Is(err, oncehttp.ErrKeyReused) {
					t.Errorf("%s: %q, %v, want ErrKeyReused", account, next, err)
				}
			}
			if n := len(successors(t, j)); n != map[oncehttp.Key]int{"k:gen=2": 2}[key] {
				t.Errorf("%d successors", n)
			}
		})
	}
}

// TestAnotherAccountIsNotInTheWay: a next generation of another account alone, at the first place of its key, stops nothing. The predecessor is found at its own place.
func TestAnotherAccountIsNotInTheWay(t *testing.T) {
	t.Parallel()
	w := &perAccount{}
	c, j := clienttest.New(t, w, stripeOnce)
	all := refusedFor(t, c, j, "acct_1", "acct_2")
	enqueueCharge(t, c, "k:gen=2", "Stripe-Account", "acct_2")
	rec := all["acct_1"]
	if next, err := c.Redrive(t.Context(), "k", of(&rec)); err != nil || next != "k:gen=2" {
		t.Fatalf("%q, %v", next, err)
	}
	next := successors(t, j)
	if first, own := next["acct_2"], next["acct_1"]; len(next) != 2 || own.Account == first.Account || own.Replaces != "k" || own.KeepKey != 0 && own.Account == "" {
		t.Errorf("successors %+v", next)
	}
	now, err := j.Get(t.Context(), rec.ID)
	clienttest.Must(t, err)
	now.Evidence = &persist.Evidence{At: now.Finished, Event: "e", Type: "charge.succeeded", By: "key", Scheme: "stripe", Digest: string(make([]byte, 32))}
	_, err = j.Amend(t.Context(), now)
	clienttest.Must(t, err)
	passes(t, c)
	if held := successors(t, j)["acct_1"]; held.HoldReason != persist.HoldPredecessor || w.sent["k:gen=2 of acct_1"] != 0 || w.sent["k:gen=2 of acct_2"] != 1 {
		t.Errorf("held for %q, sends %v", held.HoldReason, w.sent)
	}
}
