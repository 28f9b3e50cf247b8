package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// eraseName is the call in errors.
const eraseName = "erase"

// Erase implements oncehttp.Client.Erase: it empties the record of an ended operation, and leaves only what prevents a second effect. chosen has the options of the
// call, such as the record as the person saw it.
func (c *Client) Erase(ctx context.Context, key string, chosen Chosen) error {
	ctx, leave, err := c.visitKey(ctx, "Erase", eraseName, key)
	if err != nil {
		return err
	}
	defer leave()
	// Asked before anything else: without it, no look at the record helps.
	eraser, can := persist.As[persist.Eraser](c.cfg.Journal)
	if !can {
		return c.wrong(ctx, eraseName, key, chosen, fmt.Errorf("a %T cannot erase (persist.Eraser)", c.cfg.Journal))
	}
	return c.inPlace(ctx, eraseName, key, chosen, func(call callers, id persist.ID) error {
		return erasure{c.engine, call.Values(), eraser, &chosen}.do(id)
	})
}

// erasure is one Erase under way.
type erasure struct {
	*engine
	ctx    context.Context
	eraser persist.Eraser
	chosen *Chosen
}

// do erases the operation and the others of its intent, such as earlier tries, if all of them may be erased. The operation itself is the last: an
// Erase that was interrupted finds it again.
func (e erasure) do(id persist.ID) error {
	rec, err := e.journal.Get(e.ctx, id)
	if err == nil {
		err = rec.Sealed()
	}
	if err != nil {
		return outrun(eraseName, &persist.Record{ID: id}, err)
	}
	// acts.End: each change since counts, since none can be the act's own.
	if moved := e.chosen.moved(&rec, acts.End); moved != nil {
		return e.refusals.stale(e.ctx, eraseName, &rec, moved)
	}
	for tries := 1; ; tries++ {
		// It reads the record again: the one read above is only for AsSeen.
		err := e.once(rec.ID)
		if !errors.Is(err, persist.ErrStale) || tries == amendTries {
			return err
		}
	}
}

// once reads the operation and the others of its intent, and erases them. persist.ErrStale: a record has changed since it was read; some may be
// erased by then.
func (e erasure) once(id persist.ID) error {
	rec, err := e.journal.Get(e.ctx, id)
	if err != nil {
		return outrun(eraseName, &persist.Record{ID: id}, err)
	}
	others, unbegun, err := e.family(&rec)
	if err != nil {
		return outrun(eraseName, &rec, err)
	}
	all := append([]persist.Record{rec}, others...)
	for i := range all { // the operation itself is the first: its reason is told
		if err := e.may(&all[i], all, unbegun); err != nil {
			return err
		}
	}
	if err := e.journal.Flush(e.ctx); err != nil { // an end that is not durable is none
		return outrun(eraseName, &rec, err)
	}
	// The digests in place of the texts are made with it, so that nobody can try names against them.
	secret, err := e.journal.Secret(e.ctx)
	if err != nil {
		return outrun(eraseName, &rec, err)
	}
	// The text of each goes, and what keeps its key from a second use stays. Those erased by a call that was
	// cut off are left as they are.
	for i := range slices.Backward(all) {
		if all[i].Erased {
			continue
		}
		// The record as read stays whole, for the error.
		next := all[i].Clone()
		next.Erase(secret)
		// The fingerprint tells the journal that the record was erased, and not replaced by another one's.
		if _, err := e.eraser.Erase(e.ctx, next, all[i].Fingerprint); err != nil {
			return outrun(eraseName, &all[i], err)
		}
	}
	return nil
}

