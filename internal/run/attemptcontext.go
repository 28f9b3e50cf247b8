package run

import (
	"context"
	"net/http"
	"net/url"
)

// Attempt has the fields of oncehttp.Attempt, whose documentation is there.
type Attempt struct {
	Key         string
	Number      int
	SendsBefore int
	Resumed     bool
}

// AttemptFromContext is oncehttp.AttemptFromContext.
func AttemptFromContext(ctx context.Context) (attempt Attempt, sends bool) {
	if of, found := ctx.Value(attemptKey{}).(*attemptContext); found {
		return of.attempt, of.sends
	}
	return Attempt{}, false
}

// attemptKey is the key of an attemptContext in itself.
type attemptKey struct{}

// attemptContext is the context of one request that is handed to the Transport. It is a type of its own, so that it costs one allocation.
type attemptContext struct {
	context.Context
	attempt Attempt
	sends   bool // it sends an operation; else it hides what the caller's context says of another one
}

// Value returns c for attemptKey.
func (c *attemptContext) Value(key any) any {
	if _, own := key.(attemptKey); own {
		return c
	}
	return c.Context.Value(key)
}

// attemptRequest returns the request of the operation itself, for one send.
func (r *run) attemptRequest(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	return r.requestFor(ctx, &attemptContext{send, r.attemptNow(), true}, &r.rec, target)
}

// attemptNow returns the attempt that is about to be sent.
func (r *run) attemptNow() Attempt {
	before := r.rec.Sends + r.sends() + r.begun
	if r.given.Doubted { // whoever may have sent it may have died before that was recorded
		before = max(before, 1)
	}
	return Attempt{Key: r.rec.Key, Number: r.drive.Attempts(), SendsBefore: before, Resumed: !r.given.Created}
}
