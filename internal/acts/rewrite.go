package acts

import "github.com/oncehttp/oncehttp/persist"

// MayRewrite reports whether a client may repeat a write that was refused as stale. before is the record as the client read it, and now is the record
// as it stands. The only changes between the two may be the mark of an Enqueue, the evidence of an event, and one claim of this very client, owner,
// during its run. Evidence is allowed only if heeds is true: the write heeds it. A claim by another process leaves another owner, and the end
// of its lease takes one more revision. (Invariants 12, 18, 31 and 56.)
func MayRewrite(before, now *persist.Record, owner string, heeds bool) bool {
	known := afterEnqueue(before.Revision, before.Enqueued, now)
	if now.Evidence != nil && before.Evidence == nil {
		if !heeds {
			return false
		}
		known++
	}
	if now.Revision == known+1 && now.LeaseOwner == owner {
		known++
	}
	return now.Revision == known && known > before.Revision && now.Seq == before.Seq &&
		now.State == before.State && now.HoldReason == before.HoldReason && now.LeaseOwner == before.LeaseOwner &&
		now.MaybeSent == before.MaybeSent && now.Token == before.Token && now.Attempts == before.Attempts && now.Sends == before.Sends
}

// afterEnqueue returns the revision to expect of now, a record known at revision: one more if an Enqueue has marked it since. enqueued is the mark as known.
// (Invariant 18.)
func afterEnqueue(revision uint64, enqueued bool, now *persist.Record) uint64 {
	if now.Enqueued && !enqueued {
		revision++
	}
	return revision
}
