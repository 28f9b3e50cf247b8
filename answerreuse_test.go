package oncehttp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestOtherBytesAfterTheAnswer: an Enqueue of other bytes has no effect, since the operation that has the key took place.
func TestOtherBytesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _, _ := answered(t)
		err := c.Enqueue(post(t, `{"other":1}`), "k")
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("%v; want no effect", err)
		}
		var e *oncehttp.Error
		if errors.As(err, &e) && e.State != persist.StateConfirmed {
			t.Errorf("the state is %v", e.State)
		}
	})
}

// TestRekeyToAnAnsweredKey: a Rekey to the key of an operation whose record is written a moment later says how that ended.
func TestRekeyToAnAnsweredKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &recording{Journal: memory.New(), takes: time.Minute}
		c, _ := newClient(t, &wire{replies: paid.replies}, on(j))
		if err := c.Enqueue(post(t, "{}"), "old"); err != nil {
			t.Fatal(err)
		}
		if err := c.Settle(t.Context(), "old", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		err := c.Rekey(t.Context(), "old", "k", "a test")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrKeyReused) || e.State != persist.StateConfirmed {
			t.Errorf("%v, %+v; want the state confirmed", err, e)
		}
	})
}
