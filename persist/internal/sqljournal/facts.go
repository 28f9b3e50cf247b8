package sqljournal

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// secretFact is the name of the fact with the journal's secret. It has a dot; the names of Fact have none.
const secretFact = "journal.secret"

// Secret implements [persist.Journal]: it returns the journal's random secret, the key for digests in its records. The first call of all processes makes it and
// stores it as a fact (a named value in the journal's tables); every other call finds it. A journal opened for reading makes none: then the error is
// persist.ErrReadOnly.
func (j *Journal) Secret(ctx context.Context) ([]byte, error) {
	if j == nil {
		return nil, errNotOpened
	}
	j.mu.Lock()
	secret := j.secret
	j.mu.Unlock()
	if secret != nil {
		return bytes.Clone(secret), j.Flush(ctx) // an error if it is closed
	}
	made := make([]byte, persist.SecretSize)
	_, _ = rand.Read(made) // never fails
	if j.readOnly {
		made = nil
	}
	secret, err := j.fact(ctx, secretFact, nil, made)
	if err == nil && len(secret) == 0 {
		err = j.failed(persist.ErrReadOnly) // there is none yet
	}
	if err == nil && len(secret) != persist.SecretSize {
		err = j.failed(fmt.Errorf("%w: a secret of %d bytes", persist.ErrCorrupt, len(secret)))
	}
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.secret = secret
	return bytes.Clone(secret), nil
}

// Fact implements [persist.Journal]: it reads a named value of the journal as a whole, or writes it if the value is still old (nil: there must be none). With a
// value of nil it only reads. The result is the value that is there afterwards, nil if there is none.
func (j *Journal) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	if j == nil {
		return nil, errNotOpened
	}
	if err := persist.CheckFact(name, value); err != nil {
		return nil, err
	}
	return j.fact(ctx, name, old, value)
}

// fact is Fact for every name, those of this package included; standing is the value that is there afterwards. With a value of nil it only reads. A value of
// nil only reads. Mostly it does no more than its first read: it writes only if the value that it reads is old. After the write it reads again, since another
// process may have been faster.
func (j *Journal) fact(ctx context.Context, name string, old, value []byte) (standing []byte, err error) {
	look := func(ctx context.Context, conn *sql.Conn) error {
		standing = nil
		err := conn.QueryRowContext(ctx, j.d.Rebind(j.d.SelectFact()), name).Scan(&standing)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	defer func() {
		if j.d.Denied(err) {
			err = fmt.Errorf("%w: %w", persist.ErrDenied, err)
		}
	}()
	if value == nil {
		err = j.read(ctx, nil, look)
		return standing, err
	}
	err = j.settle(ctx, nil, func(ctx context.Context, conn *sql.Conn, _ bool) error {
		if err := look(ctx, conn); err != nil || !bytes.Equal(standing, old) {
			return err
		}
		var err error
		if len(standing) == 0 {
			_, err = conn.ExecContext(ctx, j.d.Rebind(j.d.InsertFact()), name, value)
		} else {
			_, err = conn.ExecContext(ctx, j.d.Rebind(j.d.UpdateFact()), value, name, old)
		}
		if err != nil {
			return err
		}
		return look(ctx, conn)
	})
	return standing, err
}
