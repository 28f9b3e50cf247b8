package run

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Sweep is oncehttp.Client.Sweep.
func (c *Client) Sweep(ctx context.Context) (int, error) {
	return c.sweep(ctx, "Sweep", func() (persist.Limits, error) { return persist.Limits{KeepAnswer: c.cfg.KeepAnswer}, nil })
}

// Prune is oncehttp.Client.Prune.
func (c *Client) Prune(ctx context.Context, keepAnswer, keepKey, keepText time.Duration) (int, error) {
	return c.sweep(ctx, "Prune", func() (persist.Limits, error) {
		asked := c.cfg
		asked.KeepAnswer, asked.KeepKey, asked.KeepText = keepAnswer, keepKey, keepText
		if err := cmp.Or(asked.checkUnits(), asked.checkWindows()); err != nil {
			return persist.Limits{}, fmt.Errorf("oncehttp: prune: %w: %w", ErrConfig, err)
		}
		return persist.Limits{Prune: true, KeepAnswer: keepAnswer, KeepKey: keepKey, KeepText: keepText}, nil
	})
}

// sweep sweeps until nothing is left to do, for the call of this name. limits is asked once the call has begun, of a client made by New.
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
	if err := c.engine.clock.Sync(ctx, c.engine.host); err != nil {
		return 0, err
	}
	if err := c.engine.doubts.lookAgain(ctx, math.MaxInt); err != nil { // before the sweep drops records still to be shown
		return 0, err
	}
	total := 0
	defer func() {
		if total > 0 {
			c.cfg.observe(ctx, &Event{Kind: EventSwept, Count: total})
		}
	}()
	for {
		l.Now = c.engine.now()
		n, err := c.cfg.Journal.Sweep(ctx, l)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}