// may checks whether one record of a family may be erased: the operations of the same intent, such as the tries of one payment. The first of the
// family is the one that was asked for. If one must stay, all of them do, and the error says why. unbegun is the key of an operation that has still
// to be begun in the place of one.
func (e erasure) may(rec *persist.Record, family []persist.Record, unbegun string) error {
	op, facts := operation.OpOf(rec, 0), acts.ErasingOf(rec, e.clock.Earliest())
	facts.Unbegun = unbegun != ""
	// One that goes on needs the others: they decide whether it may be sent.
	unfinished := slices.IndexFunc(family, func(other persist.Record) bool { return other.ID != rec.ID && !other.State.Final() })
	facts.Unfinished = unfinished >= 0
	var cause error
	var why []error
	switch facts.MayErase(&op) {
	case acts.MayAct:
		return nil
	case acts.NotEnded:
		cause = fmt.Errorf("%q is %s: end it first", rec.Key, rec.State)
		if rec.State == persist.StateHeld {
			why = whyHeld(rec)
		}
	case acts.IsUnreported:
		cause = errors.New("no caller with its key was told of its end")
	case acts.IsOwed:
		cause = errors.New("its end is not delivered to OnResult yet")
	case acts.IsGoingOn:
		cause = fmt.Errorf("an operation in its place is not there yet: %q; make the call that begins it again", unbegun)
		if unbegun == "" {
			cause = fmt.Errorf("another operation of the same intent is %s: %q", family[unfinished].State, family[unfinished].Key)
		}
	case acts.IsSending:
		cause, why = keptUntil(family, e.clock.Earliest()), []error{ErrInFlight}
	case acts.IsInWindow:
		cause = keptUntil(family, e.clock.Earliest())
	}
	if asked := &family[0]; rec.ID != asked.ID { // what is said of an effect is said of the key of the call
		rec, cause, why = asked, fmt.Errorf("of the same intent is %q: %w", rec.Key, cause), nil
	}
	return e.refusals.refuse(e.ctx, eraseName, rec, operation.KeyOnly, cause, why...).err
}

// keptUntil returns the error about operations that must not be erased yet: the latest time of a possible send, or of the server's window, with the
// reason.
func keptUntil(family []persist.Record, now time.Time) error {
	const (
		sending = "%q has ended; its record is kept until %s, since a process that stopped during its send may go on until then, and must find the end; erase it after that"
		known   = "the API may know the key %q, or its answer is kept, until %s; erase it after that"
		keyless = "the record of %q is kept for the window of its profile, and for its answer, until %s; erase it after that"
	)
	var key, text string
	var until time.Time
	for i := range family {
		rec := &family[i]
		if rec.Erased {
			continue
		}
		// Both bound sends of a process that may be gone.
		for _, end := range []time.Time{rec.SendUntil, rec.DesertedUntil} {
			if end.After(until) {
				key, text, until = rec.Key, sending, end
			}
		}
		op := operation.OpOf(rec, 0)
		if end := acts.ErasingOf(rec, now).ErasableFrom(&op); end.After(until) {
			if key, text, until = rec.Key, known, end; !rec.Protected {
				text = keyless
			}
		}
	}
	return fmt.Errorf(text, key, until.UTC().Format(time.RFC3339))
}

// family returns the other operations of a record's intent: those that a person began in its place, or in whose
// place it was begun, and the next generations of their keys, before and after. unbegun is the key of a named
// successor without a record; "" if there is none. Errors: the journal's.
func (e erasure) family(rec *persist.Record) (others []persist.Record, unbegun string, err error) {
	// The names form circles: each of two records may name the other.
	seen := map[string]bool{rec.Key: true}
	for at := []persist.Record{*rec}; len(at) > 0; at = at[1:] {
		for _, other := range intent.Family(&at[0]) {
			if seen[other.Key] {
				continue
			}
			seen[other.Key] = true
			found, err := e.relative(&at[0], other)
			switch {
			case errors.Is(err, persist.ErrNotFound):
				if other.Key == at[0].ReplacedBy {
					unbegun = other.Key
				}
				continue
			case err == nil:
				err = found.Sealed()
			}
			if err == nil && len(others) == intent.IntentMax {
				err = fmt.Errorf("more than %d operations are of the same intent", intent.IntentMax)
			}
			if err != nil {
				return nil, "", err
			}
			others, at = append(others, found), append(at, found)
		}
	}
	return others, unbegun, nil
}

// relative returns the record of another operation of the same intent; persist.ErrNotFound if there is none. Before looks in the account of rec. Of two that name
// each other, one may have been assigned to an account since, so that it is looked for under every account.
func (e erasure) relative(rec *persist.Record, other intent.Relative) (persist.Record, error) {
	found, err := e.places.Before(e.ctx, rec, other.Key)
	if errors.Is(err, persist.ErrNotFound) && other.Named {
		return e.places.Anywhere(e.ctx, other.Key, func(there *persist.Record) bool { return intent.IsLinked(rec, there) })
	}
	return found, err
}

// errErased is the cause of an error for a call under the key of an erased operation.
var errErased = errors.New("its record was erased, so that the request cannot be compared any more; begin anything new under a new key")
