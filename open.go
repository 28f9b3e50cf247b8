package oncehttp

import (
	"errors"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

// Open is New with a bbolt journal in the file at path, which it makes if there
// is none. Close closes it. Errors: ErrConfig, and persist.ErrLocked or
// persist.ErrCorrupt naming the file.
func Open(path string, cfg Config) (*Client, error) {
	if cfg.Journal != nil {
		return nil, startError("open", "", ErrConfig, "Config.Journal is set; use New")
	}
	journal, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return nil, &Error{Op: "open", Outcome: OutcomeNotSent, Cause: err, is: []error{ErrNoEffect}}
	}
	cfg.Journal = journal
	c, err := New(cfg)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	c.ownsJournal = true
	return c, nil
}
