package session

import (
	"context"
	"iter"
	"net/http"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
)

// noJournal fills the place of a journal never asked by its client.
type noJournal struct{ persist.Journal }

// Attach makes a value of its own for each client.
func (noJournal) Attach(create func() any) any { return create() }

// Get finds nothing.
func (noJournal) Get(context.Context, persist.ID) (persist.Record, error) {
	return persist.Record{}, persist.ErrNotFound
}

// List yields nothing.
func (noJournal) List(context.Context, persist.Query) iter.Seq2[persist.Record, error] {
	return func(func(persist.Record, error) bool) {}
}

// Secret knows none.
func (noJournal) Secret(context.Context) ([]byte, error) { return nil, persist.ErrClosed }

// Fact returns the given value.
func (noJournal) Fact(_ context.Context, _ string, _, value []byte) ([]byte, error) {
	return value, nil
}

// Flush has nothing to wait for.
func (noJournal) Flush(context.Context) error { return nil }

// Close has nothing to close.
func (noJournal) Close() error { return nil }

// OpenUnjournaled opens a session for work without a journal.
func OpenUnjournaled(cfg oncehttp.Config) (*Session, error) {
	cfg.Journal = noJournal{}
	if cfg.Authorize == nil {
		cfg.Authorize = func(*http.Request) error { return nil }
	}
	if cfg.Origins == nil {
		cfg.OriginAllowed = everyOrigin
	}
	c, err := oncehttp.New(cfg)
	if err != nil {
		return nil, terminal.Plain(err)
	}
	return &Session{Client: c, Journal: noJournal{}}, nil
}

// everyOrigin allows all origins.
func everyOrigin(string) bool { return true }
