package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// redriveName is the call in errors.
const redriveName = "redrive"

// Redrive is oncehttp.Client.Redrive.
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
		r := redrive{successor{c.engine, call.Values(), redriveName, operation.Redrives, chosen.Untold}, call, &chosen}
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
	call   callers
	chosen *Chosen
}

// do names the next generation in the record of the old one, and begins it. A Redrive cut off in between goes on when it is called again.
func (r redrive) do(id persist.ID) (string, error) {
	old, err := r.journal.Get(r.ctx, id)
	if err == nil {
		err = old.Sealed()
	}
	if err != nil {
		return "", r.failed(&persist.Record{ID: id}, err)
	}
	if moved := r.chosen.moved(&old, operation.End); moved != nil {
		return "", r.refusals.stale(r.ctx, redriveName, &old, moved)
	}
	key := operation.NextGeneration(old.Key)
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

// once looks at the places of the next generation, and begins it unless it stands. errElsewherePlace: another scope has taken its place.
func (r redrive) once(old *persist.Record, key string) error {
	next := persist.Record{ID: persist.ID{Key: key}}
	if err := r.placed(old, &next); err != nil {
		return err
	}
	found, err := r.look(old, &next)
	if err != nil {
		return r.failed(old, err)
	}
	if err := r.may(old, &found); err != nil || found.own != nil {
		return err
	}
	begun, err := r.next(old, key, r.chosen.Note)
	if err != nil {
		return err
	}
	begunAt(&begun, next.Account)
	return r.begin(old, &begun, found)
}

// next is the record of the new operation, as it is begun.
func (r redrive) next(old *persist.Record, key, note string) (persist.Record, error) {
	next, err := r.anew(r.call, redriveName, old, key, note)
	if err != nil {
		return next, err
	}
	op := operation.OpOf(&next, 0)
	op = op.Promised(next.Created.Add(r.cfg.EnqueueMaxAge))
	next.Enqueued, next.SendBefore, next.RedriveRun = op.Enqueued, op.SendBefore, r.chosen.Run
	return next, nil
}

// begin writes the mark, and begins the new operation.
func (r redrive) begin(old, next *persist.Record, found standing) error {
	if err := r.unassignedKey(old, next); err != nil {
		return err
	}
	if err := r.unstopped(old, next); err != nil {
		return err
	}
	if err := r.recorded(r.ctx, func(id persist.ID) bool { return id == next.ID }); err != nil {
		return r.failed(old, err)
	}
	if err := r.link(old, *next, found); err != nil {
		return err
	}
	rec, created, err := r.writer.begin(r.ctx, *next)
	switch {
	case err != nil:
		return r.failed(next, err)
	case created:
		return nil
	case rec.Sealed() != nil:
		return r.failed(next, rec.Sealed())
	case r.isOwn(old, &rec):
		return nil
	case operation.OtherScope(old.Scopes, &rec):
		return errElsewherePlace
	}
	return r.taken(*old, &rec)
}

// anew is the record of an operation in the place of old, under another key. Nothing of it was sent. name is the call's name, for errors.
func (e *engine) anew(call callers, name string, old *persist.Record, key, note string) (persist.Record, error) {
	prof := e.profileOf(call, old)
	cause := e.cfg.lacksToRekey(old, prof).Err()
	var next persist.Record
	if cause == nil {
		next, cause = request.Rekeyed(old, prof, key)
	}
	if cause != nil {
		return next, e.refusals.refuse(call.Values(), name, old, operation.KeyOnly, cause, ErrConfig).err
	}
	next.Created, next.Note = e.now().Round(0), note
	next.KeepAnswer, next.KeepKey, next.KeepText = e.cfg.keeping(next.Window)
	if old.KeepKey == 0 {
		next.KeepKey = 0 // a repeat finds it for as long as the old one
	}
	next.ExtendKeeping(old.KeepAnswer, old.KeepKey, old.KeepText)
	return next, nil
}
