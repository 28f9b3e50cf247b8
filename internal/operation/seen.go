package operation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Act is a person's act on an operation that was looked at before.
type Act uint8

const (
	// End settles or abandons an operation, or assigns it to an account.
	End Act = iota
	// EndUndone abandons an operation once the API was asked to undo it. Meanwhile it is held.
	EndUndone
	// BeginAnew begins an operation once more under another key (Rekey). It may hold the old one, and settle it as absent.
	BeginAnew
)

// Moved returns why an act that was decided on by seen must not be done to now, the same record as the journal has it; empty
// if it may be. seen.LeaseOwner is set exactly if a drive was under way then.
//
// State, hold, sends, MaybeSent and the number of drives must be as they were. Revisions are not compared: a heartbeat, a pause and
// a lease that is given back raise them, and change nothing of what a person could have seen.
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

// ownState reports whether the act itself, when it was done before and broken off, has brought seen into the state of now.
func ownState(seen, now *persist.Record, act Act) bool {
	if seen.State.Final() {
		return false
	}
	switch act {
	case EndUndone:
		return now.HoldReason == persist.HoldUndo
	case BeginAnew:
		return now.HoldReason == persist.HoldRekey || now.HoldReason == persist.HoldRekeyHeld ||
			now.State == persist.StateSettled && now.Effect == persist.EffectAbsent
	}
	return false
}

// standingText is a record's state, with the reason where it is held.
func standingText(rec *persist.Record) string {
	if rec.HoldReason != "" {
		return fmt.Sprintf("%v (%s)", rec.State, rec.HoldReason)
	}
	return rec.State.String()
}

// SeenLength is the length of a digest of Seen.
const SeenLength = 12

// Seen returns a digest of everything that Moved compares, in lower-case hexadecimal digits. Two records with one digest are alike
// for Moved.
func Seen(rec *persist.Record) string {
	underWay := rec.LeaseOwner != "" && !rec.State.Final()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %q %t %d %d %t",
		rec.Account, rec.Key, rec.Seq, rec.State, rec.HoldReason, rec.MaybeSent, rec.Sends, rec.Drives, underWay))
	return hex.EncodeToString(sum[:])[:SeenLength]
}

// MovedSince is Moved where only a digest tells what was seen.
func MovedSince(digest string, now *persist.Record, act Act) bool {
	if Seen(now) == digest {
		return false
	}
	before := *now
	for _, why := range append(holdReasons(), "") {
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

// holdReasons are the reasons for which an operation may have been held before an act changed that.
func holdReasons() []persist.HoldReason {
	return []persist.HoldReason{
		persist.HoldExpired, persist.HoldStoredError, persist.HoldRedirected, persist.HoldUnclear, persist.HoldUnread, persist.HoldNoKey,
		persist.HoldDuplicate, persist.HoldMismatch, persist.HoldRestored, persist.HoldUndo, persist.HoldRekey, persist.HoldRekeyHeld, persist.HoldCaller,
	}
}
