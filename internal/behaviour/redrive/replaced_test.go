package redrive_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestAskedOfWhatWasReplaced: nobody was told of a refusal, or of an absence, and a person begins the operation once more. Only then a caller asks, with the first
// key: it is told of the other operation, while that may take effect, and of its effect. Had it been told "refused", it would go on under a key of its own.
func TestAskedOfWhatWasReplaced(t *testing.T) {
	t.Parallel()
	ask := map[string]func(f *family) error{
		"Do":      func(f *family) error { return f.do(f.Client, "k") },
		"Enqueue": func(f *family) error { return f.Enqueue(charge(t), "k") },
	}
	for _, rekeyed := range []bool{false, true} {
		for name, ask := range ask {
			synctest.Test(t, func(t *testing.T) {
				next, last := oncehttp.Key("k:gen=2"), oncehttp.Key("k:gen=3")
				f := newFamily(t, nil, cardError, cardError, paid)
				if rekeyed {
					next, last, f = "x", "x:gen=2", newFamily(t, nil, lostReply, cardError, paid)
				}
				f.enqueue("k")
				if rekeyed {
					f.absent("k")
					clienttest.Must(t, f.rekeyed("k", next))
				} else {
					f.redriven("k")
				}
				pending := ask(f)
				f.refused(pending)
				if e := (*oncehttp.Error)(nil); !errors.As(pending, &e) || e.Key != next || !strings.Contains(pending.Error(), `to replace "k"`) {
					t.Errorf("%s, rekeyed %t: %v", name, rekeyed, pending)
				}
				clienttest.Resume(t, f.Client) // refused, too
				if err := ask(f); rekeyed && !errors.Is(err, oncehttp.ErrNoEffect) || !rekeyed && name == "Enqueue" && !errors.Is(err, oncehttp.ErrFinal) || !rekeyed && name == "Do" && err != nil {
					t.Errorf("%s, rekeyed %t, when both had no effect: %v", name, rekeyed, err)
				}
				f.redriven(next)
				f.refused(ask(f))
				f.unclear(next, last)
				clienttest.Resume(t, f.Client)
				err := ask(f)
				if e := (*oncehttp.Error)(nil); !errors.Is(err, oncehttp.ErrFinal) || !errors.As(err, &e) || e.Effect() != persist.EffectHappened || e.Key != last {
					t.Errorf("%s, rekeyed %t, when the last one took effect: %v", name, rekeyed, err)
				}
				f.sends(3)
			})
		}
	}
}

// TestAskedTellsOfTheReplacement: a call with the first key is told that the other operation happened, as a person has settled it. The record of that one says that a
// caller was told: who takes the settlement back must know. (Invariant 55.)
func TestAskedTellsOfTheReplacement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, nil, cardError, lostReply)
		f.enqueue("k")
		f.redriven("k")
		clienttest.Resume(t, f.Client)
		seen := clienttest.Lookup(t, f.Client, "k:gen=2")
		clienttest.Must(t, f.Settle(t.Context(), "k:gen=2", oncehttp.Resolution{Effect: persist.EffectHappened}, oncehttp.AsSeen(seen)))
		if rec := clienttest.Lookup(t, f.Client, "k:gen=2"); rec.Told {
			t.Fatal("told before anybody has asked")
		}
		if err := f.Enqueue(charge(t), "k"); !errors.Is(err, oncehttp.ErrFinal) {
			t.Errorf("%v, want ErrFinal", err)
		}
		if rec := clienttest.Lookup(t, f.Client, "k:gen=2"); !rec.Told {
			t.Error("the record does not say that a caller was told")
		}
	})
}

// TestAskedOfABrokenOffAct: the mark of a Redrive stands, and the operation was never begun. A caller that asks is not told "refused".
func TestAskedOfABrokenOffAct(t *testing.T) {
	t.Parallel()
	f := newFamily(t, nil, cardError)
	f.enqueue("k")
	rec := clienttest.Lookup(t, f.Client, "k")
	rec.ReplacedBy, rec.KeepKey = "k:gen=2", 0
	_, err := f.journal.Amend(t.Context(), rec)
	clienttest.Must(t, err)
	f.refused(f.do(f.Client, "k"))
	f.refused(f.Enqueue(charge(t), "k"))
	f.redriven("k") // the same act goes on
	f.sends(1)
}

// unclear fails the test unless calls with the first key that begin nothing say nothing of an effect, while the operation last may take one.
func (f *family) unclear(next, last oncehttp.Key) {
	f.t.Helper()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	closed := f.client()
	clienttest.Must(f.t, closed.Close())
	other := clienttest.Request(f.t, http.MethodPost, "https://api.example.com/v1/charges", "amount=7&currency=eur")
	for name, call := range map[string]func() error{
		"an ended context": func() error { _, err := f.DoKey(charge(f.t).WithContext(ended), "k"); return err },
		"Enqueue":          func() error { return f.Enqueue(charge(f.t).WithContext(ended), "k") },
		"a closed client":  func() error { return f.do(closed, "k") },
	} {
		err := call()
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) || e.Key != last {
			f.t.Errorf("%s, while %s is pending: %v", name, last, err)
		}
	}
	if _, err := f.DoKey(other, "k"); !errors.Is(err, oncehttp.ErrKeyReused) || strings.Contains(err.Error(), string(next)) {
		f.t.Errorf("another request: %v, want no advice of %s", err, next)
	}
}
