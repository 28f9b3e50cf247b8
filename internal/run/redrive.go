package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// redriveName is the call in errors.
const redriveName = "redrive"

// Redrive implements oncehttp.Client.Redrive: it begins a refused operation once more, under the next generation of its key. next is that key; "" beside an error.
func (c *Client) Redrive(ctx context.Context, key string, chosen Chosen) (next string, err error) {
	ctx, leave, err := c.visitKey(ctx, "Redrive", redriveName, key)
	if err != nil {
		return "", err
	}
	defer leave()
	switch {
	case len(chosen.Note) > persist.NoteBytesMax:
		err = fmt.Errorf("a note of %d bytes, want at most %d", len(chosen.Note), persist.NoteBytesMax)
	case len(chosen.Run) > persist.RedriveRunBytesMax:
		err = fmt.Errorf("a run of %d bytes, want at most %d", len(chosen.Run), persist.RedriveRunBytesMax)
	}
	if err != nil {
		return "", c.wrong(ctx, redriveName, key, chosen, err)
	}
	err = c.inPlace(ctx, redriveName, key, chosen, func(call callers, id persist.ID) error {
		// The values of the call, and not its end: a Redrive that has begun to write goes on.
		r := redrive{successor{c.engine, call.Values(), redriveName, acts.Redrives, chosen.Untold}, call, &chosen}
		next, err = r.do(id)
		return err
	})
	if err != nil {
		next = ""
	}
	return next, err
}

// redrive is one Redrive under way.
type redrive struct {
	successor
	call   callers // with the place of the old operation
	chosen *Chosen // the terms of the caller
}

// do begins the next generation of a refused operation, a new try with its number in the key, and returns the new key. It names that key in the record of the old
// one, and then begins it. A Redrive that was interrupted in between goes on when it is called again.
func (r redrive) do(id persist.ID) (string, error) {
	old, err := r.journal.Get(r.ctx, id)
	if err == nil {
		err = old.Sealed()
	}
	if err != nil {
		return "", r.failed(&persist.Record{ID: id}, err)
	}
	// acts.End: each change since counts, since none can be the act's own.
	if moved := r.chosen.moved(&old, acts.End); moved != nil {
		return "", r.refusals.stale(r.ctx, redriveName, &old, moved)
	}
	// The key follows from the old one: whoever calls Redrive again, in any process, comes to the same
	// operation.
	key := intent.NextGeneration(old.Key)
	for tries := 1; ; tries++ {
		err := r.once(&old, key)
		switch {
		case errors.Is(err, errElsewherePlace) && tries < placesMax: // another scope has taken the place since
		case errors.Is(err, errElsewherePlace):
			return "", journalError(redriveName, &old, err)
		case err != nil:
			return "", err
		default:
			r.wakeAll()
			return key, nil
		}
	}
}

// once looks for a record of the next generation, under each account where it may be, and begins it unless there is one. nil: its record stands. errElsewherePlace:
// a request that selects another account has taken its record's place; look again.
func (r redrive) once(old *persist.Record, key string) error {
	// Only for the place: the record itself is made once it is needed.
	next := persist.Record{ID: persist.ID{Key: key}}
	if err := r.placed(old, &next); err != nil {
		return err
	}
	found, err := r.look(old, &next)
	if err != nil {
		return r.failed(old, err)
	}
	if err := r.may(old, &found); err != nil || found.own != nil { // its own stands: an earlier call has begun it
		return err
	}
	begun, err := r.next(old, key, r.chosen.Note)
	if err != nil {
		return err
	}
	begunAt(&begun, next.Account)
	return r.begin(old, &begun, found)
}

// next returns the record of the new operation, as it is begun: enqueued, so that a Resume or Run sends it, and this call does not. note is the person's.
func (r redrive) next(old *persist.Record, key, note string) (persist.Record, error) {
	next, err := anew(r.engine, r.call, redriveName, old, key, note)
	if err != nil {
		return next, err
	}
	op := operation.OpOf(&next, 0)
	// Like an Enqueue: nobody waits for it.
	op = op.Promised(next.Created.Add(r.cfg.EnqueueMaxAge))
	next.Enqueued, next.SendBefore, next.RedriveRun = op.Enqueued, op.SendBefore, r.chosen.Run
	return next, nil
}

// begin writes the new key into the record of the old operation, and then begins the new one. In this order: else a call that looks at the
// old operation would not know of the new one. If the second write is missing, the next Redrive finds the name, and begins the operation.
func (r redrive) begin(old, next *persist.Record, found standing) error {
	if err := r.unassignedKey(old, next); err != nil {
		return err
	}
	if err := r.unstopped(old, next); err != nil {
		return err
	}
	// A caller may have the answer of an operation under this key, and its record not yet.
	if err := r.recorded(r.ctx, func(id persist.ID) bool { return id == next.ID }); err != nil {
		return r.failed(old, err)
	}
	if err := r.link(old, *next, found); err != nil {
		return err
	}
	// After the mark is durable, see above.
	rec, created, err := r.writer.begin(r.ctx, *next)
	switch {
	case err != nil:
		return r.failed(next, err)
	case created:
		return nil
	case rec.Sealed() != nil:
		return r.failed(next, rec.Sealed())
	}
	switch nextOf(old, &rec) {
	case intent.IsItsOwn: // another Redrive was faster
		return nil
	case intent.IsOfScope:
		return errElsewherePlace
	}
	return r.taken(*old, &rec)
}

// anew returns the record of an operation that replaces old, under another key. It is unsent, has the person's note, and nothing is written here. name is the
// call's name, for errors. It is kept for as long as the old one at least: else a repeat of the call would find nothing, and begin it once more.
func anew(e *engine, call callers, name string, old *persist.Record, key, note string) (persist.Record, error) {
	// By the recorded profile: the new operation is of the same kind.
	prof := e.profileOf(call, old)
	cause := e.cfg.gate().lacksToRekey(old, prof).Err()
	var next persist.Record
	if cause == nil {
		next, cause = request.Rekeyed(old, prof, key)
	}
	if cause != nil {
		return next, e.refusals.refuse(call.Values(), name, old, operation.KeyOnly, cause, ErrConfig).err
	}
	next.Created, next.Note = e.now().Round(0), note
	e.cfg.keeps(&next, intent.KeysPlace{Replaced: old}) // its place is given by begunAt
	next.ExtendKeeping(old.KeepAnswer, old.KeepKey, old.KeepText)
	return next, nil
}
