package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// errMayAnswerAnother is the reason for leaving an operation held if another one, unreadable here, may have the answer that was found.
var errMayAnswerAnother = errors.New("what was found may be the answer to another operation, and proves nothing of this one")

// errAnswersAnother is the reason for leaving an operation held although Config.Reconcile has found something.
var errAnswersAnother = errors.New("what was found is the answer to another operation, and proves nothing of this one")

// foundObject is an object of an API that Config.Reconcile has found: an id at one place, in one account.
type foundObject struct{ account, origin, method, path, id string }

// foundNow are the objects by which operations of a client are being settled. The zero value has none. It is safe for
// concurrent use.
type foundNow struct {
	mu sync.Mutex
	by map[foundObject]string // the keys of these operations
}

// take reserves an object of the API, found for a held operation, until leave. If another operation has it, take returns that one's key, and leave
// must not follow. So two operations are not settled by one object. It does not wait, since the journal may call the client meanwhile. A key is never
// empty.
func (f *foundNow) take(object foundObject, key string) (other string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other = f.by[object]; other != "" {
		return other
	}
	if f.by == nil {
		f.by = map[foundObject]string{}
	}
	f.by[object] = key
	return ""
}

// leave releases an object that take has reserved, once the operation was settled by it, or was not. Another operation can then have the object.
func (f *foundNow) leave(object foundObject) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.by, object)
}

// settleFound settles a held operation by what Config.Reconcile has found, and returns that as it was recorded. Of two operations of this client that find one
// object of the API, only one is settled by it. Errors: errAnswersAnother if another record has the object as its answer, or is being settled by it,
// errMayAnswerAnother, and the journal's. (Invariants 39 and 65.)
func settleFound(t *task, said Resolution) (Resolution, error) {
	ctx, id := t.call.Values(), objectID(said.Answer)
	said = said.kept(t.call, t.cfg, &t.rec) // it asks Config.KeepHeader, and before the object is taken
	if id != "" {
		object := foundObject{request.Base(t.rec.Account), t.rec.Origin, t.rec.Method, request.Path(t.rec.Target), id}
		if other := t.engine.found.take(object, t.rec.Key); other != "" {
			return said, fmt.Errorf("%w: %q, which is being settled by it", errAnswersAnother, other)
		}
		defer t.engine.found.leave(object)
		other, err := answeredWith(ctx, t, id)
		switch {
		case err != nil:
			return said, err
		case other != "":
			return said, fmt.Errorf("%w: %q", errAnswersAnother, other)
		}
	}
	return said, t.engine.writer.change(ctx, &t.rec, func() error { return resolve(ctx, t.engine, t.rec, said) })
}

// answeredWith returns the key of another operation at the same place of the API, in the same account, whose answer is the object with this id; empty if there
// is none. Another method or path is another place, where the same id may be another object. It reads all ended operations of the account at this origin: few
// operations are found so.
func answeredWith(ctx context.Context, t *task, id string) (key string, err error) {
	ended := persist.Query{Account: request.Base(t.rec.Account), Origin: t.rec.Origin, States: []persist.State{persist.StateConfirmed, persist.StateSettled}}
	for rec, err := range t.journal.List(ctx, ended) {
		switch {
		case err != nil && persist.OfOneRecord(err): // it may have that answer
			return "", fmt.Errorf("%w: one that cannot be read: %w", errMayAnswerAnother, err)
		case err != nil:
			return "", err
		case rec.ID == t.rec.ID, rec.Method != t.rec.Method, request.Path(rec.Target) != request.Path(t.rec.Target):
		case objectID(rec.Answer) == id:
			return rec.Key, nil
		}
	}
	return "", nil
}

// objectID returns the id of the object in a recorded answer; empty if it has none.
func objectID(a *persist.Answer) string {
	if a == nil || a.BodyDropped {
		return ""
	}
	return classify.ObjectID(wire.Recorded(nil, a.Status, a.Header, a.Body, true).Text)
}
