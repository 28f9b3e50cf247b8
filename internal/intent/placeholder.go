package intent

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about placeholders. Before a generation of a key is first sent, each generation below it without a record gets one. So nothing begins there
// any more: an earlier call with the lower key ended without an effect, and its record is forgotten. A placeholder is no operation. It is begun as held: nobody
// sends it. It is settled as absent at once. Its successor stands in the journal before it: a missing successor had no effect. (Invariants 1 and 54.)

// SkippedNote is the note of a placeholder's act.
const SkippedNote = "nothing was sent under it; a later generation was"

// Placeholder returns a record that keeps a key unused: that of a generation (KEY, KEY:gen=2) below next, which is about to be sent. It stands for any request
// with its key, and has none itself. It is kept for ever, as any record that names a successor. wire is the key as spelled for the API. (Invariants 1 and 54.)
func Placeholder(next *persist.Record, id persist.ID, wire string, now time.Time) persist.Record {
	return persist.Record{
		ID: id, State: persist.StateHeld, HoldReason: persist.HoldPredecessor, ReplacedBy: next.Key, Created: now,
		Origin: next.Origin, Method: next.Method, Target: next.Target, Omitted: next.Omitted, Credentials: next.Credentials, Scopes: next.Scopes,
		Carrier: next.Carrier, CarrierName: next.CarrierName, Protected: next.Protected, WireKey: wire, ServerToken: next.ServerToken,
		Profile: next.Profile, ProfileVersion: next.ProfileVersion, Facts: next.Facts, Window: next.Window, Pauses: next.Pauses,
		Credential: next.Credential, Region: next.Region, Fingerprint: next.Fingerprint, Recipe: next.Recipe, Content: next.Content,
		Acts: []persist.Act{{At: now, Did: persist.ActSkipped, Note: SkippedNote}},
	}
}

// EndedPlaceholder returns a placeholder, a record to keep the key of a skipped try unused, as ended: settled as absent, since nothing was sent under
// it. (Invariants 1 and 54.)
func EndedPlaceholder(rec persist.Record, now time.Time) persist.Record {
	rec.State, rec.HoldReason, rec.Effect, rec.Finished = persist.StateSettled, "", persist.EffectAbsent, now
	return rec
}

// WantsPlaceholder reports whether a placeholder, a record that keeps a key unused, is written for elder before a later generation of its key is sent: there is
// no record of it, or one that is a placeholder still held, to be ended. stands: at is its record. (Invariants 1 and 54.)
func WantsPlaceholder(elder Relative, stands bool, at *persist.Record) bool {
	return !elder.Named && (!stands || IsSkipped(at) && !at.State.Final())
}

// IsSkipped reports whether a record is a placeholder: no operation, but a record to keep the key of a skipped try unused. (Invariant 54.)
func IsSkipped(rec *persist.Record) bool { return persist.IsSkipped(rec.Acts) }

// LeftNothing reports whether the operation for which the placeholder o was written, a later try of its key, had no effect: no record of it stands, and none
// may appear. It stood before the placeholder was begun, is kept for ever once it has ended, and is forgotten only if nothing came of it. (Invariants 1, 2 and
// 54.)
func LeftNothing(o *operation.Op, stands, mayAppear bool) bool {
	return o.Skipped && !stands && !mayAppear
}
