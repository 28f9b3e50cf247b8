package oncehttp_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// keylessKinds are clients whose callers name no key.
func keylessKinds() map[string]func(*oncehttp.Config) {
	from := func(pointers ...string) func(*oncehttp.Config) {
		return func(cfg *oncehttp.Config) { cfg.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), pointers...) }
	}
	return map[string]func(*oncehttp.Config){
		"random": plainly, "of the order": from("/order"), "of another pointer": from("/id"), "of both": from("/order", "/id"),
		"a function": func(cfg *oncehttp.Config) {
			cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return oncehttp.RandomKey(), nil }
		},
		"other methods": func(cfg *oncehttp.Config) { cfg.Methods = []string{"POST", "PUT"} },
		"a key needed":  func(cfg *oncehttp.Config) { cfg.RequireKey = true },
	}
}

// TestKeysOfEitherKind: a request without a key is in doubt, or a pass has ended it and nobody was told. Whoever makes the keys of the
// one client and of the other, at random or of the request, the same request without a key is sent under the first key or not at all.
func TestKeysOfEitherKind(t *testing.T) {
	t.Parallel()
	for one, first := range keylessKinds() {
		for other, second := range keylessKinds() {
			for _, passed := range []bool{false, true} {
				name := one + ", " + other
				if passed {
					name += ", ended by a pass"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					eachJournal(t, func(t *testing.T, j persist.Journal) { eitherKind(t, j, j, first, second, passed) })
					bubbleOf(t, func(t *testing.T) {
						j := memory.New()
						eitherKind(t, newLeasing(j), newLeasing(j), first, second, passed)
					})
				})
			}
		}
	}
}

// bubbleOf is a subtest of two processes.
func bubbleOf(t *testing.T, f func(*testing.T)) {
	t.Run("two processes", func(t *testing.T) {
		t.Parallel()
		bubble(t, f)
	})
}

// eitherKind lets two clients send the same request without a key, one after the other.
func eitherKind(t *testing.T, one, other persist.Journal, first, second func(*oncehttp.Config), passed bool) {
	w := &wire{replies: []reply{{err: errLost}, {status: 201, body: "{}"}}}
	a, _ := newClient(t, w, on(one, oneAttempt, first))
	b, _ := newClient(t, w, on(other, oneAttempt, second))
	if _, _ = a.Do(companyRequest(t)); w.count() == 0 {
		return // it needs a key
	}
	sends := 1
	if passed {
		time.Sleep(time.Hour)
		resume(t, b)
		sends = 2
	}
	_, err := b.Do(companyRequest(t))
	again := w.count() - sends // under the same key only
	if len(w.keys()) != 1 || again > 1 || records(t, one) != 1 {
		t.Errorf("%v: sent under %v", err, w.keys())
	}
	var named *oncehttp.Error
	if errors.As(err, &named) && !errors.Is(err, oncehttp.ErrOutcomeUnknown) && !errors.Is(err, oncehttp.ErrKeyInvalid) {
		t.Errorf("%v, want that it is unknown", err)
	}
}

// TestKeyOfTheRequestIsKept: a key that is made of the request is kept like a caller's, whoever ends the operation: the same business is not
// begun again once its answer is swept.
func TestKeyOfTheRequestIsKept(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201, body: "{}"}}}
		brief := func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }
		of, _ := newClient(t, w, on(j, oneAttempt, brief, keylessKinds()["of the order"]))
		random, _ := newClient(t, w, on(j, oneAttempt, brief))
		_, _ = of.Do(companyRequest(t))
		time.Sleep(time.Hour)
		resume(t, random)
		for range 3 {
			time.Sleep(48 * time.Hour)
			if _, err := random.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := of.Do(companyRequest(t))
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || w.count() != 2 {
			t.Errorf("%v after %d sends", err, w.count())
		}
	})
}
