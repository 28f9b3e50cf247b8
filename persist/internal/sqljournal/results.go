package sqljournal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// The SET clauses of the changes of a result owed to OnResult. The first needs the token, the second the new time and the token.
const (
	setDelivered = "owed_from = 0, sweep_at = ABS(sweep_at), revision = revision + 1, token = ?"
	setPostponed = "owed_from = ?, revision = revision + 1, token = ?"
)

// ofOwed is the condition of such a change.
const ofOwed = "id = ? AND revision = ? AND owed_from > 0 AND state > 0"

// Delivered returns the SET clause and the condition of the UPDATE that marks the state of a record as handed to Config.OnResult, with their
// parameters, for a transaction of the caller's own (the mark is made together with the caller's own writes): a new token, which marks this write, the row's id
// and the revision.
// Error: persist.ErrInvalid if id or revision is that of no record.
func Delivered(id persist.ID, revision uint64) (set, where string, args []any, err error) {
	if id.Key == "" || revision == 0 {
		return "", "", nil, fmt.Errorf("%w: the result of key %q at revision %d; want ID and Revision of the record given to OnResult", persist.ErrInvalid, id.Key, revision)
	}
	return setDelivered, ofOwed, []any{NewToken(), RowID(id), number(revision)}, nil
}

// MarkDelivered implements [persist.Results]: the record's state at this revision was handed to Config.OnResult. It returns false if the record has another
// revision, or owes nothing. It is durable on return.
func (j *Journal) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	if j == nil {
		return false, errNotOpened
	}
	return j.changeOwed(ctx, &Row{ID: RowID(id), Revision: number(revision), Token: NewToken()}, setDelivered)
}

// Postpone implements [persist.SharedResults]: the record's state is to be handed to Config.OnResult from this time on. So the processes that share the journal
// leave it to the caller until then. A time that is zero or before 1970 becomes the earliest one, since 0 in the column means that nothing is owed. It returns
// false if the record has another revision, or owes nothing. It is durable on return.
func (j *Journal) Postpone(ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
	if j == nil {
		return false, errNotOpened
	}
	return j.changeOwed(ctx, &Row{ID: RowID(id), Revision: number(revision), Token: NewToken()}, setPostponed, max(nanoseconds(from), tooEarly))
}

// changeOwed changes a row if it still has its revision and its state is owed to Config.OnResult. It reports whether it did. set is the SET clause,
// and values are its parameters, without the last one, the token. After a lost answer (repeated) it recognises its own write by the token. A row that is not
// there was not changed, and that is no error.
func (j *Journal) changeOwed(ctx context.Context, row *Row, set string, values ...any) (changed bool, err error) {
	statement := j.d.Rebind(j.d.Update(set, ofOwed))
	args := append(values, row.Token, row.ID, row.Revision)
	err = j.settle(ctx, nil, func(ctx context.Context, conn *sql.Conn, repeated bool) error {
		n, err := exec(ctx, conn, statement, args)
		if changed = n > 0; err != nil || changed || !repeated {
			return err
		}
		now, err := j.stands(ctx, conn, row)
		switch {
		case errors.Is(err, persist.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
		changed = now.Revision == row.Revision+1 && bytes.Equal(now.Token, row.Token)
		return j.confirm(ctx, conn) // an earlier try of this call may have landed
	})
	return changed, err
}
