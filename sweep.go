package oncehttp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Sweep drops answers and forgets keys, of every account in the journal, as far as their records allow it, and returns how many
// records it changed: see Config.KeepAnswer and Config.KeepKey. What another client began is kept as that one's Config says. Run
// does so hourly.
func (c *Client) Sweep(ctx context.Context) (int, error) {
	return c.sweep(ctx, "Sweep", func() (persist.Limits, error) { return persist.Limits{KeepAnswer: c.cfg.KeepAnswer}, nil })
}

// Keeping is for how long a Prune keeps what has ended.
type Keeping struct {
	// KeepAnswer is how long after their end answers are kept. Zero: as their records say. Negative: not at all.
	KeepAnswer time.Duration
	// KeepKey is how long after their end it is remembered that keys were used. Zero: as their records say. Negative: no longer than
	// the answers. Else at least the window of each profile, as Config.KeepKey.
	KeepKey time.Duration
}

// Prune is Sweep with times that go before those of the records, also of other clients and accounts. An answer that is gone is not
// replayed, and a forgotten key is new again: the next call with it may take effect once more. Error: ErrConfig for a Keeping
// that no Config could have.
func (c *Client) Prune(ctx context.Context, keep Keeping) (int, error) {
	return c.sweep(ctx, "Prune", func() (persist.Limits, error) {
		asked := c.cfg
		asked.KeepAnswer, asked.KeepKey = keep.KeepAnswer, keep.KeepKey
		if err := cmp.Or(asked.checkUnits(), asked.checkWindows()); err != nil {
			return persist.Limits{}, fmt.Errorf("oncehttp: prune: %w: %w", ErrConfig, err)
		}
		return persist.Limits{Prune: true, KeepAnswer: keep.KeepAnswer, KeepKey: keep.KeepKey}, nil
	})
}

// sweep sweeps until nothing is left to do, for the call of this name. limits is asked once the call has begun, of a client that New made.
func (c *Client) sweep(ctx context.Context, name string, limits func() (persist.Limits, error)) (int, error) {
	ctx, leave, err := c.visit(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("oncehttp: %s: %w", strings.ToLower(name), err)
	}
	defer leave()
	l, err := limits()
	if err != nil {
		return 0, err
	}
	if err := c.engine.clock.sync(ctx, &c.cfg); err != nil {
		return 0, err
	}
	if err := c.engine.lookAgain(ctx, math.MaxInt); err != nil { // before it drops what would be shown
		return 0, err
	}
	total := 0
	for {
		l.Now = c.engine.now()
		n, err := c.cfg.Journal.Sweep(ctx, l)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}
