package send

import (
	"context"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// nextStep returns the step that helps after an end that is no answer; "" if the error says it, or none helps.
func (f *sendFlags) nextStep(ctx context.Context, ses *session.Session, l *results.Line) string {
	again := "run the same command again"
	if f.key == "" {
		again += " with --key " + words.ShellQuote(l.Key)
	}
	switch {
	case l.Result == results.Mismatch && l.Sends == 0:
		return "if this is another operation, say another --key; else send the request as it was"
	case l.Result == results.Held:
		return settleStep(ctx, ses, l.Key)
	case l.Error != nil && l.Error.Code == results.CodeCredentials:
		return again + ", with its credentials (-H)"
	case l.Result == results.Unknown && l.GoesOn && !l.Due.IsZero():
		return afterWait(l.Due, again)
	case l.Result == results.Unknown && l.GoesOn && refusesCredentials(l.Status):
		return "check the credentials (-H), then " + again + ", which goes on"
	case l.Result == results.Unknown && l.GoesOn:
		return again + ", which goes on"
	case l.Error != nil && l.Error.Code == results.CodeContradicted:
		return "nothing more is sent: ask the API what came of it; oncehttp journal show " + words.ShellQuote(l.Key) + " --journal " + ses.Place.Shell()
	case l.Error != nil && l.Error.Code == results.CodeUnread:
		return "nothing more is sent: ask the API what came of it; oncehttp journal declined --forget VALUE --journal " + ses.Place.Shell() + " counts it as done, and all else that a --declined with that VALUE alone made unknown or declined"
	case l.Result != results.Rejected || l.Error == nil:
		return ""
	}
	switch l.Error.Code {
	case "settled", "key_invalid", "bad_request", "body_too_large":
		return ""
	}
	switch {
	case !l.Due.IsZero():
		return afterWait(l.Due, again)
	case l.Bare:
		return "a page or nothing was answered, as something in front of the API may; mend that, then " + again
	case refusesCredentials(l.Status):
		return "check the credentials (-H), then " + again
	}
	return again
}

// same returns the words for a command that finds the line's operation in the journal once more: with the key of the operation if the user gave none.
func (f *sendFlags) same(l *results.Line) string {
	if f.key == "" && l.Key != "" {
		return "the same command and --key " + words.ShellQuote(l.Key)
	}
	return "the same command"
}

// afterWait returns the step for an operation that may be tried again at due. again is the advice to repeat the command.
func afterWait(due time.Time, again string) string {
	return "after " + due.UTC().Format(time.RFC3339) + " " + again + ", or now with a longer --max-retry-after, which waits"
}

// settleStep returns the step for a held operation: the command that settles it as it is now; "" if it is not found in the journal.
func settleStep(ctx context.Context, ses *session.Session, key string) string {
	for rec, err := range ses.Journal.List(ctx, persist.Query{AllAccounts: true, Key: key, States: []persist.State{persist.StateHeld}}) {
		if err != nil {
			break
		}
		journal := " --journal " + ses.Place.Shell()
		if account := words.AccountName(rec.Account); account != "" {
			journal = " --account " + words.ShellQuote(account) + journal
		}
		settle := "oncehttp journal settle " + words.ShellQuote(session.SeenKey(&rec))
		return "look at the server, and say what happened: " + settle + " --happened" + journal + "; or, if it took no effect: " + settle + " --absent" + journal
	}
	return ""
}

// refusesCredentials reports whether a status is about the credentials of a request.
func refusesCredentials(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusProxyAuthRequired
}
