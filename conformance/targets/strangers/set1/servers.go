// Package set1 has servers by one author; see conformance/targets/strangers/README.md. They are
// layers of middleware in front of the service, with a store in memory. Broken ones have one
// deliberate fault.
package set1

import "github.com/oncehttp/oncehttp/conformance/targets/strangers"

// Servers lists the servers of this package, to test the conformance suite. It must find the deliberate fault that Wrong describes; a server without
// Wrong is correct, and must pass.
func Servers() []strangers.Server {
	return []strangers.Server{
		{Name: "rollback-drops-newest", New: newRollback,
			Wrong: "a request that fails also removes the key that was taken last, so a repeat of another key that began meanwhile is executed"},
		{Name: "timeout-frees-key", New: newTimeout,
			Wrong: "work that takes over 250 ms is answered 503 and its key is free again, while the work goes on and has its effect"},
		{Name: "flight-ignores-caller", New: newFlights,
			Wrong: "the same request under the same key by another caller gets the outcome of the first caller's, if it comes while that is at work"},
		{Name: "flattened-lists", New: newFlattened,
			Wrong: "a body whose lists have the same elements in another order is confirmed with the first outcome"},
		{Name: "slab-of-a-leaver", New: newSlabs,
			Wrong: "the answer to a client that hung up during the work is overwritten by the next answer, and a repeat gets that"},
		{Name: "crash-after-failure-locks", New: newAttempts,
			Wrong: "a key stays locked if the work panics in a try that follows a failure"},
		{Name: "stampede-after-failure", New: newStampede,
			Wrong: "if the first fails while two or more repeats wait for it, each of them is executed"},
		{Name: "limited-stays-locked", New: newLimitedLocks,
			Wrong: "a key whose first request was answered 429, because two others were at work, stays locked"},
		{Name: "patch-ignores-path", New: newPatchPath,
			Wrong: "a PATCH or PUT with the same body to the other path is confirmed with the first outcome"},
		{Name: "print-of-first-32k", New: newShortPrint,
			Wrong: "a change of the body behind its first 32 KB is not seen, and is confirmed with the first outcome"},

		{Name: "values-waits-keeps-failures", New: newByValue},
		{Name: "late-and-shy", New: newLateAndShy},
		{Name: "one-owner", New: newOneOwner},
		{Name: "bounded-by-use", New: newBounded},
		{Name: "query-counts", New: newQueryCounts},
	}
}
