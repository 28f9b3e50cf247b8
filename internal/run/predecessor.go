package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/place"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// This file looks at the operations before another one: those that it replaces by a Redrive or a Rekey, the generations below its key, and those before
// these. An event of the API may prove one of them meanwhile, and a Rekey may have begun another operation to replace it.

// checkPredecessors checks a call under a next generation of a key, a new try of the same operation. It returns an error if an earlier try may still have an effect,
// or the journal cannot tell. The error says nothing of an effect. If the operation itself is already in the journal, nothing forbids the call; it is taken for one
// that is not (true).
func (b *admission) checkPredecessors(ctx context.Context, name string, op *preparedRequest) error {
	cause, _, err := b.stoppedByOlder(ctx, op.rec, true)
	switch {
	case err != nil:
		return b.unbegun.errorOfPlace(ctx, name, op, err)
	case cause == nil:
		return nil
	}
	if b.stands(ctx, op) {
		return nil
	}
	return newError(name, unclear(op.rec.Key), cause, ErrKeyReused)
}

// older is an operation that may stand before another one.
type older struct {
	intent.Relative
	after *persist.Record // the other one
	path  []string        // the keys from the operation that is asked about to the other one
	begun time.Time       // when the operation that is asked about was begun
	seq   uint64          // of the operation that is asked about
	// unbegun: the operation that is asked about is about to begin
	unbegun bool
}

// stoppedByOlder returns the reason why an earlier operation of the same intent forbids a send of rec; nil if none does. free are the lower generations of its
// key without a record, the nearest first: they get a placeholder. after is the operation by which an older one was found, and path the keys on the way to it.
// unbegun: rec is about to begin, and is not in the journal yet. An operation without a generation in its key, and in nobody's place, costs no read. Errors:
// the journal's.
func (b *admission) stoppedByOlder(ctx context.Context, rec *persist.Record, unbegun bool) (cause error, free []string, err error) {
	// Names may lead back: each is looked at once.
	seen, found := map[string]bool{rec.Key: true}, 0
	for next := before(rec, nil); len(next) > 0; next = next[1:] {
		o := next[0]
		if seen[o.Key] {
			continue
		}
		seen[o.Key] = true
		// In order, the nearest first: placeholders are written in this order.
		old, err := findOlder(ctx, b.places, &o)
		if err != nil && !errors.Is(err, persist.ErrNotFound) {
			return nil, nil, err
		}
		stands := err == nil // else it may be forgotten: no event finds it
		if o.after == rec && intent.WantsPlaceholder(o.Relative, stands, &old) {
			free = append(free, o.Key)
		}
		if !stands {
			continue
		}
		if !intent.IsSkipped(&old) { // else it is no operation
			if found++; found > intent.IntentMax {
				return fmt.Errorf("more than %d operations stand before %q; use a new key", intent.IntentMax, rec.Key), nil, nil
			}
			// Its caller may have the answer, and begin the next generation because of it.
			b.awaitEnd(ctx, &old)
			// Those before it count as well: an event may prove any of them.
			next = append(next, before(&old, o.path)...)
		}
		o.begun, o.seq, o.unbegun = rec.Created, rec.Seq, unbegun
		cause, err := b.stoppedBy(ctx, &old, &o)
		if cause != nil || err != nil {
			return cause, nil, err
		}
	}
	return nil, free, nil
}

// awaitEnd waits for the end of an earlier operation to be written, since a caller may have its answer before. It waits until this process has written it; if
// another process has the lease, it looks endTries times at most. Then rec is the record as it was read last.
func (b *admission) awaitEnd(ctx context.Context, rec *persist.Record) {
	for tries := 0; !rec.State.Final() && tries < endTries; tries++ {
		if tries > 0 {
			// Only another process that runs it can still write the end.
			if !b.holder.journalShared || !rec.MaybeSent || !b.holder.leasedElsewhere(rec) {
				return
			}
			select {
			case <-time.After(endPause):
			case <-ctx.Done():
				return
			}
		} else if b.unbegun.recorded(ctx, func(id persist.ID) bool { return id == rec.ID }) != nil {
			return
		}
		now, err := b.journal.Get(context.WithoutCancel(ctx), rec.ID)
		if err != nil {
			return
		}
		*rec = now
	}
}

// The looks of awaitEnd, and the pause between two of them. An end that was told is written within some milliseconds.
const (
	endTries = 6
	endPause = 50 * time.Millisecond
)

// before returns the operations that may have been tried before that of a record, for the same effect: the replaced one and lower
// generations of its key (KEY below KEY:gen=2). path has the keys from the operation asked about down to the one after rec; each result
// carries it on.
func before(rec *persist.Record, path []string) (all []older) {
	path = append(slices.Clone(path), rec.Key)
	for _, r := range intent.Elders(rec) {
		all = append(all, older{Relative: r, after: rec, path: path})
	}
	return all
}

