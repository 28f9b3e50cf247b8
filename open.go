package oncehttp

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// Open is New with a bbolt journal in the file at path, which it makes if there
// is none. Close closes it. For one that is sealed, see package persist/seal.
// Errors: ErrConfig, and persist.ErrLocked, persist.ErrCorrupt or
// persist.ErrSealed naming the file.
func Open(path string, cfg Config) (*Client, error) {
	if cfg.Journal != nil {
		return nil, startError("open", "", ErrConfig, "Config.Journal is set; use New")
	}
	journal, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return nil, &Error{Op: "open", Outcome: OutcomeNotSent, Cause: err, is: []error{ErrNoEffect}}
	}
	if err := sealedJournal(journal); err != nil {
		_ = journal.Close()
		return nil, &Error{Op: "open", Outcome: OutcomeNotSent, Cause: fmt.Errorf("%s: %w", path, err), is: []error{ErrNoEffect}}
	}
	cfg.Journal = journal
	c, err := New(cfg)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	c.ownsJournal = true
	return c, nil
}

// sealedJournal returns an error if the journal's oldest record is sealed: what is begun now would be in clear beside
// it. Any other error is for the calls that meet it.
func sealedJournal(j persist.Journal) error {
	for rec, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			return nil
		}
		return rec.Sealed()
	}
	return nil
}
