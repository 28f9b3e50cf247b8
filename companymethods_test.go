package oncehttp_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// methods sets Config.Methods.
func methods(names ...string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Methods = names }
}

// doors are the ways on which a request that is no operation passes.
var doors = map[string]func(*oncehttp.Client, *http.Request) (*http.Response, error){
	"Do": (*oncehttp.Client).Do,
	"Transport": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) {
		return c.Transport().RoundTrip(req)
	},
	"StandardClient": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) {
		resp, err := c.StandardClient().Do(req)
		var e *oncehttp.Error
		if errors.As(err, &e) {
			err = e
		}
		return resp, err
	},
}

// methodless are Configs to which a POST without a key is no operation.
func methodless() map[string]func(*oncehttp.Config) {
	patch := methods("PATCH")
	ruled := func(change func(*profile.Profile)) func(*oncehttp.Config) {
		return together(patch, withProfile("draft-07", change))
	}
	return map[string]func(*oncehttp.Config){
		"another method": patch,
		"a key required": together(patch, func(cfg *oncehttp.Config) { cfg.RequireKey = true }),
		"other origins":  together(patch, func(cfg *oncehttp.Config) { cfg.Origins = []string{"https://other.example.com"} }),
		"a NewKey that refuses": together(patch, func(cfg *oncehttp.Config) {
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
		for door, do := range doors {
			t.Run(name+" by "+door, func(t *testing.T) {
				t.Parallel()
				eachJournal(t, func(t *testing.T, j persist.Journal) { otherMethods(t, j, change, do) })
			})
		}
	}
}

func otherMethods(t *testing.T, j persist.Journal, change func(*oncehttp.Config), do func(*oncehttp.Client, *http.Request) (*http.Response, error)) {
	w := &wire{replies: []reply{{err: errLost}, {status: 201, body: "{}"}}}
	begins, _ := newClient(t, w, on(j, oneAttempt))
	passes, _ := newClient(t, w, on(j, change))
	_, err := begins.Do(post(t, `{"n":1}`))
	var first, second *oncehttp.Error
	if !errors.As(err, &first) || first.Key == "" {
		t.Fatal(err)
	}
	req := post(t, `{"n":1}`)
	body := &closing{Reader: req.Body}
	req.Body = body
	if _, err = do(passes, req); !errors.As(err, &second) || second.Key != first.Key || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 1 || !body.closed {
		t.Fatalf("%v after %d sends, body closed %t; want the key %q, and one send", err, w.count(), body.closed, first.Key)
	}
	exactlyOne(t, err)
	if resp, err := do(passes, post(t, `{"n":2}`)); err != nil || w.count() != 2 || w.all()[1].body != `{"n":2}` || w.all()[1].key != "" {
		t.Fatalf("another body: %v %v, sent %v; want it to pass", resp, err, w.all())
	}
	if errs := resume(t, begins); len(errs) != 0 { // it is not due yet
		t.Fatal(errs)
	}
	if err := settleAsSeen(begins, t.Context(), second.Key, oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
		t.Fatal(err)
	}
	if _, err := do(passes, post(t, `{"n":1}`)); err != nil || w.count() != 3 {
		t.Errorf("settled: %v after %d sends, want another order", err, w.count())
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
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201, body: "{}"}}}
		j := memory.New()
		begins, _ := newClient(t, w, on(j, oneAttempt))
		passes, _ := newClient(t, w, on(j, methods("PATCH"), func(cfg *oncehttp.Config) { cfg.MaxRequestBytes = 10 }))
		if _, err := begins.Do(post(t, `{"n":1}`)); err == nil {
			t.Fatal("an answer")
		}
		large := strings.Repeat("x", 1000)
		for i, req := range []*http.Request{
			request(t, "POST", "https://api.example.com/other", large), request(t, "PUT", "https://api.example.com/payments?via=test", large),
		} {
			if _, err := passes.Do(req); err != nil || w.count() != i+2 || w.all()[i+1].body != large {
				t.Errorf("%v after %d sends, want it sent as it is", err, w.count())
			}
		}
		_, err := passes.Do(post(t, large)) // it may be the same
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrBodyTooLarge) || w.count() != 3 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown and none more", err, w.count())
		}
		if err := passes.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := passes.Transport().RoundTrip(post(t, `{"n":3}`)); err != nil || w.count() != 4 {
			t.Errorf("closed: %v after %d sends, want it sent", err, w.count())
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
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201, body: "{}"}}}
		c, _ := newClient(t, w, on(&listless{Journal: memory.New()}, methods("PATCH")))
		_, err := c.Do(post(t, `{"n":1}`))
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errListless) || w.count() != 0 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown and none", err, w.count())
		}
		if _, err := c.Do(request(t, "GET", "https://api.example.com/payments", "")); err != nil {
			t.Errorf("a GET: %v", err)
		}
	})
}
