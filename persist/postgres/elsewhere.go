package postgres

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// here returns an expression for the journal's database: the identifier of the server's data, which its standbys share, and the number of the table. No
// right is needed for it, and it reads no table.
func (d *dialect) here() string {
	return "(SELECT system_identifier FROM pg_catalog.pg_control_system())::text || ' ' || '" + d.table + "'::regclass::oid::text"
}

// place is where a journal has its tables, as d.here of its own connections says. It is safe for concurrent use.
type place struct {
	db   *sql.DB
	opts Options
	at   atomic.Pointer[string] // empty: the server does not say
}

// look reads which database the journal is in: the server's identifier and the number of its table. If the server refuses the query, since the role or
// the server lacks the function for it, the place is empty, and there is nothing to compare later: that is no error.
func (p *place) look(ctx context.Context) error {
	at, d := "", p.opts.dialect()
	err := p.db.QueryRowContext(ctx, "SELECT "+d.here()).Scan(&at)
	if d.Doubt(err) == sqljournal.Undone {
		err = nil
	}
	if err == nil {
		p.at.Store(&at)
	}
	return err
}

// beginIn begins an operation in the caller's own transaction, which must be in the journal's database. If it seems not to be, nothing is begun yet, and the
// journal looks once more where it is itself, over a connection of its own: its server may be another one since it was opened.
func (j *Journal) beginIn(ctx context.Context, rec persist.Record, run sqljournal.QueryRow) (existing persist.Record, created bool, err error) {
	if err := j.Begins(ctx); err != nil {
		return persist.Record{}, false, err
	}
	at := *j.place.at.Load()
	existing, created, err = j.opts.beginIn(ctx, rec, run, at)
	if !errors.Is(err, sqljournal.ErrElsewhere) {
		return existing, created, err
	}
	within, cancel := context.WithTimeout(ctx, j.opts.CallTimeout/3)
	defer cancel()
	if again := j.place.look(within); again != nil || *j.place.at.Load() == at {
		return existing, created, err
	}
	return j.opts.beginIn(ctx, rec, run, *j.place.at.Load())
}
