package oncehttp_test

import (
	"context"

	"github.com/oncehttp/oncehttp"
)

// settleAsSeen looks an operation up, and settles it as it is seen.
func settleAsSeen(c *oncehttp.Client, ctx context.Context, key oncehttp.Key, r oncehttp.Resolution, options ...oncehttp.LookupOption) error {
	rec, err := c.Lookup(ctx, key, options...)
	if err == nil {
		options = append(options, oncehttp.AsSeen(rec))
	}
	if err != nil && r.Effect == oncehttp.EffectAbsent { // which needs it
		return err
	}
	return c.Settle(ctx, key, r, options...)
}

// absentAsSeen is settleAsSeen, as absent.
func absentAsSeen(c *oncehttp.Client, ctx context.Context, key oncehttp.Key, options ...oncehttp.LookupOption) error {
	return settleAsSeen(c, ctx, key, oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, options...)
}

// rekeyAsSeen looks an operation up, and begins it once more as it is seen.
func rekeyAsSeen(c *oncehttp.Client, ctx context.Context, key, newKey oncehttp.Key, reason string, options ...oncehttp.LookupOption) error {
	rec, _ := c.Lookup(ctx, key, options...) // where that fails, Rekey says why, too
	return c.Rekey(ctx, key, newKey, reason, append(options, oncehttp.AsSeen(rec))...)
}
