package persist

import (
	"slices"
	"strings"
	"time"
)

// Query selects records. The zero value selects every record of every account.
type Query struct {
	_ struct{}

	// Account selects one account and its scoped accounts (see Record.ID).
	// Empty with AllAccounts false is the unnamed account.
	Account string
	// AllAccounts selects every account; Account is then ignored.
	AllAccounts bool
	// Key selects records of this key only.
	Key string
	// Origin selects records of this origin only; empty means all.
	Origin string
	// Needs selects records with this text of Record.Needs only; empty means all.
	Needs string
	// States selects these states; none means all.
	States []State
	// DueBy, if set, selects records with NextAttempt not after it. In a journal that is a
	// [Claimer] it is a time by that journal's clock.
	DueBy time.Time
	// Unresolved, if set, selects records with a generated key and this
	// Fingerprint that are unfinished, or final and Unreported. Journals answer
	// it from an index: it is asked before every operation without a key of
	// its own.
	Unresolved []byte
	// AnyUnresolved selects the same records whatever their Fingerprint.
	// Journals answer it without reading the others.
	AnyUnresolved bool
	// Owed, if set, selects records with Record.Owed. Journals that are [Results] answer it without reading the others.
	Owed bool
	// After resumes a listing: only records with a greater Seq. It leaves out records without their text that have none.
	After uint64
}

// Match reports whether q selects r: each condition set in q must hold. After is the Seq (the number of a record in the journal) behind which a listing goes
// on: it selects higher ones only. A DueBy selects records to be sent by then. A journal without an index for a condition calls it for each record.
func (q *Query) Match(r *Record) bool {
	switch {
	case r.Seq <= q.After:
		return false
	case !q.matchAccount(r.Account):
		return false
	case q.Key != "" && r.Key != q.Key:
		return false
	case q.Origin != "" && r.Origin != q.Origin:
		return false
	case len(q.States) > 0 && !slices.Contains(q.States, r.State):
		return false
	case !q.DueBy.IsZero() && r.NextAttempt.After(q.DueBy):
		return false
	case q.Owed && !r.Owed():
		return false
	case q.Needs != "" && r.Needs().String() != q.Needs:
		return false
	}
	return q.matchUnresolved(r)
}

// matchUnresolved reports whether r meets the conditions Unresolved and AnyUnresolved, as far as q sets them. Unresolved is the fingerprint of a request. They
// select the operations with a generated key whose end a caller without a key may still have to hear.
func (q *Query) matchUnresolved(r *Record) bool {
	switch {
	case q.Unresolved != nil:
		return r.unresolved() && slices.Equal(r.Fingerprint, q.Unresolved)
	case q.AnyUnresolved:
		return r.unresolved()
	}
	return true
}

// unresolved reports whether a caller without a key may still have to hear how r ends, or ended. Its key was generated, and it is unfinished, or no caller
// was told of its end.
func (r *Record) unresolved() bool {
	return r.Generated && (r.Unreported || !r.State.Final())
}

// Owed reports whether the record's state, an end or a hold, must still be given to oncehttp.Config.OnResult, the callback for results. A pending record
// owes nothing.
func (r *Record) Owed() bool { return !r.OwedFrom.IsZero() && r.State != StatePending }

// matchAccount reports whether q selects an account: all accounts, its own, or one of the scoped accounts of its own. A scoped account is the account, a '|',
// and the scope (the value that tells apart the owners of keys within an account).
func (q *Query) matchAccount(account string) bool {
	if q.AllAccounts || account == q.Account {
		return true
	}
	scoped, found := strings.CutPrefix(account, q.Account)
	return found && scoped[0] == '|' // scoped is not empty, since the two differ
}
