package batch

import (
	"context"
	"net/http"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/profile"
)

// plan makes a request out of each row.
type plan struct {
	look   input.Look // of the survey
	method string
	target urlTemplate
	header http.Header
	// profile is how the API does idempotency.
	profile *profile.Profile
	key     keyTemplate
	needs   input.RowNeeds
	// generation is the try: 1 is the first.
	generation int
	orderedBy  int // index of the field that orders; -1: rows in any order
	// sum and currency are the indexes of the fields of --sum and --currency; -1: there is none.
	sum, currency int
	marks         marks // of the cells of --sum
	watchesLeft   bool  // the survey keeps the keys for [survey.left]
}

// keyOf returns the key of a row in one of its generations: 1 is the first try of a row, and 2 the try after a certain refusal of the first. Each has a key of its own.
func (p *plan) keyOf(r *input.Row, generation int) oncehttp.Key {
	return p.key.shape.Of(p.key.key(r.Fields).Generation(generation))
}

// request returns the HTTP request of a row. All rows share the plan's header map, which must not be changed. The error says that a value of the row cannot stand in
// the URL, or that the body lacks a value by which the API could be asked about it later.
func (p *plan) request(ctx context.Context, r *input.Row) (*http.Request, error) {
	target, err := p.target.fill(r.Fields)
	if err != nil {
		return nil, err
	}
	req := session.NewRequest(ctx, p.method, target, p.header, r.Body)
	return req, session.CheckReferenced(req, r.Body, p.profile)
}
