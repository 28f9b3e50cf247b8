package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// errAnswersAnother is the reason for leaving an operation held although Config.Reconcile has found something.
var errAnswersAnother = errors.New("what was found is the answer to another operation, and proves nothing of this one")

// settleFound settles a held operation by what Config.Reconcile has found, and returns that as it was recorded. Errors: errAnswersAnother if another
// record has the same object as its answer, and the journal's. Of two operations of this client that find one object, only the first is settled by it.
func (r *run) settleFound(said Resolution) (Resolution, error) {
	r.found <- struct{}{} // and no mutex: the journal is asked meanwhile, and in virtual time (testing/synctest) whoever waits for a mutex stops the clock
	defer func() { <-r.found }()
	ctx := r.call.Values()
	other, err := r.answeredWith(ctx, said.Answer)
	switch {
	case err != nil:
		return said, err
	case other != "":
		return said, fmt.Errorf("%w: %q", errAnswersAnother, other)
	}
	said = said.kept(r.call, r.cfg, &r.rec)
	return said, r.writer.change(ctx, &r.rec, func() error { return resolve(ctx, r.engine, r.rec, said) })
}

// answeredWith returns the key of another operation at the same place of the API, in the same account, whose answer is the same object; empty if there is
// none, or the answer has no id. It reads all ended operations of the account at this origin: few operations are found so.
func (r *run) answeredWith(ctx context.Context, answer *persist.Answer) (key string, err error) {
	id := r.objectID(answer)
	if id == "" {
		return "", nil
	}
	ended := persist.Query{Account: request.Base(r.rec.Account), Origin: r.rec.Origin, States: []persist.State{persist.StateConfirmed, persist.StateSettled}}
	for rec, err := range r.journal.List(ctx, ended) {
		switch {
		case errors.Is(err, persist.ErrCorrupt): // one record that cannot be read
			continue
		case err != nil:
			return "", err
		case rec.ID == r.rec.ID, rec.Method != r.rec.Method, request.Path(rec.Target) != request.Path(r.rec.Target):
		case r.objectID(rec.Answer) == id:
			return rec.Key, nil
		}
	}
	return "", nil
}

// objectID returns the id of the object in a recorded answer; empty if it has none.
func (r *run) objectID(a *persist.Answer) string {
	if a == nil || a.BodyDropped {
		return ""
	}
	return classify.ObjectID(wire.Recorded(nil, a.Status, a.Header, a.Body, true).Text)
}
