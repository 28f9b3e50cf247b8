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

// sayBrokenOff names each operation with a successor that was named in its record, and never begun, and the command that begins it. It reads all that
// has ended.
func sayBrokenOff(ctx context.Context, ses *session.Session, q persist.Query, stderr io.Writer) error {
	q.States = []persist.State{persist.StateConfirmed, persist.StateSettled}
	return session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		if rec.ReplacedBy == "" || intent.IsSkipped(rec) { // nothing is to be finished for a placeholder
			return nil
		}
		_, err := successorOf(ctx, ses.Journal, rec)
		switch {
		case !errors.Is(err, persist.ErrNotFound):
			return err
		case rec.ReplacedBy == intent.NextGeneration(rec.Key):
			terminal.Say(stderr, "broken off before %s was begun; finish it: oncehttp journal redrive %s --reason WHY --journal %s", words.Clip(rec.ReplacedBy), words.ShellQuote(session.SeenKey(rec)), words.ShellQuote(ses.Place.Arg))
		default:
			terminal.Say(stderr, "broken off before %s was begun; finish it: oncehttp journal rekey %s %s --reason WHY --journal %s", words.Clip(rec.ReplacedBy), words.ShellQuote(session.SeenKey(rec)), words.ShellQuote(rec.ReplacedBy), words.ShellQuote(ses.Place.Arg))
		}
		return nil
	})
}

// successorOf returns the operation that a record names as standing in its place (persist.Record.ReplacedBy), at whatever place of its account:
// beside operations of other accounts, named by a header, it may have another one. Another operation there is returned, too.
// persist.ErrNotFound: nothing of it stands. Other errors are the journal's.
func successorOf(ctx context.Context, j persist.Journal, rec *persist.Record) (persist.Record, error) {
	next, err := j.Get(ctx, persist.ID{Account: rec.Account, Key: rec.ReplacedBy})
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
