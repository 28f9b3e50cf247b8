package run

import (
	"context"

	"github.com/oncehttp/oncehttp/internal/wire"
)

// This file asks the source of the credentials once more, after an answer that refuses those of an attempt.

// askSource does the step AskSource, after an answer 401 or 407: it lets Config.Authorize make the credentials of another attempt, and compares
// them with the refused ones. Nothing is sent. An error of Config.Authorize counts as no other credentials. A call that its callers have
// left, or whose client is closing, asks nobody.
func (a *attempts) askSource() {
	t := a.task
	other := false
	if stopCause(t.call) == nil {
		ctx, cancel := context.WithTimeoutCause(t.call.Context(), t.cfg.Retry.AttemptTimeout, wire.ErrAttemptTimeout)
		defer cancel()
		fresh, err := a.requests.requestFor(ctx, ctx, &t.rec, t.target)
		other = err == nil && ctx.Err() == nil && !sameCredentials(t, a.requests.signed, fresh)
	}
	t.drive.SourceAsked(other)
}
