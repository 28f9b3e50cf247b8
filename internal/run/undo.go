package run

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// undo asks the API to undo the possible effect of the operation's key, for Abandon. The record is held before the request goes out, and stays held after an
// error: Abandon may then be called again. After nil, the caller abandons the returned record with the returned note. The undo has no credentials of a call
// (false): Authorize gives them. If no effect is possible, nothing is asked, and rec and note come back as they are.
func undo(ctx context.Context, e *engine, call callers, rec persist.Record, note string) (persist.Record, string, error) {
	op := operation.OpOf(&rec, 0)
	// Nothing was sent under the key, so that there is nothing to undo.
	if !op.EverSent() {
		return rec, note, nil
	}
	wrong := func(cause error) error {
		return e.refusals.refuse(ctx, "abandon", &rec, operation.KeyOnly, cause, ErrConfig).err
	}
	// Every check comes before the hold: a refused act leaves the record as it was.
	prof := e.profileOf(call, &rec)
	if err := e.lacks(call, &rec, prof, false).Err(); err != nil {
		return rec, "", wrong(err)
	}
	ask, target := request.CancelRequest(&rec, prof)
	if target == nil {
		return rec, "", wrong(fmt.Errorf("profile %q does not say how to undo by key what was sent there", prof.Name))
	}
	if len(note)+len(undone(0, "")) > persist.NoteBytesMax {
		return rec, "", wrong(errors.New("the note leaves no room for the answer"))
	}
	held := rec
	// From here on nobody sends the operation: a send after the undo would take effect.
	write(&held, acts.HeldFor(op, persist.HoldUndo))
	held, err := e.journal.Update(ctx, held)
	if err != nil {
		return rec, "", err
	}
	// A run for its requests alone: their times are in no event.
	r := newRun(e, call, "abandon", &unasked)
	r.task.rec, r.task.prof = held, prof
	sent := askToUndo(call.Context(), &r.requests, ask, target)
	defer sent.Drain()
	if sent.Answer == nil {
		return held, "", e.refusals.refuse(ctx, "abandon", &held, operation.KeyOnly, fmt.Errorf("the undo: %w", sanitized(sent.Err)), ErrHeld).err
	}
	status := sent.Answer.Head.StatusCode
	// Any other answer may mean that the effect stands. The record stays held, and says so.
	if !isSuccess(&held, prof, sent.Answer) {
		return held, "", e.refusals.refuse(ctx, "abandon", &held, operation.KeyOnly, fmt.Errorf("the undo was answered %d", status), ErrHeld).err
	}
	return held, undone(status, note), nil
}

// undone returns the note for the record of an operation that the API was asked to undo: the status of its answer, before the person's own note. note may be empty.
func undone(status int, note string) string {
	text := fmt.Sprintf("undo answered %03d", status)
	if note != "" {
		text += "; " + note
	}
	return text
}

// askToUndo asks up to lookupTries times, as long as there is no answer but a 5xx. To undo twice is to undo once. A fatal error, and the end of ctx, end it, too:
// no other try can help. The caller drains the result.
func askToUndo(ctx context.Context, r *requests, ask persist.Record, target *url.URL) (sent wire.Result) {
	sender := r.lookup(ask)
	for range lookupTries {
		sent.Drain()
		sent = sender.Send(ctx, target)
		if sent.Answer != nil && sent.Answer.Head.StatusCode < 500 || sent.Fatal || ctx.Err() != nil {
			break
		}
	}
	return sent
}
