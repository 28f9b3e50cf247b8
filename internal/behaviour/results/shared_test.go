package results_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// overtaking is a journal in which another process begins to deliver a hold, just before it ends.
type overtaking struct {
	*memory.Journal
	from time.Time // the delivery ends then
	held persist.HoldReason
}

func (o *overtaking) Finish(ctx context.Context, rec persist.Record) error {
	if from := o.from; !from.IsZero() {
		o.from = time.Time{}
		if ok, err := o.Postpone(ctx, rec.ID, rec.Revision, from); !ok || err != nil {
			return errors.Join(errors.New("it was not postponed"), err)
		}
		if now, err := o.Get(ctx, rec.ID); err == nil && o.held != "" {
			now.HoldReason = o.held
			_, err = o.Update(ctx, now)
			return errors.Join(err, o.Journal.Finish(ctx, rec))
		}
	}
	return o.Journal.Finish(ctx, rec)
}

// TestActBesideADelivery: a delivery of a hold that begins between the look of an act and its write does not stand in the way, and the end is
// owed once that is over. Any other change does stand in the way.
func TestActBesideADelivery(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*oncehttp.Client) error{
		"settled": func(c *oncehttp.Client) error {
			return c.Settle(context.Background(), "k", oncehttp.Resolution{Effect: persist.EffectHappened})
		},
		"abandoned": func(c *oncehttp.Client) error { return c.Abandon(context.Background(), "k") },
	} {
		for _, other := range []persist.HoldReason{"", persist.HoldUnclear} {
			synctest.Test(t, func(t *testing.T) {
				b := business{fails: 1 << 20}
				j := &overtaking{Journal: memory.New(), held: other}
				c := client(t, j, &b, wiretest.Reply{Status: 302})
				clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
				pass(t, c, time.Hour)
				until := time.Now().Add(time.Minute).UTC()
				j.from = until
				err := act(c)
				if other != "" {
					if !errors.Is(err, oncehttp.ErrStale) {
						t.Errorf("%s, after a change of the hold: %v; want ErrStale", name, err)
					}
					return
				}
				if rec := clienttest.Lookup(t, c, "k"); err != nil || rec.State.String() != name || !rec.OwedFrom.Equal(until) {
					t.Errorf("%s: %v, and it is %v, owed from %v; want from %v", name, err, rec.State, rec.OwedFrom, until)
				}
			})
		}
	}
}

// TestTakenByAnother: what another process has taken for its delivery, this one leaves alone until then; a process that died has delivered
// nothing.
func TestTakenByAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b business
		j := memory.New()
		c := client(t, j, &b, wiretest.Reply{Status: 302})
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		pass(t, client(t, j, nil, wiretest.Reply{Status: 302}), time.Minute)
		rec := clienttest.Lookup(t, c, "k")
		if ok, err := j.Postpone(t.Context(), rec.ID, rec.Revision, time.Now().Add(time.Minute)); !ok || err != nil {
			t.Fatalf("Postpone: %t, %v", ok, err)
		}
		pass(t, c, 59*time.Second)
		b.want(t, "while another has it")
		pass(t, c, 2*time.Second)
		b.want(t, "after that", "k held 302")
		if rec := clienttest.Lookup(t, c, "k"); rec.Owed() {
			t.Error("it is still owed")
		}
	})
}

// TestFailedDeliveryIsGivenBack: after a failure, or a panic, another process may deliver a second later, and need not wait for the end of the call's time.
func TestFailedDeliveryIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]func(){"error": nil, "panic": func() { panic("a bug") }} {
		synctest.Test(t, func(t *testing.T) {
			b := business{fails: 1, once: once}
			j := memory.New()
			c := client(t, j, &b, wiretest.Reply{Status: 302})
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
			pass(t, c, 100*time.Millisecond)
			rec := clienttest.Lookup(t, c, "k")
			if wait := time.Until(rec.OwedFrom); !rec.Owed() || wait > time.Second {
				t.Errorf("after the %s it is owed %t, in %v; want true, within a second", name, rec.Owed(), wait)
			}
		})
	}
}
