package run

import "context"

// Attempt has the fields of oncehttp.Attempt; see its documentation there.
type Attempt struct {
	// Key is the key of the operation that the request belongs to.
	Key string
	// Number counts the attempts of the run, from 1.
	Number int
	// SendsBefore counts the operation's sends before this one, also those of earlier runs.
	SendsBefore int
	// Resumed: an earlier call began the operation.
	Resumed bool
}

// AttemptFromContext implements oncehttp.AttemptFromContext: it returns the attempt to which a context belongs. sends is false if the request with this context
// sends no operation, such as a lookup; attempt is empty then.
func AttemptFromContext(ctx context.Context) (attempt Attempt, sends bool) {
	if of, found := ctx.Value(attemptKey{}).(*attemptContext); found {
		return of.attempt, of.sends
	}
	return Attempt{}, false
}

// attemptKey is the key of an attemptContext in itself.
type attemptKey struct{}

// attemptContext is the context of one request handed to the Transport. It is a type of its own, to cost one allocation only.
type attemptContext struct {
	context.Context         // the run's, with the values of Config.Instrument
	attempt         Attempt // for AttemptFromContext
	sends           bool    // it sends an operation; else it hides the attempt of another one in the caller's context
}

// Value implements context.Context. For attemptKey it returns the context itself, by which AttemptFromContext finds the attempt; for any
// other key the value of the context below.
func (c *attemptContext) Value(key any) any {
	if _, own := key.(attemptKey); own {
		return c
	}
	return c.Context.Value(key)
}
