// Package sim runs whole lives of the client from a seed and checks what the
// business sees.
//
// One seed is one [Plan]: what callers want and when, what the server and the
// network do to each send, when processes die, when the disk fails, how clocks
// stand. [Run] plays a plan inside one testing/synctest bubble, with the real
// client, the real journals and the real mock server, and holds what happens to
// the invariants, which docs/invariants.md numbers. The seed fixes everything but
// the order in which the scheduler runs goroutines, and the random numbers of
// the client; so a failing seed is run again many times, and [Shrink] drops the
// steps of its plan that the failure does not need.
//
// The parts, from the inside out:
//
//   - business.go: the server's work, and the count of effects.
//   - network.go: what happens between client and server, and the checks at a send.
//   - front.go: what stands in front of the API: pages, and a proxy that compresses.
//   - disk.go: a journal of which a crash leaves what was synced.
//   - handle.go: the journal as one process sees it, by that process's clock; late.go: one that writes ends late.
//   - process.go: processes that die and come back; config.go and variant.go: how each is configured, and in what one life differs
//     from the next.
//   - company.go: what clients of one journal have each of its own at the same time.
//   - operator.go: people who look, settle, and begin once more; joiner.go: second callers, who ask for the same operation meanwhile.
//   - customers.go: whose operation it is, where several customers share a client.
//   - caller.go: what one caller wants, and how it goes on after each answer.
//   - model.go: the invariants.
//   - world.go: one run, and how it ends once the faults have stopped.
//
// The package is for tests only, and needs a *testing.T.
package sim
