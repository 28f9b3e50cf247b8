package explore

import (
	"math/rand/v2"
	"slices"

	"github.com/oncehttp/oncehttp/internal/operation"
)

// Step is an event of a drawn history, with the state after it.
type Step struct {
	Event
	Rec     operation.Op // of the key; the zero value if there is no record
	Exists  bool         // there is one
	Final   bool         // the event writes an end, which need not be durable
	Effects int          // so far, of all keys
	Driven  bool         // the client goes on
	Kept    int16        // the status kept by the server under the key
}

// Walk draws a history. In each state it draws one kind of the possible events accepted by passes, and then one event
// of the kind. It ends if none is left. bad is the invariant broken by the last event.
func (s *Slice) Walk(r *rand.Rand, passes func(w *World, e *Event) bool) (steps []Step, bad string) {
	w := s.newWorld()
	for {
		kinds := map[Did][]move{}
		var order []Did // each kind is there often times
		for _, m := range s.moves(&w, nil) {
			if !passes(&w, &m.event) {
				continue
			}
			if kinds[m.event.Did] == nil {
				order = append(order, slices.Repeat([]Did{m.event.Did}, m.event.Did.often())...)
			}
			kinds[m.event.Did] = append(kinds[m.event.Did], m)
		}
		if len(order) == 0 {
			return steps, ""
		}
		of := kinds[order[r.IntN(len(order))]]
		m := of[r.IntN(len(of))]
		k := &m.to.Ops[m.event.On]
		// Final: an end was written that is not durable yet.
		steps = append(steps, Step{
			Event: m.event, Rec: k.Rec.Op, Exists: k.Rec.Exists, Final: k.Rec != k.Disk,
			Effects: int(m.to.Intents[0].Effects + m.to.Intents[1].Effects), Driven: m.to.driven(int(m.event.On)), Kept: k.Kept,
		})
		if w = m.to; m.bad != "" {
			return steps, m.bad
		}
	}
}

// often returns the weight of a kind of event in the draw: a history with a crash or a failure as each second event
// does not come far.
func (d Did) often() int {
	switch d {
	case Crashes, CrashLoses, BeginFails, BeginUncertain, BeginUncertainWritten, BeginComes, MarkFails, MarkFailsWritten, Abandons, SettlesHappened, SettlesAbsent,
		EnqueuesBeside, TimePasses, WriteFails, WriteFailsWritten, IsGivenUp, WaitIsCut:
		return 1
	}
	return 6
}

// Idle reports whether no client is at work on an operation.
func (w *World) Idle() bool { return !w.driven(0) && !w.driven(1) }
