// Package set2 has servers by one author; see conformance/targets/strangers/README.md. They are
// designs with tables, leases, caches, sweeps and locks. Broken ones have one deliberate fault.
package set2

import "github.com/oncehttp/oncehttp/conformance/targets/strangers"

// Servers lists the servers of this package, to test the conformance suite. It must find the deliberate fault that Wrong describes; a server without
// Wrong is correct, and must pass.
func Servers() []strangers.Server {
	return []strangers.Server{
		{Name: "lease-renewed-once", New: newLeased,
			Wrong: "the lease of a key is renewed once, so a repeat is executed if the first has been at work for 300 ms"},
		{Name: "loser-unlocks", New: newLoser,
			Wrong: "whoever is refused while the first is at work gives the first's lock back, so the next repeat is executed"},
		{Name: "filter-unlearns", New: newFiltered,
			Wrong: "a failure clears bits of a filter that other keys of the caller share, and a repeat of one of these is executed"},
		{Name: "hot-key-moved", New: newHot,
			Wrong: "an outcome that was given again three times moves to a cache, and is forgotten a second later"},
		{Name: "varchar-64", New: newVarchar,
			Wrong: "keys over 64 bytes that have the first 64 in common are one key"},
		{Name: "slot-shares-outcome", New: newSlotted,
			Wrong: "a first request gets the outcome of another key that is at work, if both keys have the same of 8 slots"},
		{Name: "crash-discards-batch", New: newBatched,
			Wrong: "a panic rolls back the outcomes of other requests in the 50 ms before it, so that a repeat of them is executed"},
		{Name: "row-too-large", New: newRowLimit,
			Wrong: "the outcome of a body over 64 KB is not stored, and a repeat is executed"},
		{Name: "unique-with-print", New: newUniquePair,
			Wrong: "another request under a key is executed if the first is still at work"},
		{Name: "cache-ignores-path", New: newCached,
			Wrong: "within a second of an answer, the same body by another method or at the other path is confirmed with its outcome"},

		{Name: "polls-and-keeps-refusals", New: newPolling},
		{Name: "crowded-429", New: newCrowded},
		{Name: "forgets-after-a-minute", New: newForgetful},
		{Name: "striped-503", New: newStriped},
		{Name: "outbox-202", New: newOutbox},
	}
}
