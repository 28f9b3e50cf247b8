package redrive_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/intent"
)

// This file is about one intent with many tries.

// TestFarGeneration: a program went on to the seventh generation, and the journal has forgotten those between. Nothing is begun in the place of the first, nor
// is its settlement taken back; and nothing of a far generation is sent beside a first one that has not ended.
func TestFarGeneration(t *testing.T) {
	t.Parallel()
	far := oncehttp.Key("k:gen=8")
	acts := map[string]func(f *family) error{
		"Redrive":  func(f *family) error { _, err := f.Redrive(f.t.Context(), "k"); return err },
		"Rekey":    func(f *family) error { return f.rekeyed("k", "x") },
		"Unsettle": func(f *family) error { _, err := f.Unsettle(f.t.Context(), "k", "a mistake"); return err },
	}
	for name, act := range acts {
		synctest.Test(t, func(t *testing.T) {
			f := newFamily(t, nil, lostReply, paid)
			f.enqueue("k")
			f.refused(f.do(f.Client, far))
			f.absent("k")
			clienttest.Must(t, f.do(f.Client, far))
			if err := act(f); !errors.Is(err, oncehttp.ErrKeyReused) {
				t.Errorf("%s: %v", name, err)
			}
			clienttest.Resume(t, f.Client)
			f.sends(2)
		})
	}
}

// TestManyGenerations: beside more operations of one intent than are looked at nothing is begun, by whatever call: nobody would know what became of the oldest.
func TestManyGenerations(t *testing.T) {
	t.Parallel()
	last := oncehttp.Key("k").Generation(intent.IntentMax + 1)
	for _, redriven := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFamily(t, nil, cardError)
			f.enqueue("k")
			for g := 1; g <= intent.IntentMax; g++ {
				if redriven {
					f.redriven(oncehttp.Key("k").Generation(g))
					clienttest.Resume(t, f.Client)
				} else {
					clienttest.Must(t, f.do(f.Client, oncehttp.Key("k").Generation(g+1)))
				}
			}
			beyond := oncehttp.Key("k").Generation(intent.IntentMax + 2)
			f.refused(f.do(f.Client, beyond))
			f.refused(f.Enqueue(charge(t), beyond))
			_, err := f.Redrive(t.Context(), last)
			f.refused(err)
			f.sends(intent.IntentMax + 1)
		})
	}
}
