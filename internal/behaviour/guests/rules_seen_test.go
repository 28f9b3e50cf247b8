package guests_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// personsActs are what a person does to the payment, as it was seen.
var personsActs = map[string]func(ctx context.Context, person *oncehttp.Client, seen persist.Record) error{
	"settled as absent": func(ctx context.Context, person *oncehttp.Client, seen persist.Record) error {
		return person.Settle(ctx, "payment", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(seen))
	},
	"abandoned": func(ctx context.Context, person *oncehttp.Client, seen persist.Record) error {
		return person.Abandon(ctx, "payment", oncehttp.AsSeen(seen))
	},
	"begun anew": func(ctx context.Context, person *oncehttp.Client, seen persist.Record) error {
		err := person.Settle(ctx, "payment", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(seen))
		return errors.Join(err, person.Rekey(ctx, "payment", "payment-again", "a test", oncehttp.AsSeen(seen)))
	},
}

// TestRuleAsSeen: in each place a person acts on the payment as it was seen before the call, or in the place, then and there and once
// more when the call is over. Each answer is lost after the effect. An act on what was sent since is refused as stale, nothing that took
// effect ends as absent, and no payment is made twice.
func TestRuleAsSeen(t *testing.T) {
	t.Parallel()
	var variants []string
	for _, act := range []string{"settled as absent", "abandoned", "begun anew"} {
		variants = append(variants, act+" as seen before", act+" as seen in it")
	}
	ruleCells(t, places(), variants, actInside, judgeAct)
}

// actOf is the act of a variant, and whether it is on what is seen in the place.
func actOf(variant string) (act func(context.Context, *oncehttp.Client, persist.Record) error, inside bool) {
	for name, act := range personsActs {
		if variant == name+" as seen before" || variant == name+" as seen in it" {
			return act, variant == name+" as seen in it"
		}
	}
	panic(variant)
}

// actInside lets the person act in the place.
func actInside(r *rule, variant string) {
	act, inside := actOf(variant)
	r.tune = onceOnly
	r.prepare = func() {
		r.server.loses.Store(true)
		r.asPerson()
		r.seen, _ = r.record()
	}
	r.ask.do = func(_ *cell, ctx context.Context, _ oncehttp.Key) error {
		if rec, ok := r.record(); inside && ok {
			r.seen = rec
		}
		seen := r.seen
		r.extra.Go(func() { _ = act(ctx, r.person, seen) })
		return nil
	}
}

// judgeAct acts once more, and looks at the end.
func judgeAct(r *rule, variant string, _ ending) {
	act, _ := actOf(variant)
	before, _ := r.record()
	sent := r.server.ledger()["payment"] - int(r.seen.Sends)
	err := act(r.ctx, r.person, r.seen)
	switch {
	case sent > 0 && err == nil:
		r.Errorf("%s, and it was sent %d times since", variant, sent)
	case sent > 0 && !before.State.Final() && !errors.Is(err, oncehttp.ErrStale) && !r.assigned():
		r.Errorf("it was sent %d times since: %v", sent, err)
	}
	r.server.loses.Store(false)
	r.armed.Store(false)
	time.Sleep(time.Hour) // all pauses
	for range r.person.Resume(r.ctx) {
	}
	ledger := r.server.ledger() // what was seen as sent is the person's own word
	sent = ledger["payment"] - int(r.seen.Sends)
	if rec, _ := r.record(); rec.Effect == persist.EffectAbsent && sent > 0 {
		r.Errorf("it is settled as absent, and was sent %d times", ledger["payment"])
	}
	if sent > 0 && ledger["payment-again"] > 0 {
		r.Errorf("paid twice: %v", ledger)
	}
	if err := r.person.Close(); err != nil {
		r.Error(err)
	}
}
