// Package sim runs whole lives of the client from a seed and checks the view of
// the business.
//
// One seed is one [Plan]: the wishes of callers and their times, the faults of the server and the
// network at each send, the deaths of processes, the failures of the disk, the
// clocks. [Run] plays a plan inside one testing/synctest bubble, with the real
// client, the real journals and the real mock server. It checks all events against
// the invariants, numbered in docs/invariants.md. The seed fixes everything but
// the scheduler's order of goroutines, and the random numbers of
// the client. So a failing seed is run again many times, and [Shrink] drops the
// steps of its plan not needed for the failure.
//
// The parts, from the inside out:
//
//   - business.go: the server's work, and the count of effects.
//   - network.go: the events between client and server, and the checks at a send.
//   - front.go: the things in front of the API: pages, and a compressing proxy.
//   - disk.go: a journal; after a crash its synced changes stay.
//   - handle.go: the journal as one process sees it, by that process's clock; late.go: one with late writes of ends.
//   - process.go: processes, their deaths and returns; config.go and variant.go: the configuration of each, and the differences
//     between one life and the next.
//   - company.go: the different settings of clients of one journal at the same time.
//   - operator.go: people: they look, settle, and begin once more; joiner.go: second callers for the same operation meanwhile.
//   - customers.go: the owner of an operation, if several customers share a client.
//   - caller.go: the intent of one caller, and its next act after each answer.
//   - model.go: the invariants.
//   - world.go: one run, and how it ends once the faults have stopped.
//
// The package is for tests only, and needs a *testing.T.
package sim
