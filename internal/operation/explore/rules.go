package explore

import (
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// breaks returns the invariant that a move from one state to another breaks; empty if none. The numbers are those of ARCHITECTURE.
func (s *Slice) breaks(from, to *World) string {
	acted := to.Server.Effects > from.Server.Effects
	sent := to.Left.Sends < from.Left.Sends
	switch {
	case sent && (!from.Disk.Exists || !from.Disk.Op.MaybeSent && !from.Disk.Op.State.Final()):
		return "7: something is sent, and no durable record says that it may have been"
	case to.Server.Effects > 1:
		return "1: it took effect twice"
	case acted && from.Told.Free && to.Told.Free:
		return "2: callers were told that nothing happened, and then it took effect"
	case to.Told.Free && !from.Told.Free && to.Server.Effects > 0:
		return "2: callers are told that nothing happened, and it took effect"
	case to.Told.Free && !from.Told.Free && to.Flying > 0:
		return "2: callers are told that nothing happened, while a send may yet arrive"
	case to.Told.Free && !from.Told.Free && to.Rec.Exists && to.Rec.Op.Standing != operation.Absent:
		return "2: callers are told that nothing happened, and a record is pending"
	case to.Told.Paid && to.Server.Effects == 0:
		return "4: callers have a success, and nothing took effect"
	case to.Told.Refused && to.Server.Effects > 0:
		return "2: callers have a final refusal, and it took effect"
	case sent && from.Rec.Exists && from.now().Sub(from.Rec.Op.FirstSent) >= window:
		return "8: it is sent after the window"
	case sent && heldForGood(from) && !from.Procs[0].Lost && !from.Procs[1].Lost:
		return "8: it is sent while it is held"
	case heldForGood(from) && to.Rec.Op.State == persist.StatePending && to.Left.Acts == from.Left.Acts:
		return "8: what is held is gone on with"
	case from.Disk.Exists && from.Disk.Op.Enqueued && !to.Disk.Exists:
		return "18: the record of what was enqueued is gone"
	}
	return s.breaksRecord(to)
}

// breaksRecord returns the invariant that a record breaks.
func (s *Slice) breaksRecord(w *World) string {
	o := &w.Rec.Op
	possible := w.Server.Effects > 0 || w.Flying > 0
	switch {
	case !w.Rec.Exists && possible && !w.driven():
		return "2: the record is forgotten, and an effect is there, or possible"
	case !w.Rec.Exists:
		return ""
	case !o.MaybeSent && possible && !o.State.Final():
		return "2: the record says that it was never sent, and an effect is there, or possible"
	case o.State == persist.StateConfirmed && o.Standing == operation.Refused && w.Server.Effects > 0:
		return "2: the record is a refusal, and it took effect"
	case o.State == persist.StateConfirmed && o.Standing == operation.Succeeded && w.Server.Effects == 0:
		return "4: the record is a success, and nothing took effect"
	}
	return ""
}

// heldForGood reports whether nothing may be sent before somebody has settled the operation.
func heldForGood(w *World) bool {
	return w.Rec.Op.State == persist.StateHeld && w.Rec.Op.Hold != persist.HoldCaller
}

// driven reports whether some process drives.
func (w *World) driven() bool { return w.Procs[0].Active || w.Procs[1].Active }
