package conformance

import (
	"fmt"
	"time"
)

// VolumePlan is the amount of a run with Options.Volume.
type VolumePlan struct {
	// Requests is the most requests of the run, Effects the most operations among them. A
	// request that a rate limit turns away is sent again, and counts for MaxRequests only.
	Requests, Effects int

	keys, repeats  int // fresh keys, and repeats of some of them at the end
	owners, bodies int // keys, and other bodies under each
	large          int // operations with a body of largeBytes
	aged           int // operations that are repeated after volumeAge
	besides        int // other keys while one operation is at work
	connections    int // each with connectionRound requests
}

// The sizes of a run with Options.Volume.
const (
	volumeEffects      = 5_000 // operations on loopback, where Options.MaxEffects is not set
	volumeBodyOwners   = 8
	volumeAge          = 30 * time.Second
	largeBytes         = 100 << 10
	volumeHold         = 2 * time.Second
	connectionRound    = 5                       // requests on each connection, 4 of them operations
	volumeCaseTime     = 2*floodTime + volumeAge // each case sends twice
	volumeEffectsLeast = 100
)

// PlanVolume returns the numbers of operations and requests that a run with these options and Volume would send. It divides Options.MaxEffects and
// MaxRequests among the cases by fixed parts, and sends nothing. Parts: fresh keys (keys) and repeats of some (repeats), other bodies under a few
// keys (owners), large bodies, keys repeated after a pause (aged), keys beside one at work (besides), and connections with connectionRound requests
// each, the last of which is a repeat. The 1 is the operation at work beside which others are sent.
func PlanVolume(o Options) VolumePlan {
	o = o.withDefaults()
	effects := o.MaxEffects
	if effects == 0 {
		effects = volumeEffects
	}
	effects = min(effects, o.MaxRequests/3)
	p := VolumePlan{
		keys: effects * 2 / 5, owners: volumeBodyOwners, bodies: effects / 20, large: effects / 50,
		aged: min(20, effects/50), besides: effects / 10, connections: effects / 100,
	}
	p.repeats = min(200, p.keys)
	p.Effects = p.keys + p.owners + p.large + p.aged + p.besides + 1 + p.connections*(connectionRound-1)
	p.Effects += p.Effects / 10 // a refusal is asked about under another key, and the probes are operations
	p.Requests = p.Effects + p.repeats + p.owners*p.bodies + p.large + p.aged + p.connections
	return p
}

// Volumes returns the cases of a run with Options.Volume, which sends very many requests, in the order of a report. volume makes one case, for a run
// that gets the plan of its numbers.
func Volumes() []Case {
	volume := func(id, rule, impact, fix string, run func(volumeRun), needs ...Need) Case {
		return Case{
			ID: "volume/" + id, Level: LevelSafety, Since: "1.1", Needs: needs, Alone: true, lasts: volumeCaseTime,
			Spec: []Ref{invariant("S1"), invariant("S2")}, Rule: rule, Impact: impact, Fix: fix, ownLoss: true, // they fit a success told of what never happened
			run: func(x *trial) { run(volumeRun{trial: x, plan: PlanVolume(x.r.o)}) },
		}
	}
	return []Case{
		volume("connections", "What was sent on a connection before bears on no later request.",
			"One customer is given the answer to another's request.",
			"Keep nothing of a request in what outlives it: a connection, a thread, a buffer that is used again.", volumeConnections),
		volume("keys", "Among thousands of keys each is its own, and is known as long as the others.",
			"A customer is charged again when the shop is busy, or is given another's answer.",
			"Find records by the whole key, or a hash of at least 128 bits, and let them go by their age and not by their number.", volumeKeys),
		volume("bodies", "However many other requests come under a key, each is refused.",
			"A changed request is confirmed with the answer to another one, and never happens.",
			"Compare a cryptographic hash of the whole request, not a checksum or a part of a hash.", volumeBodies, NeedJSON),
		volume("bytes", "A key is known however large the requests are that come after it.",
			"A customer is charged again after somebody else's large order.",
			"Bound the store by the age of records and refuse new keys when it is full.", volumeBytes, NeedJSON),
		volume("locks", "A key is not refused because another one is at work.",
			"Orders fail at random under load.",
			"Lock by the whole key, or wait for the lock instead of refusing.", volumeLocks, NeedDelay),
		volume("age", fmt.Sprintf("A key is known after %v in which nothing was sent.", volumeAge),
			"A customer whose connection was gone for half a minute is charged again.",
			"Keep records for as long as clients try: a day at least.", volumeAges),
	}
}
