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

// Attach implements persist.Journal. It calls create for each client, so that nothing is shared between them.
func (noJournal) Attach(create func() any) any { return create() }

// Get implements persist.Journal. It always returns persist.ErrNotFound, since there is no journal.
func (noJournal) Get(context.Context, persist.ID) (persist.Record, error) {
	return persist.Record{}, persist.ErrNotFound
}

// List implements persist.Journal. It yields no record, since there is no journal.
func (noJournal) List(context.Context, persist.Query) iter.Seq2[persist.Record, error] {
	return func(func(persist.Record, error) bool) {}
}

// Secret implements persist.Journal. It always fails with persist.ErrClosed: there is no journal to hold a secret.
func (noJournal) Secret(context.Context) ([]byte, error) { return nil, persist.ErrClosed }

// Fact implements persist.Journal. It returns the value that a client wants to write, as if nobody had written another; nothing is kept.
func (noJournal) Fact(_ context.Context, _ string, _, value []byte) ([]byte, error) {
	return value, nil
}

// Flush implements persist.Journal. Nothing was written, so there is nothing to make durable.
func (noJournal) Flush(context.Context) error { return nil }

// Close implements persist.Journal. Nothing is open.
func (noJournal) Close() error { return nil }

// OpenUnjournaled opens a session with a client but without a journal, for work that only prepares requests, or asks an API. The client must begin no
// operation. All origins are allowed unless cfg says otherwise. With an Authorize, here one that does nothing, the client does not refuse what needs
// credentials.
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

// everyOrigin returns true for each origin, so that a client may send anywhere. It is for clients without a journal, whose requests the user has named.
func everyOrigin(string) bool { return true }
