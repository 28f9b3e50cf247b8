package redrive_test

import (
	"errors"
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
