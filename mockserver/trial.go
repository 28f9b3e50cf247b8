package mockserver

import (
	"slices"
	"time"
)

// tracksMax and sightsMax bound what a referee remembers: operations, and sends
// of one operation. What comes later is played, and not judged.
const (
	tracksMax = 10_000
	sightsMax = 1_000
)

// track is one operation of the client.
type track struct {
	operation string
	scenario  string
	sends     []*sight
}

// trial is everything that a referee has seen. The watch's lock guards it.
type trial struct {
	referee Referee
	tracks  []*track
	byID    map[string]*track
	begun   time.Time
}

func newTrial(r *Referee) *trial {
	if r == nil {
		return nil
	}
	return &trial{referee: *r, byID: map[string]*track{}, begun: time.Now()}
}

// note files a send under its operation. Sends of the same operation that are
// still being handled learn of it, whatever its key.
func (t *trial) note(v *sight) {
	id := "operation " + v.operation
	if v.operation == "" {
		id = "key " + v.key
	}
	at := t.byID[id]
	if at == nil {
		if len(t.tracks) == tracksMax {
			return
		}
		at = &track{operation: v.operation}
		if n := len(t.referee.Scenarios); n > 0 {
			at.scenario = t.referee.Scenarios[len(t.tracks)%n].Name
		}
		t.byID[id] = at
		t.tracks = append(t.tracks, at)
	}
	if len(at.sends) == sightsMax {
		return
	}
	for _, other := range at.sends {
		if !other.done && other.context.Err() == nil && !slices.Contains(other.overlaps, v) {
			other.overlaps = append(other.overlaps, v)
		}
	}
	at.sends = append(at.sends, v)
}

// settled reports whether every operation has its answer, and whether all that
// are expected were seen.
func (t *trial) settled() (all, seen bool) {
	all = true
	for _, at := range t.tracks {
		last := at.sends[len(at.sends)-1]
		if !last.done || !last.whole || !last.isFinal(false) {
			all = false
		}
	}
	return all, t.referee.Expect > 0 && len(t.tracks) >= t.referee.Expect
}

// busy reports whether a send is being handled.
func (t *trial) busy() bool {
	return slices.ContainsFunc(t.tracks, func(at *track) bool {
		return slices.ContainsFunc(at.sends, func(v *sight) bool { return !v.done })
	})
}

// snapshot copies the tracks, so that they can be judged without the lock. What
// is still being handled counts as not answered.
func (t *trial) snapshot() []track {
	copies := make([]track, len(t.tracks))
	for i, at := range t.tracks {
		copies[i] = track{operation: at.operation, scenario: at.scenario}
		for _, v := range at.sends {
			one := &sight{}
			if v.done {
				*one = *v
			} else {
				one.seen = v.seen
				one.ended = time.Now()
			}
			copies[i].sends = append(copies[i].sends, one)
		}
	}
	return copies
}

// pair is an answer and the send that followed it in the same operation.
type pair struct {
	before, after *sight
	at            *track
	nth           int // of the answer, from 0
}

// pairs lists what followed what; a send that did not wait for the answer before
// it did not follow it.
func pairs(tracks []track) []pair {
	var all []pair
	for i := range tracks {
		sends := tracks[i].sends
		for j := 1; j < len(sends); j++ {
			if !sends[j].begun.Before(sends[j-1].ended) {
				all = append(all, pair{sends[j-1], sends[j], &tracks[i], j - 1})
			}
		}
	}
	return all
}