// findOlder returns the record of an older operation; persist.ErrNotFound if there is none. o.after is the operation by which it was found. One that is named may
// have been assigned to an account since, or left behind by an Assign of the other; a generation of an account may stand under none, from before the program
// named one.
func findOlder(ctx context.Context, places place.Places, o *older) (persist.Record, error) {
	old, err := places.Before(ctx, o.after, o.Key)
	switch {
	case !errors.Is(err, persist.ErrNotFound):
		return old, err
	case o.Named:
		return places.Anywhere(ctx, o.Key, func(rec *persist.Record) bool { return intent.SameBytes(o.after, rec) })
	}
	for _, none := range request.Unassigned(request.Base(o.after.Account)) {
		// A copy, under the other account: Before looks beside the record that it is given.
		unassigned := *o.after
		unassigned.Account = none
		if old, err = places.Before(ctx, &unassigned, o.Key); !errors.Is(err, persist.ErrNotFound) {
			break
		}
	}
	return old, err
}

// stoppedBy returns the reason why an earlier try of the same operation forbids this send, such as an effect that is still possible; nil if it allows it. old is the
// record of that try, and o says how it leads to the operation that is asked about. Errors: the journal's.
func (b *admission) stoppedBy(ctx context.Context, old *persist.Record, o *older) (cause, err error) {
	// A replacement that has led to this very operation stops nobody (led).
	led, err := b.ledTo(ctx, old, o.path)
	op, next := operation.OpOf(old, 0), intent.SuccessorOf(old, o.begun, o.seq, o.Named, o.unbegun, led)
	// A decline frees only an operation that is begun after it; of one begun before, the program did not know it.
	next.Declined = (o.unbegun || next.AtOnce) && b.isDecline(ctx, old)
	switch {
	case err != nil:
		return nil, err
	case !next.IsStoppedBy(&op):
		return nil, nil
	case next.Another && old.Erased:
		return fmt.Errorf("another operation was begun to replace %q, whose record was erased; go on with that one, or under a new key", old.Key), nil
	case next.Another:
		return fmt.Errorf("%q was begun to replace %q; go on with that one", old.ReplacedBy, old.Key), nil
	}
	return whyStopped(&op, old.Key), nil
}

// whyStopped returns the error for an operation that is not sent, since the earlier one under key took effect, or may: what it is, and what
// to do.
func whyStopped(op *operation.Op, key string) error {
	switch {
	case op.Witnessed:
		return fmt.Errorf("the earlier operation %q took effect: an event of the API says so; settle or abandon this one", key)
	case op.TakenBack && !op.State.Final():
		return fmt.Errorf("the earlier operation %q was settled as absent, and a person took that back; settle it first", key)
	case op.TakenBack:
		return fmt.Errorf("the earlier operation %q was settled as absent, and a person took that back: it may have taken effect; use a new key", key)
	case !op.State.Final():
		return fmt.Errorf("the earlier operation %q has not ended; go on with that one, or settle it", key)
	}
	return fmt.Errorf("the earlier operation %q took effect, or may have; use a new key for another one", key)
}

// ledTo reports whether the record's chain of replacements leads to one of these keys: intent.LedTo decides. Then it forbids nothing to that operation. An erased
// record names its replacement by a digest only, so the keys are compared as digests. Errors: the journal's.
func (b *admission) ledTo(ctx context.Context, old *persist.Record, keys []string) (bool, error) {
	if !old.Erased || old.ReplacedBy == "" {
		return intent.LedTo(old.ReplacedBy, keys), nil
	}
	secret, err := b.journal.Secret(ctx)
	if err != nil {
		return false, err
	}
	return intent.ErasedLedTo(old.ReplacedBy, keys, func(key string) string { return persist.ErasedKey(secret, key) }), nil
}

// declinesKey is the key of a context's value: the function of ContextWithDeclines.
type declinesKey struct{}

// ContextWithDeclines returns a context for calls of a program that takes some recorded successes for declines, by their bodies: is reports whether a record has
// one. Such a call may begin the next generation of that operation.
func ContextWithDeclines(ctx context.Context, is func(rec *persist.Record) bool) context.Context {
	return context.WithValue(ctx, declinesKey{}, is)
}

// isDecline reports whether the program takes the recorded success of an operation for a decline: by its context, or by the verdicts of its profile, which may
// be newer than the record.
func (b *admission) isDecline(ctx context.Context, rec *persist.Record) bool {
	if is, ok := ctx.Value(declinesKey{}).(func(*persist.Record) bool); ok && is(rec) {
		return true
	}
	a, prof := rec.Answer, b.cfg.profiles().of(rec)
	from, err := request.URL(rec)
	if a == nil || a.BodyDropped || prof == nil || err != nil {
		return false
	}
	// The profile, with the verdicts for this endpoint alone.
	reading := b.cfg.reader.Endpoints.Reading(prof, rec)
	if _, missing := readsDropped(reading, a.Dropped, anyList); missing != "" || hidesErrors(rec) {
		return false // what was dropped may say that it succeeded
	}
	// Read anew: the profile of today may know the answer for a decline.
	answer := wire.Recorded(from, a.Status, a.Header, a.Body, true)
	return intent.IsDecline(classify.Classify(reading, seen(answer), classify.Facts{Protected: rec.Protected, TakesHTML: classify.AcceptsHTML(rec.Header)}))
}
