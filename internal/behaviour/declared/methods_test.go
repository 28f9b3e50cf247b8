package declared_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// methods sets Config.Methods.
func methods(names ...string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Methods, cfg.Operation = names, nil }
}

// methodless are Configs to which a POST without a key is no operation.
func methodless() map[string]func(*oncehttp.Config) {
	patch := methods("PATCH")
	ruled := func(change func(*profile.Profile)) func(*oncehttp.Config) {
		return clienttest.Together(patch, clienttest.WithProfile("draft-07", change))
	}
	return map[string]func(*oncehttp.Config){
		"another method":           patch,
		"a key required":           clienttest.Together(patch, func(cfg *oncehttp.Config) { cfg.RequireKey = true }),
		"other clienttest.Origins": clienttest.Together(patch, func(cfg *oncehttp.Config) { cfg.Origins = []string{"https://other.example.com"} }),
		"a NewKey that refuses": clienttest.Together(patch, func(cfg *oncehttp.Config) {
			cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return "", errors.New("none") }
		}),
		"keys by rule":     ruled(func(p *profile.Profile) { p.Key = profile.KeyRule{MaxBytes: 4, Alphabet: "0123456789"} }),
		"a key in bodies":  ruled(func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Body, Name: "/key"} }),
		"a key in queries": ruled(func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Query, Name: "key"} }),
	}
}

// TestCompanyOfOtherMethods: a request that is no operation to a client, and that another client of the journal has begun without a
// key, is not sent a second time while the first is in doubt, or nobody was told how it ended. What differs is sent.
func TestCompanyOfOtherMethods(t *testing.T) {
	t.Parallel()
	for name, change := range methodless() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) { otherMethods(t, j, change) })
		})
	}
}

func otherMethods(t *testing.T, j persist.Journal, change func(*oncehttp.Config)) {
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}
	begins, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
	passes, _ := clienttest.New(t, w, clienttest.On(j, change))
	_, err := begins.Do(clienttest.Post(t, `{"n":1}`))
	var first, second *oncehttp.Error
	if !errors.As(err, &first) || first.Key == "" {
		t.Fatal(err)
	}
	req := clienttest.Post(t, `{"n":1}`)
	body := &closing{Reader: req.Body}
	req.Body = body
	if _, err = passes.Do(req); !errors.As(err, &second) || second.Key != first.Key || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 || !body.closed {
		t.Fatalf("%v after %d sends, body closed %t; want the key %q, and one send", err, w.Count(), body.closed, first.Key)
	}
	clienttest.ExactlyOne(t, err)
	if resp, err := passes.Do(clienttest.Post(t, `{"n":2}`)); err != nil || w.Count() != 2 || w.All()[1].Body != `{"n":2}` || w.All()[1].Key != "" {
		t.Fatalf("another Body: %v %v, sent %v; want it to pass", resp, err, w.All())
	}
	if errs := clienttest.Resume(t, begins); len(errs) != 0 { // it is not due yet
		t.Fatal(errs)
	}
	if err := clienttest.SettleAsSeen(begins, t.Context(), second.Key, oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
		t.Fatal(err)
	}
	if _, err := passes.Do(clienttest.Post(t, `{"n":1}`)); err != nil || w.Count() != 3 {
		t.Errorf("settled: %v after %d sends, want another order", err, w.Count())
	}
}

// closing is a body that notes that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// TestOtherMethodsStream: where nothing stands for the same method and target, the body of a request that is no operation flows, whatever
// its size, and a client that is closed sends it all the same.
func TestOtherMethodsStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}
		j := memory.New()
		begins, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		passes, _ := clienttest.New(t, w, clienttest.On(j, methods("PATCH"), func(cfg *oncehttp.Config) { cfg.MaxRequestBytes = 10 }))
		if _, err := begins.Do(clienttest.Post(t, `{"n":1}`)); err == nil {
			t.Fatal("an answer")
		}
		large := strings.Repeat("x", 1000)
		for i, req := range []*http.Request{
			clienttest.Request(t, "POST", "https://api.example.com/other", large), clienttest.Request(t, "PUT", "https://api.example.com/payments?via=test", large),
		} {
			if _, err := passes.Do(req); err != nil || w.Count() != i+2 || w.All()[i+1].Body != large {
				t.Errorf("%v after %d sends, want it sent as it is", err, w.Count())
			}
		}
		_, err := passes.Do(clienttest.Post(t, large)) // it may be the same
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrBodyTooLarge) || w.Count() != 3 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown and none more", err, w.Count())
		}
		if err := passes.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := passes.Transport().RoundTrip(clienttest.Post(t, `{"n":3}`)); err != nil || w.Count() != 4 {
			t.Errorf("closed: %v after %d sends, want it sent", err, w.Count())
		}
	})
}

// listless is a journal that lists nothing.
type listless struct{ persist.Journal }

var errListless = errors.New("no list")

func (listless) List(context.Context, persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) { yield(persist.Record{}, errListless) }
}

// TestOtherMethodsWithoutAJournal: where the journal does not say what stands, a request that could be a second one is not sent; one that
// has no effect is.
func TestOtherMethodsWithoutAJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		c, _ := clienttest.New(t, w, clienttest.On(&listless{Journal: memory.New()}, methods("PATCH")))
		_, err := c.Do(clienttest.Post(t, `{"n":1}`))
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errListless) || w.Count() != 0 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown and none", err, w.Count())
		}
		if _, err := c.Do(clienttest.Request(t, "GET", "https://api.example.com/payments", "")); err != nil {
			t.Errorf("a GET: %v", err)
		}
	})
}
