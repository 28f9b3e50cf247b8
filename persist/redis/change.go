package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// ready checks the arguments of a writing method before any use of Redis: the context has not ended, and the record is valid, and final or not as the
// method needs it.
func ready(ctx context.Context, rec *persist.Record, final bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := rec.Validate(); err != nil {
		return err
	}
	if rec.State.Final() != final {
		return fmt.Errorf("%w: state %v", persist.ErrInvalid, rec.State)
	}
	return nil
}

// Begin implements [persist.Journal]: one script creates the record (created is true), or returns the existing one of its ID. A record without a KeepKey gets
// Options.KeepKey, or its Window if this is longer. The script gives it a number above j.seen, the highest one that this process has met. e.token() is a
// random mark of this call, by which the script recognizes a record that an earlier try has created. landing notes Begins that may still reach the server, so
// that the record is not forgotten meanwhile: those without an answer (Lost), and those created by a later try (doubted), whose earlier one may be on its way
// (Late).
func (j *Journal) Begin(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	if err := cmp.Or(j.opened(), ready(ctx, &rec, false)); err != nil {
		return persist.Record{}, false, err
	}
	if rec.KeepKey == 0 && j.keepKey != 0 {
		rec.KeepKey = max(j.keepKey, rec.Window)
	}
	b := j.of(idOf(rec.ID))
	e := b.newEntry(&rec, 1)
	if err := j.most.fits(&rec, e); err != nil {
		return persist.Record{}, false, j.failed(err)
	}
	doubted := false
	err = j.settle(ctx, func(ctx context.Context, repeated bool) error {
		doubted = repeated
		word, rest, err := j.run(ctx, j.scripts.begin, b, e.id, e.token(), j.seen.Load(), e.head, e.intent, e.progress, e.body, e.answer, j.id, groupHash(&rec), string(rec.HoldReason))
		if err == nil && word == "emptied" {
			// The bucket has lost the journal's name.
			err = j.mustBe(b, nil)
		}
		if err != nil {
			return err
		}
		created = word == "created"
		if !created {
			existing, err = b.existing(e.id, rest)
			return cmp.Or(err, j.checkID(&existing, rec.ID))
		}
		n, err := numberAt(rest, 0)
		existing = rec
		existing.Seq, existing.Revision = b.seqOf(n), 1
		j.met(n) // the next record of this process gets a higher number
		return err
	})
	if errors.Is(err, persist.ErrUncertain) {
		j.landing.Lost(e.id, &rec)
	}
	if err != nil {
		return persist.Record{}, false, err
	}
	if created && doubted {
		j.landing.Late(e.id, &existing)
	}
	return existing, created, nil
}

// existing decodes the record that a Begin found under its ID. values are its parts, as the script has returned them.
// Error: persist.ErrCorrupt.
func (b *bucket) existing(id string, values []any) (persist.Record, error) {
	e := entryOf(id, values)
	if e == nil {
		return persist.Record{}, fmt.Errorf("%w: record %x of bucket %d is not whole", persist.ErrCorrupt, id, b.number)
	}
	return e.record(b)
}

// Update implements [persist.Journal]: it replaces an unfinished record at its revision.
func (j *Journal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := j.change(ctx, &rec, false, false); err != nil {
		return persist.Record{}, err
	}
	rec.Revision++
	return rec, nil
}

// Finish implements [persist.Journal]: it ends an unfinished record at its revision. It is durable on return.
func (j *Journal) Finish(ctx context.Context, rec persist.Record) error {
	return j.finish(ctx, &rec, false)
}

// FinishLate implements [persist.LateFinisher]. It is Finish, except for its tries: it tries again if there is no
// connection. It does not wait for other changes, since a change is one call of a script and would gain nothing.
func (j *Journal) FinishLate(ctx context.Context, rec persist.Record) error {
	return j.finish(ctx, &rec, true)
}

// finish records the end of an operation. late is set for FinishLate: nobody waits for that write, so it is tried again if there is no connection. The begin
// of an ended record need not be watched any more: the watch is for begins whose answer was lost.
func (j *Journal) finish(ctx context.Context, rec *persist.Record, late bool) error {
	err := j.change(ctx, rec, true, late)
	if err == nil {
		j.landing.End(idOf(rec.ID))
	}
	return err
}

// FinishesLate implements [persist.LateFinisher]: it returns the journal itself.
func (j *Journal) FinishesLate() persist.Journal { return j }

// change replaces the progress, the changeable part, of the unfinished record with rec's ID and revision. If final is set, rec is an end of it. The later
// one of rec.SendUntil and the stored one stays; rec has it on return. late: nobody waits for the change, and it is tried again without a connection.
func (j *Journal) change(ctx context.Context, rec *persist.Record, final, late bool) error {
	if err := cmp.Or(j.opened(), ready(ctx, rec, final)); err != nil {
		return err
	}
	settle := j.settle
	if late {
		settle = j.settleLate
	}
	return j.replace(ctx, rec, j.scripts.change, settle)
}

// Amend implements [persist.Journal]: it replaces a record that has ended.
func (j *Journal) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := cmp.Or(j.opened(), ctx.Err(), rec.ReadyToAmend()); err != nil {
		return persist.Record{}, err
	}
	if err := j.replace(ctx, &rec, j.scripts.amend, j.settle); err != nil {
		return persist.Record{}, err
	}
	rec.Revision++
	return rec, nil
}

