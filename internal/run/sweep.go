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

// Sweep implements oncehttp.Client.Sweep: it drops the parts of records whose time is over, and returns the number of records swept.
func (c *Client) Sweep(ctx context.Context) (int, error) {
	return sweep(ctx, c, "Sweep", func() (persist.Limits, error) { return persist.Limits{KeepAnswer: c.cfg.KeepAnswer}, nil })
}

// Prune implements oncehttp.Client.Prune: it is a Sweep with times of the caller's for answers, keys and texts.
func (c *Client) Prune(ctx context.Context, keepAnswer, keepKey, keepText time.Duration) (int, error) {
	return sweep(ctx, c, "Prune", func() (persist.Limits, error) {
		// A copy with the limits of the call, for the same checks as those of a Config.
		asked := c.cfg
		asked.KeepAnswer, asked.KeepKey, asked.KeepText = keepAnswer, keepKey, keepText
		if err := cmp.Or(checkUnits(&asked), checkWindows(&asked)); err != nil {
			return persist.Limits{}, fmt.Errorf("oncehttp: prune: %w: %w", ErrConfig, err)
		}
		return persist.Limits{Prune: true, KeepAnswer: keepAnswer, KeepKey: keepKey, KeepText: keepText}, nil
	})
}

// sweep removes the parts of records whose time is over, until nothing is left to do. name is that of the method called. limits is called
// once the call has begun, and only for a client made by New. It returns the number of records swept, also beside an error. A Sweep uses
// the times in each record; a Prune has limits of its own.
func sweep(ctx context.Context, c *Client, name string, limits func() (persist.Limits, error)) (int, error) {
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
	for { // a journal sweeps a part at a time, so that other calls get on
		// Anew for each part: a large journal takes minutes. The earliest possible time: no clock set forward meanwhile drops a key
		// that the API still knows.
		l.Now = c.engine.clock.Earliest()
		n, err := c.cfg.Journal.Sweep(ctx, l)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}
