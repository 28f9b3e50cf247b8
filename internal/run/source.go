package run

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
)

// This file asks the source of the credentials once more, after an answer that refuses those of an attempt.

// authorizes reports whether Config.Authorize gives the credentials of a request to the origin. A request made by such an Authorize goes out
// without them.
func (r *run) authorizes(origin string) bool {
	return r.cfg.Authorize != nil && !r.call.Work().Authorizes(origin)
}

// askSource does the step AskSource: it makes the request of another attempt, and compares its credentials with the refused ones. Nothing is sent.
// An error of Config.Authorize counts as no other credentials. A call that was given up, or is draining, asks nobody.
func (r *run) askSource() {
	other := false
	if r.stopCause() == nil {
		ctx, cancel := context.WithTimeoutCause(r.call.Context(), r.cfg.Retry.AttemptTimeout, wire.ErrAttemptTimeout)
		defer cancel()
		fresh, err := r.requestFor(ctx, ctx, &r.rec, r.target)
		other = err == nil && ctx.Err() == nil && !r.sameCredentials(r.signed, fresh)
	}
	r.drive.SourceAsked(other)
}

// sameCredentials reports whether two requests of the operation have the same credentials. Of a signature the id of its key is compared. Only
// digests under a new secret are compared.
func (r *run) sameCredentials(a, b *http.Request) (same bool) {
	_ = r.visiting(func() error { // it may ask Config.KeepHeader
		reader, secret := request.Reader{Secrets: r.cfg.reader.Secrets}, []byte(rand.Text())
		mine, others := reader.Named(a, r.prof, request.Given{}).Owner, reader.Named(b, r.prof, request.Given{}).Owner
		same = slices.Equal(mine.Credentials(secret), others.Credentials(secret))
		return nil
	})
	return same
}
