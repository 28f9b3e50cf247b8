package redrive_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestGenerationBesideARekey: where a Rekey has begun another key in the place of an operation, no call begins a next generation of it: there would be two successors.
func TestGenerationBesideARekey(t *testing.T) {
	t.Parallel()
	begin := map[string]func(c *oncehttp.Client, key oncehttp.Key) error{
		"Do": func(c *oncehttp.Client, key oncehttp.Key) error {
			_, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), key)
			return err
		},
		"Enqueue": func(c *oncehttp.Client, key oncehttp.Key) error {
			return c.Enqueue(clienttest.Post(t, `{"amount":1}`), key)
		},
	}
	for name, call := range begin {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.OneAttempt)
			enqueued(t, c, "k")
			clienttest.Absent(t, c, "k")
			clienttest.Must(t, clienttest.RekeyAsSeen(c, t.Context(), "k", "other", "tried anew"))
			for _, key := range []oncehttp.Key{"k:gen=2", "k:gen=3", "k:gen=6"} {
				err := call(c, key)
				if !errors.Is(err, oncehttp.ErrKeyReused) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("%s: %v, want ErrKeyReused and ErrOutcomeUnknown", key, err)
				}
				if _, err := c.Lookup(t.Context(), key); !errors.Is(err, persist.ErrNotFound) {
					t.Errorf("%s stands: %v", key, err)
				}
			}
			clienttest.Must(t, call(c, "l:gen=2"))
		})
	}
}

// TestGenerationAfterAGeneration: what a Redrive has begun under the next generation stops no later one, once that was refused, too.
func TestGenerationAfterAGeneration(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 404}, {Status: 404}, {Status: 201}}}
	c, _ := clienttest.New(t, w, clienttest.OneAttempt)
	enqueued(t, c, "k")
	if _, err := c.Redrive(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	clienttest.Resume(t, c)
	if resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k:gen=3"); err != nil || resp.StatusCode != http.StatusCreated {
		t.Errorf("%v, %v", resp, err)
	}
}

// TestGenerationOfWhatAnEventProves: after an event that contradicts a refusal no call begins the next generation, and one that was begun before is held.
func TestGenerationOfWhatAnEventProves(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: `{"error":{"type":"card_error"}}`}, {Status: 402, Body: `{"error":{"type":"card_error"}}`}, {Status: 200, Body: `{"id":"c"}`}}}
	c, _ := clienttest.New(t, w, stripeOnce)
	enqueueCharge(t, c, "k")
	enqueueCharge(t, c, "l")
	clienttest.Resume(t, c)
	enqueueCharge(t, c, "k:gen=2") // before
	charged(t, c, "k")
	charged(t, c, "l")
	clienttest.Resume(t, c)
	if rec := clienttest.Lookup(t, c, "k:gen=2"); rec.HoldReason != persist.HoldPredecessor || w.Count() != 2 {
		t.Errorf("%v %q after %d sends, want held (predecessor) after 2", rec.State, rec.HoldReason, w.Count())
	}
	req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur")
	if _, err := c.DoKey(req, "l:gen=2"); !errors.Is(err, oncehttp.ErrKeyReused) || w.Count() != 2 {
		t.Errorf("%v after %d sends, want ErrKeyReused after 2", err, w.Count())
	}
}

// TestRekeyAndGenerationAtOnce: of a Rekey to another key and a Do of the next generation, begun at once in two processes, one at most is sent, on every journal.
func TestRekeyAndGenerationAtOnce(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
		var mu sync.Mutex
		sent := map[string]int{}
		w := wiretest.Func(func(req *http.Request) (*http.Response, error) {
			key := req.Header.Get("Idempotency-Key")
			mu.Lock()
			sent[key]++
			mu.Unlock()
			if key[0] == 'k' && len(key) == 2 {
				wiretest.HandedOver(req)
				return nil, wiretest.ErrLost
			}
			return (&wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}).RoundTrip(req)
		})
		one, other := s.Two()
		c, _ := clienttest.New(t, w, clienttest.On(one, clienttest.OneAttempt))
		d, _ := clienttest.New(t, w, clienttest.On(other, clienttest.OneAttempt))
		for _, key := range []oncehttp.Key{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"} {
			enqueued(t, c, key)
			clienttest.Absent(t, c, key)
			var wg sync.WaitGroup
			wg.Go(func() { _ = clienttest.RekeyAsSeen(c, t.Context(), key, "o"+key, "tried anew") })
			wg.Go(func() { _, _ = d.DoKey(clienttest.Post(t, `{"amount":1}`), key.Generation(2)) })
			wg.Wait()
			for range 2 {
				for range c.Resume(t.Context()) { // what is held counts as an error
					continue
				}
			}
			if n := sent["o"+string(key)] + sent[string(key.Generation(2))]; n > 1 {
				t.Errorf("%d successors of %s are sent", n, key)
			}
		}
	})
}

// apart is a journal of another process.
type apart struct{ persist.Journal }

// Attach implements persist.Journal.
func (apart) Attach(create func() any) any { return create() }

// TestRekeyBetween: a Do of the next generation goes between the look of a Rekey and its mark, and a Rekey between the look of a Do and its Begin. What comes second is
// not sent.
func TestRekeyBetween(t *testing.T) {
	t.Parallel()
	reply := []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}, {Status: 201}}
	t.Run("the Do", func(t *testing.T) {
		t.Parallel()
		w, j := &wiretest.Wire{Replies: reply}, &journaltest.Faulty{Journal: memory.New()}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		enqueued(t, c, "k")
		clienttest.Absent(t, c, "k")
		j.OnAmend = journaltest.Once(func() error {
			return c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k:gen=2")
		})
		if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "other", "tried anew"); !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("%v, want ErrKeyReused", err)
		}
		clienttest.Pass(t, c)
		if _, err := c.Lookup(t.Context(), "other"); !errors.Is(err, persist.ErrNotFound) || w.Count() != 2 {
			t.Errorf("the other key: %v, after %d sends; want none, and 2 sends", err, w.Count())
		}
	})
	t.Run("the Rekey", func(t *testing.T) {
		t.Parallel()
		w, j := &wiretest.Wire{Replies: reply}, &journaltest.Faulty{Journal: memory.New()}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		enqueued(t, c, "k")
		clienttest.Absent(t, c, "k")
		other, _ := clienttest.New(t, w, clienttest.On(apart{j.Journal}, clienttest.OneAttempt))
		j.OnBegin = journaltest.Once(func() error {
			return clienttest.RekeyAsSeen(other, t.Context(), "k", "other", "tried anew")
		})
		if _, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k:gen=2"); !errors.Is(err, oncehttp.ErrHeld) {
			t.Errorf("%v, want ErrHeld", err)
		}
		for range c.Resume(t.Context()) {
			continue
		}
		if rec := clienttest.Lookup(t, c, "other"); rec.State != persist.StateConfirmed || w.Count() != 2 {
			t.Errorf("the other key: %v, after %d sends; want confirmed after 2", rec.State, w.Count())
		}
	})
}
