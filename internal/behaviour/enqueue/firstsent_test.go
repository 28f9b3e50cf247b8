package enqueue_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

const (
	firstSentHeader = "Repeatability-First-Sent"
	repeatableKey   = oncehttp.Key("0f8fad5b-d9cb-469f-a165-70867728950e")
)

// repeatable is the profile of OASIS Repeatable Requests.
func repeatable(t *testing.T) *profile.Profile {
	t.Helper()
	p, found := profile.ByName("azure-repeatability")
	if !found {
		t.Fatal("no profile azure-repeatability")
	}
	return p
}

// listened notes a header of each request that goes through it.
type listened struct {
	through http.RoundTripper
	mu      sync.Mutex
	heard   []string
}

func (l *listened) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.heard = append(l.heard, req.Header.Get(firstSentHeader))
	l.mu.Unlock()
	return l.through.RoundTrip(req)
}

// TestFirstSentIsKept: every attempt says when the first one was sent, in this process and the next, and across a second
// attempt of a call; the mock, which refuses another time, is content.
func TestFirstSentIsKept(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		p := repeatable(t)
		faults := map[string][]mockserver.Fault{string(repeatableKey): {
			{Kind: mockserver.Answer, Status: 503}, {Kind: mockserver.DropAfter}, {Kind: mockserver.Answer, Status: 503},
		}}
		server, transport := servertest.Till(t, mockserver.Config{Profile: p, ByKey: faults})
		wire := &listened{through: transport}
		cfg := clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.Retry = p, oncehttp.Policy{MaxAttempts: 2, AttemptTimeout: 5 * time.Second}
		})
		begun := time.Now().UTC().Format(http.TimeFormat)
		c, _ := clienttest.New(t, wire, cfg)
		if _, err := c.DoKey(servertest.Pay(t, `{}`), repeatableKey); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatalf("the answer was lost: %v", err)
		}
		time.Sleep(time.Minute)
		next, _ := clienttest.New(t, wire, cfg)
		if resp, err := next.DoKey(servertest.Pay(t, `{}`), repeatableKey); err != nil || resp.StatusCode != 201 {
			t.Fatalf("%v", err)
		}
		if err := server.Err(); err != nil || servertest.Effects(server) != 1 || len(wire.heard) != 4 {
			t.Errorf("%v, %d effects, %d sends", err, servertest.Effects(server), len(wire.heard))
		}
		for i, said := range wire.heard {
			if said != begun {
				t.Errorf("send %d says %q, want %q", i+1, said, begun)
			}
		}
	})
}

// TestFirstSentOfEnqueue: an enqueued operation says the time of its first send, not that of Enqueue.
func TestFirstSentOfEnqueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := repeatable(t)
		server, transport := servertest.Till(t, mockserver.Config{Profile: p})
		wire := &listened{through: transport}
		c, _ := clienttest.New(t, wire, func(cfg *oncehttp.Config) { cfg.Profile = p })
		if err := c.Enqueue(servertest.Pay(t, `{}`), repeatableKey); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // far past the window of five minutes
		for _, err := range c.Resume(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
		want := clienttest.Lookup(t, c, repeatableKey).FirstSent.UTC().Format(http.TimeFormat)
		if len(wire.heard) != 1 || wire.heard[0] != want || servertest.Effects(server) != 1 || server.Err() != nil {
			t.Errorf("said %q, want %q; %d effects, %v", wire.heard, want, servertest.Effects(server), server.Err())
		}
	})
}

// TestFirstSentIsNobodyElses: a request that brings the header, and an Authorize that changes it, are refused, and
// nothing is sent. A lookup, a GET and an API that does not ask get none.
func TestFirstSentIsNobodyElses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		p := repeatable(t)
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
		own := clienttest.Post(t, "{}")
		own.Header.Set(firstSentHeader, time.Now().UTC().Format(http.TimeFormat))
		_, err := c.DoKey(own, repeatableKey)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("a header of the caller's own: %v, want ErrKeyInvalid", err)
		}
		signed, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Profile = p
			cfg.Authorize = func(req *http.Request) error {
				req.Header.Set(firstSentHeader, "Thu, 01 Jan 1970 00:00:00 GMT")
				return nil
			}
		})
		if _, err := signed.DoKey(clienttest.Post(t, "{}"), repeatableKey); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("an Authorize that changes the time: %v", err)
		}
		if w.Count() != 0 {
			t.Fatalf("%d sends, want none", w.Count())
		}
		if _, err := c.Do(clienttest.Request(t, "GET", "https://api.example.com/", "")); err != nil || w.Sends[0].Header.Get(firstSentHeader) != "" {
			t.Errorf("a GET: %v, %v", err, w.Sends[0].Header)
		}
		draft, _ := clienttest.New(t, w, nil)
		if _, err := draft.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || w.Sends[1].Header.Get(firstSentHeader) != "" {
			t.Errorf("an API that does not ask: %v, %v", err, w.Sends[1].Header)
		}
	})
}
