package alike

import (
	"context"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the looks of a call with a request not read whole: only its account, origin, method and target are compared.

// Similar returns an operation of the account that may be the same request as named, under a generated key or a key of Config.NewKey; nil if there is none. The
// bodies are not compared. If its record was lost in a failed write and may appear later, only the ID and the owner are known. Errors: the journal's.
func (l *Lookalikes) Similar(ctx context.Context, named request.Named, account string) (*persist.Record, error) {
	rec, err := l.similarGenerated(ctx, named, account, persist.Query{Account: account, AnyUnresolved: true})
	if rec == nil && err == nil && !l.RandomKeys { // NewKey may make keys of the business; they are not in that index
		states := []persist.State{persist.StatePending, persist.StateHeld}
		named.Account = account
		rec, err = l.similarAmong(ctx, persist.Query{Account: account, States: states}, named)
	}
	return rec, err
}

// similarGenerated does the search of Similar among the operations with generated keys that query selects.
func (l *Lookalikes) similarGenerated(ctx context.Context, named request.Named, account string, query persist.Query) (*persist.Record, error) {
	like := persist.Record{Origin: named.Origin, Method: named.Method, Target: named.Target}
	if rec, found := l.Notes.Like(account, &like, l.Earliest(), notKnown); found {
		return &rec, nil
	}
	named.Account = account
	return l.similarAmong(ctx, query, named)
}

// similarAmong does the search of Similar among the operations that query selects. It returns nil and nil if there is none.
func (l *Lookalikes) similarAmong(ctx context.Context, query persist.Query, named request.Named) (*persist.Record, error) {
	for rec, err := range l.Journal.List(context.WithoutCancel(ctx), query) {
		if err == nil {
			err = rec.Sealed() // it cannot be read here, and may be the one
		}
		switch {
		case err != nil:
			return nil, err
		case l.Reader.Like(named, &rec) && isInTheWay(&rec, intent.Lookalike{Undoubted: l.RunsUndoubted(&rec)}) && !l.endedSince(ctx, &rec):
			return &rec, nil
		}
	}
	return nil, nil
}

// notKnown stands for the fingerprints of a request whose body was not read: none is known.
func notKnown(string) ([]byte, bool) { return nil, false }

// MayStand reports whether an operation of the same account, origin, method and target stands in the journal, or may yet appear there, under a generated key,
// unresolved (it has not ended) or unreported (it has, and no caller was told). It is false after an error. Errors: the journal's.
func (l *Lookalikes) MayStand(ctx context.Context, named request.Named) (bool, error) {
	for _, account := range append([]string{named.Account}, named.Unassigned()...) {
		rec, err := l.similarGenerated(ctx, named, account, persist.Query{Account: account, Origin: named.Origin, AnyUnresolved: true})
		if rec != nil || err != nil {
			return rec != nil, err
		}
	}
	return false, nil
}
