package oncehttp

import (
	"context"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// lookup asks for the resource that done, an already-done answer, names. It returns the resource's answer, or, if that
// cannot be had, done itself. The operation is confirmed either way.
func lookup(r *run, done wire.Result) wire.Result {
	get, target := request.Lookup(&r.rec, r.prof, done.Answer.Body, done.Answer.Whole)
	if target == nil {
		return done
	}
	sender := newSender(r.cfg, &lookups{r, get})
	for range lookupTries {
		sent := r.sendBy(&sender, target)
		if a := sent.Answer; a != nil && a.Whole && a.Head.StatusCode >= 200 && a.Head.StatusCode < 300 {
			return sent
		}
		sent.Drain()
	}
	return done
}

// lookupTries is how many times a lookup is tried.
const lookupTries = 2

// lookups makes the requests of a lookup. It follows no redirect.
type lookups struct {
	*run
	get persist.Record
}

// Prepare makes the request of the lookup anew.
func (l *lookups) Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	return l.requestFor(ctx, send, &l.get, target)
}

// Follow allows no redirect.
func (l *lookups) Follow(*url.URL, string) *url.URL { return nil }
