package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/oncehttp/oncehttp/persist"
)

// unwritten is what this process knows of operations, and the journal does not say, since it failed. The zero value is ready; safe for
// concurrent use. What it keeps is little: it grows only while the journal fails.
type unwritten struct {
	mu sync.Mutex
	// answers are those that callers have got and that could not be recorded, with the reason.
	answers map[persist.ID]error
	// begins are records whose Begin ended without an answer of the journal, so that they may appear later. Without bodies.
	begins map[persist.ID]persist.Record
}

// answered notes whether an answer that callers have got could be recorded; err says why not.
func (u *unwritten) answered(id persist.ID, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		delete(u.answers, id)
	case u.answers == nil:
		u.answers = map[persist.ID]error{id: err}
	default:
		u.answers[id] = err
	}
}

// began notes how a Begin ended: whether the record may appear later.
func (u *unwritten) began(rec *persist.Record, inDoubt bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !inDoubt {
		delete(u.begins, rec.ID)
		return
	}
	if u.begins == nil {
		u.begins = map[persist.ID]persist.Record{}
	}
	without := *rec
	without.Body = nil
	u.begins[rec.ID] = without
}

// mayAppear reports whether a record of the operation may appear later.
func (u *unwritten) mayAppear(id persist.ID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, may := u.begins[id]
	return may
}

// mayAppearLike is the records under generated keys that may appear later and that pick selects.
func (u *unwritten) mayAppearLike(pick func(*persist.Record) bool) (like []persist.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, rec := range u.begins {
		if rec.Generated && pick(&rec) {
			like = append(like, rec)
		}
	}
	return like
}

// beginRecord begins a record in the journal, and notes it if it may appear later although this fails.
func (e *engine) beginRecord(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	existing, created, err = e.journal.Begin(ctx, rec)
	if inDoubt := errors.Is(err, persist.ErrUncertain); inDoubt || err == nil {
		e.shared.unwritten.began(&rec, inDoubt)
	}
	return existing, created, err
}

// unrecorded returns an error if an answer that callers have got is not recorded, and has not been since. A record that is gone
// was swept, after it had ended. Where the journal does not answer it asks no further.
func (e *engine) unrecorded(ctx context.Context) error {
	u := &e.shared.unwritten
	u.mu.Lock()
	answers := maps.Clone(u.answers)
	u.mu.Unlock()
	for id := range answers {
		rec, err := e.journal.Get(ctx, id)
		switch gone := errors.Is(err, persist.ErrNotFound); {
		case err != nil && !gone:
			return err
		case gone || rec.State.Final():
			u.answered(id, nil)
			delete(answers, id)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(answers)), func(a, b persist.ID) int { return strings.Compare(a.Key, b.Key) })
	return fmt.Errorf("oncehttp: flush: answers that callers have got are not recorded, and their operations are pending: %d, the first %q: %w",
		len(answers), first.Key, answers[first])
}
