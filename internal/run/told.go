package run

import (
	"context"
	"errors"
	"log/slog"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// toldMarks writes, before a caller is told of an end, that it is told. It is safe for concurrent use.
type toldMarks struct {
	journal persist.Journal
	cfg     *Config // for OnResult
}

// note writes into the record that a caller gets its end, in the cases where a person who acts later must know that. It is called before the caller
// gets it: after an error the caller must not. It updates rec.
func (t *toldMarks) note(ctx context.Context, rec *persist.Record) error {
	if !operation.NotesTold(rec) {
		return nil
	}
	told := *rec
	// In a copy: after an error rec is as it was.
	told.Told = true
	told, err := t.journal.Amend(ctx, told)
	if err == nil {
		*rec = told
	}
	return err
}

// noteResult notes that a caller gets a result, if the journal must know that, before the caller has it. It must know only of a caller that has joined the run
// of a pass (untold). After an error the caller must not get a result that denies an effect. owed is the revision whose delivery to OnResult the caller then
// marks; the note raises it.
func (t *toldMarks) noteResult(ctx context.Context, id persist.ID, res *result) (owed uint64, err error) {
	if !res.untold {
		return res.owed, nil
	}
	return t.noteJoined(ctx, id, res.owed)
}

// noteJoined does the work of note for a caller that has joined the run of a pass. It reads the record itself, again after a change by others, amendTries times
// at most. A record that is gone needs no note. After any other error the caller gets none of the result: the journal may not know of it. It returns the
// revision with the result to deliver: owed, or the one that the note has made of it.
func (t *toldMarks) noteJoined(ctx context.Context, id persist.ID, owed uint64) (uint64, error) {
	for tries := 1; ; tries++ {
		rec, err := t.journal.Get(ctx, id)
		if errors.Is(err, persist.ErrNotFound) {
			return owed, nil
		}
		// The note raises it: only a result of this very revision moves along.
		read := rec.Revision
		if err == nil {
			err = t.note(ctx, &rec)
		}
		switch {
		case err == nil && owed != 0 && owed == read:
			return rec.Revision, nil
		case err == nil:
			return owed, nil
		case !errors.Is(err, persist.ErrStale) || tries == amendTries:
			return owed, journalError("do", &persist.Record{ID: id, MaybeSent: true}, err)
		}
	}
}

// noteReported writes into the record that a caller with the key was told of the operation's end, so that it does not stop the same request
// without a key any more. If that write fails, it only stops one such request once more.
func (t *toldMarks) noteReported(ctx context.Context, id persist.ID) {
	if err := t.journal.MarkReported(ctx, id); err != nil {
		t.cfg.log(ctx, slog.LevelError, "that an operation was reported could not be recorded", id.Key, err)
	}
}
