package journal

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// sayBrokenOff looks for operations whose replacement was named in the record and never begun, since a redrive or rekey was broken off. For each it prints the command
// that begins it. It reads all operations that have ended.
func sayBrokenOff(ctx context.Context, ses *session.Session, q persist.Query, stderr io.Writer) error {
	q.States = []persist.State{persist.StateConfirmed, persist.StateSettled}
	return session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		if rec.ReplacedBy == "" || intent.IsSkipped(rec) { // a placeholder, for a key that was skipped: nothing is to be finished
			return nil
		}
		_, err := successorOf(ctx, ses.Journal, rec)
		switch {
		case !errors.Is(err, persist.ErrNotFound):
			return err
		case rec.ReplacedBy == intent.NextGeneration(rec.Key):
			terminal.Say(stderr, "broken off before %s was begun; finish it: oncehttp journal redrive %s --reason WHY --journal %s", words.Clip(rec.ReplacedBy), words.ShellQuote(session.SeenKey(rec)), ses.Place.Shell())
		default:
			terminal.Say(stderr, "broken off before %s was begun; finish it: oncehttp journal rekey %s %s --reason WHY --journal %s", words.Clip(rec.ReplacedBy), words.ShellQuote(session.SeenKey(rec)), words.ShellQuote(rec.ReplacedBy), ses.Place.Shell())
		}
		return nil
	})
}

// successorOf returns the operation under the key that a record names as begun in its place (Record.ReplacedBy). If the account of the record includes header values,
// the operation may be under the account without them, and is looked for there, too; one with other header values does not count. The error is persist.ErrNotFound if
// there is none. Whether the operation really replaces the record is not checked, but for the request in the second search.
func successorOf(ctx context.Context, j persist.Journal, rec *persist.Record) (persist.Record, error) {
	next, err := j.Get(ctx, persist.ID{Account: rec.Account, Key: rec.ReplacedBy})
	// Scopes are the header values. It is found, or there is no other account to look in, or the journal fails.
	if len(rec.Scopes) == 0 || err == nil && !intent.OtherScope(rec.Scopes, &next) || err != nil && !errors.Is(err, persist.ErrNotFound) {
		return next, err
	}
	base := request.Base(rec.Account)
	for next, err := range j.List(ctx, persist.Query{Account: base, Key: rec.ReplacedBy}) {
		if err != nil {
			return next, err
		}
		if request.InAccount(&next, base) && !intent.OtherScope(rec.Scopes, &next) && bytes.Equal(next.Fingerprint, rec.Fingerprint) {
			return next, nil
		}
	}
	return persist.Record{}, persist.ErrNotFound
}