// settler is settle, or settleLate.
type settler func(ctx context.Context, do func(ctx context.Context, repeated bool) error) error

// replace runs a script that replaces the changeable part of a record: change for an unfinished record, amend for a final one. settle makes the call, and
// repeats it after a lost answer. ended and over are the times of the record's end and of its next sweep, for the indexes (both empty for an unfinished
// record). On return rec has the later one of its SendUntil and the stored one.
func (j *Journal) replace(ctx context.Context, rec *persist.Record, s script, settle settler) error {
	b := j.of(idOf(rec.ID))
	e := b.newEntry(rec, rec.Revision+1)
	if err := j.most.fits(rec, e); err != nil {
		return j.failed(err)
	}
	ended, over := scores(rec)
	var shorter []byte // an intent (the part frozen by Begin) without the request
	if rec.RequestDropped {
		shorter = e.intent
	}
	renewed := "" // only a seal renews needs, the requirements on a client
	if rec.SealedNeeds != "" {
		renewed = needsHash(rec.SealedNeeds)
	}
	return settle(ctx, func(ctx context.Context, _ bool) error {
		word, rest, err := j.run(ctx, s, b, e.id, b.numberOf(rec.Seq), rec.Revision, e.head, e.progress, e.answer, ended, over, renewed, string(rec.HoldReason), shorter, groupHash(rec))
		switch {
		case err != nil:
			return err
		case word != "done" || len(rest) == 0:
			return refusal(rec, word, rest)
		}
		if stays := bytesOf(rest[0]); len(stays) == instantSize { // the SendUntil that stays
			rec.ExtendSendUntil(timeOf(stays))
		}
		return nil
	})
}

// refusal returns the error for the answer of a script that has not changed the record: word is the reason, and rest has the record's state and
// revision.
func refusal(rec *persist.Record, word string, rest []any) error {
	switch word {
	case "gone":
		return notFound(rec.ID)
	case "identity": // a field that never changes has another value
		return fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
	case "stale":
		state, err := numberAt(rest, 0)
		revision, err2 := numberAt(rest, 1)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		return fmt.Errorf("%w: %q is %v at revision %d", persist.ErrStale, rec.Key, persist.State(state), revision)
	}
	return fmt.Errorf("a script has answered %q", word)
}

// Forget implements [persist.Journal]: it deletes an unfinished record at its revision. landing knows the Begins that may still reach the server: Forget
// refuses while one of this record may, as that would create it again. repeated means that an earlier try may have taken effect.
func (j *Journal) Forget(ctx context.Context, rec persist.Record) error {
	if j.landing.May(idOf(rec.ID), rec.Seq) {
		return j.failed(fmt.Errorf("%w: what began the record may still be on its way", persist.ErrUncertain))
	}
	id := idOf(rec.ID)
	b := j.of(id)
	return j.settle(ctx, func(ctx context.Context, repeated bool) error {
		word, rest, err := j.run(ctx, j.scripts.forget, b, id, b.numberOf(rec.Seq), rec.Revision)
		if err != nil || word == "done" {
			return err
		}
		if repeated && goneSince(b.numberOf(rec.Seq), word, rest) {
			return nil // an earlier try of this call has landed
		}
		return refusal(&rec, word, rest)
	})
}

// goneSince reports, by a script's answer (word and rest), whether the record of this number is gone, or another one has its ID (the third value of a stale
// answer is the number of the record that stands there). Then an earlier try of the same Forget has deleted it, and the Forget has succeeded.
func goneSince(number uint64, word string, rest []any) bool {
	stands, err := numberAt(rest, 2)
	return word == "gone" || word == "stale" && err == nil && stands != number
}

// Assign implements [persist.Journal]: it gives the record to another account. The bucket of a record depends on its key only, so one script moves it. id is
// the place of the record in the bucket so far, e.id the new one; "exists" means that another record is there.
func (j *Journal) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	if err := j.opened(); err != nil {
		return persist.Record{}, err
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, err
	}
	next := rec.Clone()
	next.Account = account
	id := idOf(rec.ID)
	b := j.of(id)
	e := b.newEntry(&next, rec.Revision+1)
	if err := j.most.fits(&next, e); err != nil {
		return persist.Record{}, j.failed(err)
	}
	ended, over := scores(&next)
	err := j.settle(ctx, func(ctx context.Context, _ bool) error {
		word, rest, err := j.run(ctx, j.scripts.assign, b, id, e.id, b.numberOf(rec.Seq), rec.Revision, e.head, e.intent, e.progress, e.body, e.answer, ended, over, needsHash(next.Needs().String()), string(next.HoldReason))
		switch {
		case err != nil || word == "done":
			return err
		case word == "exists":
			return fmt.Errorf("%w: account %q, key %q", persist.ErrExists, account, rec.Key)
		}
		return refusal(&rec, word, rest)
	})
	if err != nil {
		return persist.Record{}, err
	}
	next.Revision++
	return next, nil
}

// MarkReported implements [persist.Journal]: it clears Unreported of an ended record. It is durable on return. A record that is gone, or not Unreported, is no
// error.
func (j *Journal) MarkReported(ctx context.Context, id persist.ID) error {
	name := idOf(id)
	return j.settle(ctx, func(ctx context.Context, _ bool) error {
		_, _, err := j.run(ctx, j.scripts.report, j.of(name), name)
		return err
	})
}
