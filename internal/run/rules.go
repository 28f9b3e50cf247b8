package run

import (
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file names the invariants of docs/invariants.md behind the ends of drives, for events. Nothing is decided by it.

const (
	ruleOfLeases = 12
	ruleOfPeople = 31
	// ruleOfEvidence is about what an event of the API proves.
	ruleOfEvidence = 56
)

// ruleOf returns the number of the invariant (docs/invariants.md) for which the run has ended so; zero if there is no single one.
func ruleOf(t *task) int {
	report := t.drive.Report()
	switch {
	case t.drive.Step() != operation.Over && t.drive.Proof().Kind == operation.ProvesEnd: // callers have the answer before the record
		return 30
	case t.drive.Step() != operation.Over:
		return 0
	// The call goes on at its limiter's turn.
	case report.Left:
		return 43
	case t.drive.Writing() == operation.EndHappened:
		return ruleOfEvidence
	case report.Answered && !t.drive.Stored():
		return 14
	case report.Answered:
		return 4
	// By the reason of the hold.
	case t.holds() != "":
		return holdRules[t.holds()]
	case report.Standing == operation.None, report.Standing == operation.Absent:
		return 13
	}
	return troubleRules[report.Why[0]]
}

// holdRules are the invariants behind the holds written by drives.
var holdRules = map[persist.HoldReason]int{
	persist.HoldExpired: 8, persist.HoldStoredError: 14, persist.HoldRedirected: 27, persist.HoldUnclear: 26, persist.HoldUnread: 42, persist.HoldNoKey: 49,
	persist.HoldDuplicate: 50, persist.HoldMismatch: 6, persist.HoldCaller: 29, persist.HoldPredecessor: ruleOfEvidence,
}

// troubleRules are the invariants behind drives that end in an error with an effect possible.
var troubleRules = [...]int{
	operation.NoTrouble: 2, operation.IsHeld: 2, operation.IsNotSent: 2, operation.IsRefused: 24, operation.IsInFlight: 28, operation.IsMismatch: 6,
	operation.IsExpired: 8, operation.IsStoredError: 14, operation.IsRedirected: 27, operation.IsDuplicate: 50, operation.AnswerGone: 14, operation.IsSettled: ruleOfEvidence,
	operation.IsAbandoned: 9,
}
