package send

import (
	"context"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
)

// This file reads the record of an operation whose request did not end well.

// recall completes the line of a request that did not end well from its record in the journal. Attempts and sends become those of the operation's whole life,
// not of this run alone (CountWhole; TakeRecord if nothing was sent now). If an event of the API contradicts the recorded end, the line says so. begun is the
// name of the profile that the operation was begun under. It is "", and the line stays, if the journal has none or several records under the key and account:
// the error of the request is enough then.
func (f *sendFlags) recall(ctx context.Context, ses *session.Session, l *results.Line) (begun string) {
	if l.Key == "" {
		return ""
	}
	var of []persist.Record
	for rec, err := range ses.Journal.List(ctx, persist.Query{Account: persist.Account(f.Account), Key: l.Key}) {
		if err == nil { // the line is only less exact without a record that cannot be read
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
