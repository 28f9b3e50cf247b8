package seal_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// TestEraseUnderTheNewKey: an erased record needs no key but the current one.
func TestEraseUnderTheNewKey(t *testing.T) {
	t.Parallel()
	ctx, below := t.Context(), memory.New()
	a, b := testKey("a"), testKey("b")
	j, err := keysOf(t, below, seal.Config{Keys: []seal.Key{a}})
	if err != nil {
		t.Fatal(err)
	}
	rec, _, err := j.Begin(ctx, full("old"))
	if err != nil {
		t.Fatal(err)
	}
	rec.State, rec.HoldReason, rec.Finished = persist.StateAbandoned, "", time.Now().Round(0)
	if err := j.Finish(ctx, rec); err != nil {
		t.Fatal(err)
	}
	if j, err = keysOf(t, below, seal.Config{Keys: []seal.Key{b, a}}); err != nil {
		t.Fatal(err)
	}
	if rec, err = j.Get(ctx, rec.ID); err != nil {
		t.Fatal(err)
	}
	eraser, can := persist.As[persist.Eraser](j)
	if !can {
		t.Fatal("it cannot erase")
	}
	secret, err := j.Secret(ctx)
	if err != nil {
		t.Fatal(err)
	}
	erased := rec
	erased.Erase(secret)
	if _, err := eraser.Erase(ctx, erased, rec.Fingerprint); err != nil {
		t.Fatal(err)
	}
	if j, err = keysOf(t, below, seal.Config{Keys: []seal.Key{b}}); err != nil {
		t.Fatalf("without the old key: %v", err)
	}
	if got, err := j.Get(ctx, rec.ID); err != nil || !got.Erased {
		t.Errorf("the erased record: %t, %v", got.Erased, err)
	}
}
