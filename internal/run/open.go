package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/internal/dsn"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// Open implements oncehttp.Open: it returns a client on the bbolt journal at path.
func Open(path string, cfg Config) (*Client, error) {
	if cfg.Journal != nil {
		return nil, newError("open", nothing(""), errors.New("Config.Journal is set; use New"), ErrConfig)
	}
	// A DSN would become a file of that name, with the password in it.
	if err := checkPath(path); err != nil {
		return nil, newError("open", nothing(""), err, ErrConfig)
	}
	journal, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return nil, newError("open", nothing(""), err)
	}
	// A record in clear beside sealed ones would give away what the seal hides.
	if err := sealedJournal(context.Background(), journal); err != nil {
		_ = journal.Close()
		return nil, newError("open", nothing(""), fmt.Errorf("%s: %w", path, err))
	}
	// From here on the file is open: each error closes it.
	cfg.Journal = journal
	c, err := New(cfg)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	c.ownsJournal = true
	return c, nil
}

// checkPath refuses the name of a database in place of a file. The error does not repeat it: it may hold a password.
func checkPath(path string) error {
	if engine := dsn.Engine(path); engine != "" {
		return fmt.Errorf("want the path of a file, not a database: open that with package persist/%s, and the client with New", engine)
	}
	if path == "" || strings.Contains(path, "://") {
		return errors.New("want the path of a file, such as payments.db")
	}
	return nil
}
