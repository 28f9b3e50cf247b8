package send

import (
	"context"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
)

// This file reads the record of an operation whose request did not end well.

// recall takes what the journal knows of the operation of a request that did not end well, if it has one alone under the key and account. It returns the name of the
// profile that the operation was begun under, "" if there is none.
func (f *sendFlags) recall(ctx context.Context, ses *session.Session, l *results.Line) (begun string) {
	if l.Key == "" {
		return ""
	}
	var of []persist.Record
	for rec, err := range ses.Journal.List(ctx, persist.Query{Account: persist.Account(f.Account), Key: l.Key}) {
		if err == nil {
			of = append(of, rec)
		}
	}
	if len(of) != 1 {
		return ""
	}
	if l.CountWhole(&of[0]); l.IsOfRecord() {
		l.TakeRecord(&of[0])
	}
	l.Contradicted(&of[0])
	return of[0].Profile
}
