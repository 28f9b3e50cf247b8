package operation

import (
	"testing"
	"time"
)

// Each limit of a wait, at it and one past it.
func TestPlanNext(t *testing.T) {
	t.Parallel()
	const s = time.Second
	now := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		change func(*Plan)
		want   Stop
		wait   time.Duration
	}{
		"as scheduled":              {func(*Plan) {}, GoesOn, 2 * s},
		"as the server asks":        {func(p *Plan) { p.Hint = 9 * s }, GoesOn, 9 * s},
		"asked for less":            {func(p *Plan) { p.Hint = s }, GoesOn, 2 * s},
		"Retry-After at its most":   {func(p *Plan) { p.Hint = time.Minute }, GoesOn, time.Minute},
		"a longer Retry-After":      {func(p *Plan) { p.Hint = time.Minute + 1 }, LongRetryAfter, time.Minute + 1},
		"one attempt is left":       {func(p *Plan) { p.Attempts = 2 }, GoesOn, 2 * s},
		"no attempt is left":        {func(p *Plan) { p.Attempts = 3 }, AttemptsSpent, 2 * s},
		"in flight, once more":      {func(p *Plan) { p.InFlight = 1 }, GoesOn, 2 * s},
		"in flight too often":       {func(p *Plan) { p.InFlight = 2 }, InFlightSpent, 2 * s},
		"never in flight, no cap":   {func(p *Plan) { p.Client.MaxInFlight = 0 }, GoesOn, 2 * s},
		"in flight, no cap":         {func(p *Plan) { p.Client.MaxInFlight, p.InFlight = 0, 1 }, InFlightSpent, 2 * s},
		"an equal error, once more": {func(p *Plan) { p.Errors = ErrorsMax - 1 }, GoesOn, 2 * s},
		"equal errors too often":    {func(p *Plan) { p.Errors = ErrorsMax }, ErrorRepeats, 2 * s},
		"equal errors, and more":    {func(p *Plan) { p.Errors = ErrorsMax + 1 }, ErrorRepeats, 2 * s},
		"time at its most":          {func(p *Plan) { p.Started = now.Add(2*s - 2*time.Minute) }, GoesOn, 2 * s},
		"time is spent":             {func(p *Plan) { p.Started = now.Add(2*s - 2*time.Minute - 1) }, ElapsedSpent, 2 * s},
		"before the deadline":       {func(p *Plan) { p.Deadline = now.Add(2*s + 1) }, GoesOn, 2 * s},
		"at the deadline":           {func(p *Plan) { p.Deadline = now.Add(2 * s) }, DeadlineNear, 2 * s},
		"before the window ends":    {func(p *Plan) { p.WindowEnd = now.Add(2*s + 1) }, GoesOn, 2 * s},
		"as the window ends":        {func(p *Plan) { p.WindowEnd = now.Add(2 * s) }, WindowNear, 2 * s},
		"asked for the end of the window": {func(p *Plan) {
			p.Hint, p.WindowEnd, p.LastAsk = 30*s, now.Add(30*s), now.Add(20*s)
		}, GoesOn, 20 * s},
		"asked for just before it": {func(p *Plan) {
			p.Hint, p.WindowEnd, p.LastAsk = 30*s, now.Add(30*s+1), now.Add(20*s)
		}, GoesOn, 30 * s},
		"asked for later, at the last ask": {func(p *Plan) {
			p.Hint, p.WindowEnd, p.LastAsk = 30*s, now.Add(30*s), now
		}, WindowNear, 30 * s},
		"asked for a century": {func(p *Plan) {
			p.Hint, p.WindowEnd, p.Client.MaxRetryAfter = 100*HintMax, now.Add(2*HintMax), time.Hour
		}, LongRetryAfter, HintMax},
	} {
		p := Plan{
			Client: &Client{MaxAttempts: 3, MaxInFlight: 2, MaxElapsed: 2 * time.Minute, MaxRetryAfter: time.Minute},
			Now:    now, Started: now, WindowEnd: now.Add(time.Hour), Attempts: 1, Scheduled: 2 * s,
		}
		c.change(&p)
		wait, next, stop := p.Next()
		if stop != GoesOn { // the wait is in the time at which it is worth going on
			if wait != 0 {
				t.Errorf("%s: stopped, and waits %v", name, wait)
			}
			wait = next.Sub(now)
		} else if !next.IsZero() {
			t.Errorf("%s: goes on, and not before %v", name, next)
		}
		if stop != c.want || wait != c.wait {
			t.Errorf("%s: %v, stop %d; want %v, %d", name, wait, stop, c.wait, c.want)
		}
	}
}

func TestClampDelay(t *testing.T) {
	t.Parallel()
	for c, want := range map[[3]time.Duration]time.Duration{
		{-1, 0, 9}: 0, {5, 0, 9}: 5, {10, 0, 9}: 9, {1, 2, 9}: 2, {1, 20, 9}: 20,
	} {
		if got := ClampDelay(c[0], c[1], c[2]); got != want {
			t.Errorf("%v: %v, want %v", c, got, want)
		}
	}
}
