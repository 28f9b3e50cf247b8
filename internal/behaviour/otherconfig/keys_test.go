package otherconfig_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
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
					journaltest.Each(t, func(t *testing.T, j persist.Journal) { eitherKind(t, j, j, first, second, passed) })
					journaltest.TwoProcesses(t, func(t *testing.T) {
						j := memory.New()
						eitherKind(t, journaltest.NewLeasing(j), journaltest.NewLeasing(j), first, second, passed)
					})
				})
			}
		}
	}
}

// eitherKind lets two clients send the same request without a key, one after the other.
func eitherKind(t *testing.T, one, other persist.Journal, first, second func(*oncehttp.Config), passed bool) {
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}
	a, _ := clienttest.New(t, w, clienttest.On(one, clienttest.OneAttempt, first))
	b, _ := clienttest.New(t, w, clienttest.On(other, clienttest.OneAttempt, second))
	if _, _ = a.Do(companyRequest(t)); w.Count() == 0 {
		return // it needs a key
	}
	sends := 1
	if passed {
		time.Sleep(time.Hour)
		clienttest.Resume(t, b)
		sends = 2
	}
	_, err := b.Do(companyRequest(t))
	again := w.Count() - sends // under the same key only
	if len(w.Keys()) != 1 || again > 1 || journaltest.Count(t, one) != 1 {
		t.Errorf("%v: sent under %v", err, w.Keys())
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
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}
		brief := func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }
		of, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, brief, keylessKinds()["of the order"]))
		random, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, brief))
		_, _ = of.Do(companyRequest(t))
		time.Sleep(time.Hour)
		clienttest.Resume(t, random)
		for range 3 {
			time.Sleep(48 * time.Hour)
			if _, err := random.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := of.Do(companyRequest(t))
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || w.Count() != 2 {
			t.Errorf("%v after %d sends", err, w.Count())
		}
	})
}
