package audit

import (
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the operations that KEY and --account do not select, and names that none has.

// others takes the rows of the operations of other accounts than --account, so that they are not foreign. It refuses an account without operations, if there are others:
// its name may be mistyped. Without --account it does nothing.
func (a *audit) others(ctx context.Context, ses *session.Session) error {
	if !a.flags.HasAccount {
		return nil
	}
	own, others, q := 0, "", a.flags.Query()
	err := session.EachRecord(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
		if q.Match(rec) {
			own++
			return nil
		}
		if others = "of account " + words.ShellQuote(words.AccountName(rec.Account)); rec.Account == "" {
			others = "under no account"
		}
		return a.leave(rec)
	})
	if persist.OfOneRecord(err) {
		err = nil // a record of another account; one of this account was reported before
	}
	if err == nil && own == 0 && others != "" {
		err = fmt.Errorf("--account %s: no operation of the journal is of it; there are some %s", words.ShellQuote(a.flags.Account), others)
	}
	return err
}

// noSuchKey returns the error for a KEY, text, that selects no operation. If exactly one operation has a key that may be meant, such as one that ends with the text,
// the error names it. Else the text may be the name of an export without --against in front.
func (a *audit) noSuchKey(ctx context.Context, ses *session.Session, text string) error {
	meant, many := "", 0
	err := session.EachRecord(ctx, ses, a.flags.Query(), func(rec *persist.Record) error {
		if words.EndsKey(text, rec.Key) || words.MeansKey(text, rec.Key) {
			meant, many = rec.Key, many+1
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case many == 1:
		return fmt.Errorf("no operation of the journal has a key such as %q; there is %q", words.Clip(text), meant)
	}
	return fmt.Errorf("no operation of the journal has a key such as %q; each export needs --against before its name", words.Clip(text))
}

// leave takes the rows of an operation beside every KEY of the command, so that they are not reported as foreign (rows of no operation here).
func (a *audit) leave(rec *persist.Record) error {
	reference, why := a.referenceOf(rec)
	if why != "" {
		return nil // no row can be told to be its
	}
	rows, _, err := a.theirs.take(reference)
	a.lend(rec, rows)
	return err
}
