package audit

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// resultOf returns the result of an operation in the journal, such as done or declined.
func (a *audit) resultOf(rec *persist.Record) results.Result {
	return a.declinesFor(rec).ResultOfRecord(rec)
}

// declinesFor returns the answers that count as refusals (--declined), for judging an operation's answer; nil for a pruned answer, of which only the status is left.
// Such an operation may have been refused: see maybeDeclined.
func (a *audit) declinesFor(rec *persist.Record) results.Declines {
	if rec.Answer == nil {
		return nil
	}
	return a.declines
}

// see notes for the advice at the end whether some operations are protected by a key that the API knows, whether some are not, and whether some are held (not sent
// until a person decides) since the journal was restored from a backup.
func (a *audit) see(rec *persist.Record) {
	if op := operation.OpOf(rec, 0); op.Protected { // 0: for how long the API knows the key, the record says
		a.keyed = true
	} else {
		a.keyless = true
	}
	a.heldRestored = a.heldRestored || rec.HoldReason == persist.HoldRestored
}

// matchOf returns the text of an operation in the column --match: its key, or the reference in its request. The caller knows that there is one.
func (a *audit) matchOf(rec *persist.Record) string {
	reference, _ := a.referenceOf(rec)
	return reference
}

// successor returns the operation that was begun in place of rec: its next generation (the next try, under a new key), or one that a person began. Of several it
// returns the first that is done, or else the latest; nil if there is none. A missing or unreadable record ends the search.
func (a *audit) successor(rec *persist.Record) (*persist.Record, error) {
	var found *persist.Record
	at := *rec
	// It is bounded, should the keys form a circle.
	for n := 0; n < intent.GenerationsMax && (found == nil || !a.stateOf(found).done); n++ {
		next, err := a.get(cmp.Or(at.ReplacedBy, intent.NextGeneration(at.Key)), rec)
		switch {
		case errors.Is(err, persist.ErrNotFound), err != nil && persist.OfOneRecord(err):
			return found, nil
		case err != nil:
			return nil, err
		}
		found, at = &next, next
	}
	return found, nil
}

// bothDone reports the finding x about an operation that the exports show as done, and that counts as without effect here, while next, begun in its place, is done
// here. Both may have taken effect. If the exports have next, too, the finding is "twice".
func (a *audit) bothDone(x Finding, next *persist.Record) error {
	rows, err := a.theirs.peek(next.Key)
	if err != nil {
		return err
	}
	x.Finding, x.Why = "conflict", words.Clip(next.Key)+" stands in its place, and is done here"
	x.Next = "ask the provider whether both took effect; where they did, have one taken back (a refund); send neither again"
	if len(rows) > 0 {
		x.Finding, x.There = "twice", x.There+" and "+rows[0].where()
		x.Why, x.Next = words.Clip(next.Key)+" stands in its place, and is done, too", "have the provider take one of them back (a refund); send neither again"
	}
	return a.found(x)
}

// doneBefore looks in the exports for the operations in whose place rec was begun. rec has no rows there. If one of them has, doneBefore sets the reason and the advice
// of x, and returns true: another key would let the request take effect twice.
func (a *audit) doneBefore(rec *persist.Record, x *Finding) bool {
	if a.flags.reference != "" {
		return false // the rows have no keys, and the earlier operations have this reference, too
	}
	for _, key := range append([]string{rec.Replaces}, intent.GenerationsBelow(rec)...) {
		// Replaces is "" if a person replaced none; GenerationsBelow has the keys of its earlier tries. Rows that cannot be read change no advice.
		if rows, err := a.theirs.peek(key); key != "" && err == nil && len(rows) > 0 {
			x.Why = fmt.Sprintf("the exports have %s, in whose place it was begun, in %s", words.Clip(key), rows[0].where())
			x.Next = "send it under no other key: it would take effect twice"
			return true
		}
	}
	return false
}

// doneSince looks in the journal for the operation begun in place of rec, which has no rows in the exports. If that one is done, doneSince sets the reason and the
// advice of x, and returns true: no further key is needed.
func (a *audit) doneSince(rec *persist.Record, x *Finding) bool {
	next, err := a.successor(rec)
	if err != nil || next == nil || !a.stateOf(next).done { // after an error, the usual advice stays
		return false
	}
	x.Why = words.Clip(next.Key) + " stands in its place, and is done here, too"
	x.Next = "send it under no other key: the one in its place took effect; whether this one did, the API's own list tells"
	return true
}

// unread reports an operation that the exports have as done, and whose result here is unknown: its answer was too long to be kept, so that no text of a refusal
// (--declined) could be looked for in it. The finding names the commands that count it as done.
func (a *audit) unread(x Finding) error {
	x.Finding, x.Why = "settle", "its answer was too long to be kept, so that --declined was not looked for in it"
	forget := ""
	for _, text := range a.declinedTexts {
		if list, err := results.ParseDeclines([]string{text}); err == nil && len(list) > 0 {
			forget += " --forget " + words.ShellQuote(text)
		}
	}
	if x.Next = "leave --declined out, if all that it alone makes unknown or declined counts as done"; forget != "" {
		x.Next = "to count it as done, and all else that --declined alone made unknown or declined: oncehttp journal declined" + forget + " --journal " + a.arg
	}
	return a.found(x)
}
