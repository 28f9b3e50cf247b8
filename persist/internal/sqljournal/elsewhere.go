package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// ErrElsewhere refuses a transaction of a caller's own whose database is not that of the journal. It matches persist.ErrInvalid: nothing was begun.
var ErrElsewhere = fmt.Errorf("%w: the transaction is in another database than the journal: nothing was begun there, since no client on this journal would send it; open both on one database", persist.ErrInvalid)

// SameSecret checks that a transaction of a caller's own is in the database of the journal: it returns ErrElsewhere if another secret is there, or none. run
// reads a row in that transaction. lock is appended to the query, such as a clause that locks the row. It returns nil without a comparison while the journal
// has not read its secret, and for a role without the right to read facts (named values beside the records, such as the secret). Other errors are those of the
// query.
func SameSecret(ctx context.Context, j *Journal, run QueryRow, lock string) error {
	j.mu.Lock()
	secret := j.secret
	j.mu.Unlock()
	if secret == nil {
		return nil
	}
	var standing []byte
	query := strings.Replace(j.d.SelectFact(), "?", "'"+secretFact+"'", 1) // without a parameter it is one round trip
	err := run(ctx, query+lock, nil, &standing)
	switch {
	case j.d.Denied(err):
		return nil
	case err == nil && !bytes.Equal(standing, secret), errors.Is(err, sql.ErrNoRows):
		return ErrElsewhere
	}
	return err
}
