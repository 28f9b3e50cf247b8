package sim

// Bug names a defect put in to check its finding by the invariants. The zero
// value is none: the client as it is.
type Bug string

// The bugs put in at a seam: a journal or a transport between the client
// and the layer beneath. Bugs without a seam are put into a copy of the source, by
// overlay_test.go.
const (
	BugKeyPerAttempt     Bug = "a key for each attempt"
	BugSendBeforeSync    Bug = "sent before it is durable"
	BugMarkBeforeSync    Bug = "first send of an enqueued one before its mark is durable"
	BugHeadIsEnough      Bug = "finished before the body is read"
	BugDropOnCancel      Bug = "answer dropped because the caller has left"
	BugNoWindow          Bug = "window ignored"
	BugNoLease           Bug = "lease ignored"
	BugNoFingerprint     Bug = "fingerprint skipped"
	BugNewKeyAfter422    Bug = "a new key after a mismatch"
	BugForgetInDoubt     Bug = "forgotten while in doubt"
	BugOthersAnswer      Bug = "replay from another account"
	BugStaleAnswer       Bug = "stale answer after Forget"
	BugTornCommit        Bug = "torn commit accepted"
	BugLazyForget        Bug = "no effect said before Forget is durable"
	BugLazyMismatch      Bug = "mismatch finished lazily"
	BugLazyRefusal       Bug = "final 4xx finished lazily"
	BugNeverUnreported   Bug = "a pass that ends an operation leaves no mark for loops"
	BugToldKeyForgotten  Bug = "a generated key that an error named is forgotten with its answer"
	BugEnqueueMarkLost   Bug = "an Enqueue beside a Do leaves no mark"
	BugHeldIsSent        Bug = "what is held is sent"
	BugLateEndDropped    Bug = "a late end is said to be written, and is dropped"
	BugLateEndsSwapped   Bug = "a late end is written with the answer of another"
	BugAbandonedIsResent Bug = "an abandoned operation comes back"
)

// Bugs lists the deliberate bugs that the simulation must find.
func Bugs() []Bug {
	return []Bug{
		BugKeyPerAttempt, BugSendBeforeSync, BugMarkBeforeSync, BugHeadIsEnough, BugDropOnCancel, BugNoWindow, BugNoLease,
		BugNoFingerprint, BugNewKeyAfter422, BugForgetInDoubt, BugOthersAnswer, BugStaleAnswer, BugTornCommit, BugLazyForget,
		BugLazyMismatch, BugLazyRefusal, BugNeverUnreported, BugToldKeyForgotten, BugEnqueueMarkLost, BugHeldIsSent, BugAbandonedIsResent,
		BugLateEndDropped, BugLateEndsSwapped,
	}
}
