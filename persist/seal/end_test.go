package seal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// ended makes a journal with a record that has lost its text, and returns the record as it is stored.
func ended(t *testing.T, c seal.Config, below persist.Journal, key string) persist.Record {
	t.Helper()
	ctx := t.Context()
	j, err := keysOf(t, below, c)
	if err != nil {
		t.Fatal(err)
	}
	rec := full(key)
	rec.KeptFields, rec.Replaces, rec.ReplacedBy, rec.Generated, rec.Evidence = nil, "", "", false, nil
	rec.Scopes, rec.KeepText, rec.KeepAnswer = []persist.Scope{{Name: "Stripe-Account", Value: "acct_1"}}, -1, -1
	if rec, _, err = j.Begin(ctx, rec); err != nil {
		t.Fatal(err)
	}
	rec.State, rec.HoldReason, rec.Effect, rec.Finished = persist.StateSettled, "", persist.EffectHappened, time.Now().Round(0)
	if err := j.Finish(ctx, rec); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Sweep(ctx, persist.Limits{Now: time.Now().Add(1e5 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	got, err := j.Get(ctx, rec.ID)
	if err != nil || !got.Erased || got.Effect != persist.EffectHappened || len(got.Scopes) != 1 || got.Scopes[0].Name != "Stripe-Account" {
		t.Fatalf("without its text: %t, %q, %v, error %v", got.Erased, got.Effect, got.Scopes, err)
	}
	raw, err := below.Get(ctx, sealer(t, c).StoredID(rec.ID))
	if err != nil || raw.SealedEnd == "" {
		t.Fatalf("stored: %q, error %v", raw.SealedEnd, err)
	}
	return raw
}

// TestSealedEnd: what is left of a record without its text says so if it was changed, or is that of another key, and needs the key that sealed it.
func TestSealedEnd(t *testing.T) {
	t.Parallel()
	below, c := memory.New(), seal.Config{Keys: []seal.Key{testKey("a")}}
	raw, other := ended(t, c, below, "one"), ended(t, c, below, "two")
	if _, err := sealer(t, c).Unseal(raw); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*persist.Record){
		"state":      func(r *persist.Record) { r.State, r.Effect = persist.StateAbandoned, "" },
		"effect":     func(r *persist.Record) { r.Effect = persist.EffectAbsent },
		"status":     func(r *persist.Record) { r.Status = 402 },
		"end":        func(r *persist.Record) { r.Finished = r.Finished.Add(time.Second) },
		"key":        func(r *persist.Record) { r.Key = other.Key },
		"of another": func(r *persist.Record) { r.SealedEnd = other.SealedEnd },
		"scopes": func(r *persist.Record) {
			b := []byte(r.SealedEnd)
			b[len(b)-1] ^= 1
			r.SealedEnd = string(b)
		},
		"seal":    func(r *persist.Record) { r.SealedEnd = "x" + r.SealedEnd[1:] },
		"cut off": func(r *persist.Record) { r.SealedEnd = r.SealedEnd[:15] },
		"short":   func(r *persist.Record) { r.SealedEnd = r.SealedEnd[:16] },
	} {
		changed := raw.Clone()
		change(&changed)
		if got, err := sealer(t, c).Unseal(changed); !errors.Is(err, persist.ErrSealed) || !errors.Is(err, persist.ErrCorrupt) {
			t.Errorf("another %s: %v %q, error %v", name, got.State, got.Effect, err)
		}
	}
	if _, err := sealer(t, seal.Config{Keys: []seal.Key{testKey("b"), testKey("a")}}).Unseal(raw); err != nil {
		t.Errorf("with the key behind another: %v", err)
	}
	if _, err := sealer(t, seal.Config{Keys: []seal.Key{testKey("b")}}).Unseal(raw); !errors.Is(err, persist.ErrSealed) {
		t.Errorf("without the key: %v", err)
	}
}
