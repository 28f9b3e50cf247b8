package run

import (
	"context"
	"net/http"
	"net/url"
)

// Attempt has the fields of oncehttp.Attempt; see its documentation there.
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

// attemptContext is the context of one request handed to the Transport. It is a type of its own, to cost one allocation only.
type attemptContext struct {
	context.Context
	attempt Attempt
	sends   bool // it sends an operation; else it hides the attempt of another one in the caller's context
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
	req, err := r.requestFor(ctx, &attemptContext{send, r.attemptNow(), true}, &r.rec, target)
	if err == nil && r.authorizes(r.rec.Origin) {
		r.signed = req
	}
	return req, err
}

// attemptNow returns the attempt about to be sent.
func (r *run) attemptNow() Attempt {
	before := r.rec.Sends + r.sends() + r.begun
	if r.given.Doubted { // a process may have sent it, and died before the record of that
		before = max(before, 1)
	}
	return Attempt{Key: r.rec.Key, Number: r.drive.Attempts(), SendsBefore: before, Resumed: !r.given.Created}
}
