package acts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Act is a person's act on an operation seen before.
type Act uint8

const (
	// End settles or abandons an operation, or assigns it to an account.
	End Act = iota
	// EndUndone abandons an operation after an undo at the API. Meanwhile it is held.
	EndUndone
	// BeginAnew begins an operation once more under another key (Rekey). It may hold the old operation, and settle it as absent.
	BeginAnew
)

// Moved returns why a person's act on an operation is refused: now, its present record, is not as seen, when the person looked and decided; empty: it is.
// seen.LeaseOwner is set exactly if somebody was sending it then. (Invariant 31.)
//
// State, hold, sends, MaybeSent and the number of drives (begins of sending) must be as before. Revisions are not compared: a renewed lease, a pause and a
// returned lease raise them, and a person sees no difference.
func Moved(seen, now *persist.Record, act Act) string {
	switch {
	case seen.ID != now.ID || seen.Seq != now.Seq:
		return "it is another operation than the one that was seen"
	case seen.LeaseOwner != "" && !seen.State.Final():
		return "somebody was sending it when it was seen"
	case seen.MaybeSent != now.MaybeSent || seen.Sends != now.Sends:
		return "it was sent, or may have been, since it was seen"
	case seen.Drives != now.Drives:
		return "somebody has set out to send it since it was seen"
	case seen.State == now.State && seen.HoldReason == now.HoldReason || ownState(seen, now, act):
		return ""
	}
	return fmt.Sprintf("it was %s when it was seen, and is %s", standingText(seen), standingText(now))
}

// LacksLook reports whether an act is refused since it names no earlier look at the operation (seen). An act that says that nothing happened, as a settlement
// as absent and a Rekey do, must rest on one: a worker may have sent the operation since. (Invariants 2 and 31.)
func LacksLook(act Act, absent, seen bool) bool { return !seen && (absent || act == BeginAnew) }

// ownState reports whether an earlier, unfinished call of the same act explains the change from seen to now: it has held the operation, or settled it.
// (Invariant 31.)
func ownState(seen, now *persist.Record, act Act) bool {
	if seen.State.Final() {
		return false
	}
	switch act {
	case EndUndone:
		return now.HoldReason == persist.HoldUndo
	case BeginAnew:
		return now.HoldReason == persist.HoldRekey || now.HoldReason == persist.HoldRekeyHeld ||
			now.Effect == persist.EffectAbsent // it is settled
	}
	return false
}

// standingText returns a record's state, with the reason of a hold.
func standingText(rec *persist.Record) string {
	if rec.HoldReason != "" {
		return fmt.Sprintf("%v (%s)", rec.State, rec.HoldReason)
	}
	return rec.State.String()
}

// SeenLength is the length of a digest of Seen.
const SeenLength = 12

// Seen returns a digest of the fields compared by Moved, in lower-case hexadecimal digits. Two records with one digest are equal for Moved. (Invariant 31.)
func Seen(rec *persist.Record) string {
	underWay := rec.LeaseOwner != "" && !rec.State.Final()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %q %t %d %d %t",
		rec.Account, rec.Key, rec.Seq, rec.State, rec.HoldReason, rec.MaybeSent, rec.Sends, rec.Drives, underWay))
	return hex.EncodeToString(sum[:])[:SeenLength]
}

// MovedSince reports whether a person's act is refused since the operation has changed; digest, made by Seen, is all that is known of the record when the
// person looked. States that the act itself may have changed are tried one by one. (Invariant 31.)
func MovedSince(digest string, now *persist.Record, act Act) bool {
	if Seen(now) == digest {
		return false
	}
	before := *now
	for _, why := range append(persist.HoldReasons(), "") {
		before.State, before.HoldReason = persist.StateHeld, why
		if why == "" {
			before.State = persist.StatePending
		}
		if Seen(&before) == digest && Moved(&before, now, act) == "" {
			return false
		}
	}
	return true
}
