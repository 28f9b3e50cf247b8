package clienttest

import (
	"context"
	"testing"

	"github.com/oncehttp/oncehttp"
)

// SettleAsSeen looks an operation up, and settles it as seen: Settle is refused if the record has changed meanwhile. If the look fails, an absent effect cannot
// be settled, and its error is the result; any other effect is settled without it, whatever the record is.
func SettleAsSeen(c *oncehttp.Client, ctx context.Context, key oncehttp.Key, r oncehttp.Resolution, options ...oncehttp.LookupOption) error {
	rec, err := c.Lookup(ctx, key, options...)
	if err == nil {
		options = append(options, oncehttp.AsSeen(rec))
	}
	if err != nil && r.Effect == oncehttp.EffectAbsent { // an absent effect needs the record
		return err
	}
	return c.Settle(ctx, key, r, options...)
}

// AbsentAsSeen looks an operation up, and settles it: a person says that it had no effect. It returns the error of either call.
func AbsentAsSeen(c *oncehttp.Client, ctx context.Context, key oncehttp.Key, options ...oncehttp.LookupOption) error {
	return SettleAsSeen(c, ctx, key, oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, options...)
}

// RekeyAsSeen looks an operation up, and begins its request once more under newKey, as seen: Rekey is refused if the record has changed meanwhile.
func RekeyAsSeen(c *oncehttp.Client, ctx context.Context, key, newKey oncehttp.Key, reason string, options ...oncehttp.LookupOption) error {
	rec, _ := c.Lookup(ctx, key, options...) // if this fails, Rekey returns the reason, too
	return c.Rekey(ctx, key, newKey, reason, append(options, oncehttp.AsSeen(rec))...)
}

// Absent settles an operation as one without an effect, as a person would, and fails the test on an error.
func Absent(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
	t.Helper()
	if err := AbsentAsSeen(c, t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// Enders returns the two calls to end an operation by hand, by name: Settle, as one without an effect, and Abandon.
func Enders() map[string]func(context.Context, *oncehttp.Client, oncehttp.Key) error {
	return map[string]func(context.Context, *oncehttp.Client, oncehttp.Key) error{
		"Settle": func(ctx context.Context, c *oncehttp.Client, key oncehttp.Key) error {
			return AbsentAsSeen(c, ctx, key)
		},
		"Abandon": func(ctx context.Context, c *oncehttp.Client, key oncehttp.Key) error { return c.Abandon(ctx, key) },
	}
}
