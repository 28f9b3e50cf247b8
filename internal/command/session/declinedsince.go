package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/persist"
)

// An operation that ended before a value of --declined was given was told as done. That value, perhaps a wrong one, makes a decline of it, which a next generation
// would send once more. So the journal keeps the time at which each value was first given.

// declinedSince are the values of --declined of this run and of earlier ones, with the times from which they hold.
type declinedSince []declinedFrom

type declinedFrom struct {
	text string
	from time.Time // zero: the journal does not say, and it always held
}

// sinceOf returns the texts of --declined (answers that count as refusals), each with the time from which it counts. The journal has these times. A text that is not
// among the known ones counts from now on, so that an operation told as done before can be recognized (WasDone). The zero time means: from the start.
func sinceOf(ctx context.Context, ses *Session, texts, known []string, now time.Time) (declinedSince, error) {
	fact, err := ses.Journal.Fact(ctx, persist.FactDeclinedSince, nil, nil) // without values it only reads
	if err != nil && !errors.Is(err, persist.ErrDenied) {
		return nil, place.JournalError(ses.Place.Name, err)
	}
	kept := map[string]time.Time{}
	for line := range strings.Lines(string(fact)) {
		digest, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		if ms, err := strconv.ParseInt(at, 10, 64); err == nil {
			kept[digest] = time.UnixMilli(ms)
		}
	}
	var all declinedSince
	for _, text := range texts {
		from := kept[digestOf(text)]
		if !slices.Contains(known, text) {
			from = now
		}
		all = append(all, declinedFrom{text, from})
	}
	return all, nil
}

// digestOf returns a short hash of a text of --declined. The journal names the text by it, since the size of the value there is bounded.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// keep writes the times from which the texts of --declined count to the journal. If they are too many for its bound, the last ones are left out, and count
// from the start. So do those without a time. It tries again if another process has changed them meanwhile.
func (all declinedSince) keep(ctx context.Context, ses *Session) error {
	value := ""
	for _, d := range all {
		if line := fmt.Sprintf("%s %d\n", digestOf(d.text), d.from.UnixMilli()); !d.from.IsZero() && len(value)+len(line) <= persist.FactMax {
			value += line
		}
	}
	return ChangeFact(ctx, ses, persist.FactDeclinedSince, func(string) string { return value })
}

// WasDone reports whether an operation ended as done, and was told so, before a value of --declined made a decline of it.
func (f *ClientFlags) WasDone(rec *persist.Record) bool {
	if rec.State != persist.StateConfirmed || rec.Finished.IsZero() || f.Declines.ResultOfRecord(rec) != results.Declined {
		return false
	}
	var then []string
	for _, d := range f.declinedSince {
		if !d.from.After(rec.Finished) { // it counted already when the operation ended
			then = append(then, d.text)
		}
	}
	list, err := results.ParseDeclines(then)
	if err != nil {
		return false // they were parsed before
	}
	switch list.ResultOfRecord(rec) {
	case results.Done, results.Accepted, results.Duplicate:
		return true
	}
	return false
}

// MayHideEffect reports whether a decline by --declined may hide the effect of an earlier send: its answer is a 2xx to a later send, and the API does not mark it as the
// answer to the first. An API that looks at its balance before it looks at the key gives such an answer. The record has no answers to earlier sends, so sends that a rate
// limit refused count, too.
func (f *ClientFlags) MayHideEffect(rec *persist.Record) bool {
	return rec.State == persist.StateConfirmed && rec.Sends > 1 && rec.FinalEffect() == persist.EffectHappened && f.Declines.ResultOfRecord(rec) == results.Declined &&
		(rec.Answer == nil || !rec.Answer.Replayed && !rec.Answer.AlreadyDone) // what a lookup found is the state of the resource itself
}
