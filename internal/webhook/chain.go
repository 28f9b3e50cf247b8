package webhook

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file tells operations of one reference apart that replace each other: a Redrive or a Rekey has begun each in the place of the one before, with its bytes.

// referredMax bounds the operations of one reference: what one business has begun again.
const referredMax = 50

// referred returns the facts about the operations with one reference, such as an order's number, for an event that was created at this time: for each
// its state, whether it is earlier than the event, and its place in the chain of replacements.
func referred(all []persist.Record, created time.Time) []acts.Referred {
	facts := make([]acts.Referred, len(all))
	for i := range all {
		facts[i] = acts.Referred{Op: operation.OpOf(&all[i], 0), Early: acts.IsEarlier(&all[i], created)}
		facts[i].First, facts[i].Steps = rootOf(all, &all[i])
	}
	return facts
}

// rootOf follows rec.Replaces back to the first operation, among the records all. It returns a name of the first operation, and the number of steps
// from it to rec. A person has begun each operation in place of the one before.
func rootOf(all []persist.Record, rec *persist.Record) (first string, steps int) {
	base := request.Base(rec.Account)
	for range all { // at most: a circle would have no end
		before := (*persist.Record)(nil)
		for i := range all {
			if old := &all[i]; rec.Replaces != "" && old.Key == rec.Replaces && request.Base(old.Account) == base && !intent.OtherScope(rec.Scopes, old) {
				before = old
			}
		}
		if before == nil {
			break
		}
		rec = before
		steps++
	}
	return rec.Account + "\x00" + rec.Key, steps
}
