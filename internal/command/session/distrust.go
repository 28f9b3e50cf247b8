package session

import (
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// Distrusts returns the reason against sending a pending operation again: it may have been sent, its record says that the API knows its key, and prepared, the same
// request by the profile of this run, says that no key protects it. It returns "" for any other operation. The client alone would go by the record; the person who now
// says that the API takes no keys knows better.
func Distrusts(rec *persist.Record, prepared *persist.Record, now time.Time) string {
	if prepared.Protected || !rec.Protected || rec.State != persist.StatePending || !rec.MaybeSent {
		return ""
	}
	op := operation.OpOf(rec, 0)
	if op.Protected = false; operation.ProspectOf(&op, now) == operation.WillBeProven { // an event of the API settles it without another send (OpOf with 0: the record's own window counts)
		return ""
	}
	again := ""
	if strings.Contains(rec.Profile, words.NaturalMark) {
		again = "; it was begun with --already-done: say that, --lookup and --same again, which goes on with it"
	}
	return "it may have been sent, under the profile " + words.Clip(rec.Profile) + ", by which the API knows its key; by this run's it does not, so that nothing is sent again" + again
}

// Distrusted returns the line that is printed for an operation that is not sent again, since Distrusts gave the reason why. Its outcome is unknown until a person
// settles it. journal is the value of --journal, quoted for a shell.
func Distrusted(rec *persist.Record, why, journal string) results.Line {
	return results.Line{
		Key: rec.Key, Result: results.Unknown, Outcome: oncehttp.OutcomeUnknown.String(), Source: results.SourceName(oncehttp.SourceJournal), State: rec.State.String(), Exit: terminal.ExitUnknown, Attempts: rec.Attempts, Sends: rec.Sends,
		Error: &results.LineError{Code: results.CodeDistrusted, Message: why + "; look at the server, and say what happened: oncehttp journal settle " + words.ShellQuote(SeenKey(rec)) + " --happened --journal " + journal + "; or --absent in its place"},
	}
}
