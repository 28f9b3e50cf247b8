package oncehttp

import (
	"context"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// lookup asks for the resource that an already-done answer names, and returns its answer in place of that one. A
// failure changes nothing: the operation is confirmed, the answer stays the server's.
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

// lookupTries is how often a lookup is tried.
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
