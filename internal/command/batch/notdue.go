package batch

import (
	"cmp"
	"context"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
)

// notDue honours a wait asked for by the server in an earlier run. It waits for up to --max-retry-after, and returns false: the row may be sent. For a longer wait,
// or if ctx ends, it returns the row's line and true: the row is left to a later run.
func (b *batch) notDue(ctx context.Context, r *input.Row) (results.Line, bool) {
	rec, err := b.lookup(ctx, b.plan.keyOf(r, b.plan.generation))
	wait := time.Until(rec.NextAttempt)
	if err == nil && b.lacks(&rec).Need != acts.Nothing {
		return results.Line{}, false // nothing would be sent after the wait, and Do says why
	}
	if err != nil || rec.State != persist.StatePending || rec.NextAttempt.IsZero() || wait <= 0 {
		return results.Line{}, false
	}
	if wait <= cmp.Or(b.flags.Retry.MaxRetryAfter, time.Minute) { // the client's default, too
		timer := time.NewTimer(wait)
		defer timer.Stop()
		b.bar.pause(rec.Key, rec.NextAttempt)
		defer b.bar.pause(rec.Key, time.Time{})
		select {
		case <-timer.C:
			return results.Line{}, false
		case <-ctx.Done():
		}
	}
	return results.Line{
		Key: rec.Key, Result: results.Unknown, Outcome: oncehttp.OutcomeOf(&rec).String(), Source: results.SourceName(oncehttp.SourceJournal), State: rec.State.String(),
		Exit: terminal.ExitUnknown, GoesOn: true, Due: rec.NextAttempt, Attempts: rec.Attempts, Sends: rec.Sends,
		Error: &results.LineError{Code: "not_due", Message: "the next attempt is not due before " + rec.NextAttempt.UTC().Format(time.RFC3339)},
	}, true
}

// lacks returns the first condition of a record that this run does not meet, as its client says once it has the row's request. Credentials are none: the client sends
// those of the row's request, or none.
func (b *batch) lacks(rec *persist.Record) acts.Lack {
	lack := b.sender.Lacks(rec)
	if lack.Need == acts.Authorize && len(rec.Omitted) > 0 {
		return acts.Lack{}
	}
	return lack
}
