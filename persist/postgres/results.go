package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// Owed implements sqljournal.Dialect: it returns the condition for records whose end or hold still has to be handed to Config.OnResult. The state 0 is pending:
// such a record owes nothing yet.
func (d *dialect) Owed() string { return "owed_from > 0 AND state > 0" }

// MarkDelivered marks a result as delivered, inside a transaction of the caller's own, in a journal with the default options, as [Options.MarkDelivered]
// does. If delivered is false, the result is not owed any more: the caller rolls back.
func MarkDelivered(ctx context.Context, tx pgx.Tx, id persist.ID, revision uint64) (delivered bool, err error) {
	return Options{}.MarkDelivered(ctx, tx, id, revision)
}

// MarkDeliveredSQL marks a result as delivered, like [MarkDelivered], inside the caller's transaction of database/sql over pgx. If delivered is false, the
// result is not owed any more: the caller rolls back.
func MarkDeliveredSQL(ctx context.Context, tx *sql.Tx, id persist.ID, revision uint64) (delivered bool, err error) {
	return Options{}.MarkDeliveredSQL(ctx, tx, id, revision)
}

// MarkDelivered marks the result given to oncehttp.Config.OnResult as delivered, inside a transaction of the caller's
// own. The mark and the caller's business row are committed together, or neither is: the row is written exactly once.
// id and revision are those of the record given to OnResult. Over a sealed journal, id is the StoredID of seal.Sealer.
// The tables must be in the database of the transaction.
//
// MarkDelivered comes before the business row. It reports false if the result is not owed any more at this revision:
// another process has delivered it, or the record has changed since. Then the caller rolls back, and OnResult returns
// nil; a changed result is delivered by itself. MarkDelivered waits for another open transaction with this record, for
// Options.LockWait at most. Until the transaction ends, nobody else can change the record: end it within seconds.
//
// After an error, also one of the commit, OnResult returns the error, and is called again if the result is still owed.
// Errors: ErrOptions, persist.ErrInvalid for an empty key or a revision of zero, and those of the server. These can be
// found by errors.As as *pgconn.PgError, SQLSTATE 40001 (serialization failure) and 55P03 (LockWait is over) among
// them; the transaction can only be rolled back then.
func (o Options) MarkDelivered(ctx context.Context, tx pgx.Tx, id persist.ID, revision uint64) (delivered bool, err error) {
	return o.markIn(ctx, id, revision, func(ctx context.Context, query string, args []any, dest ...any) error {
		return tx.QueryRow(ctx, query, args...).Scan(dest...)
	})
}

// MarkDeliveredSQL marks a result as delivered, like [Options.MarkDelivered], inside the caller's transaction of database/sql over pgx. If delivered is
// false, the result is not owed any more: the caller rolls back.
func (o Options) MarkDeliveredSQL(ctx context.Context, tx *sql.Tx, id persist.ID, revision uint64) (delivered bool, err error) {
	return o.markIn(ctx, id, revision, sqljournal.OnTx(tx))
}

// markIn marks a result as delivered, in the caller's own transaction; run runs a query in it. It bounds the wait for other transactions, and puts the
// caller's own bound back. delivered is false if nothing is owed at this revision. The last set_config runs after the update, since its row is joined to the
// update's.
func (o Options) markIn(ctx context.Context, id persist.ID, revision uint64, run sqljournal.QueryRow) (delivered bool, err error) {
	if o, err = o.checked(); err != nil {
		return false, err
	}
	set, where, args, err := sqljournal.Delivered(id, revision)
	if err != nil {
		return false, err
	}
	d := o.dialect()
	query := fmt.Sprintf(`WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS was),
		bound AS MATERIALIZED (SELECT was, set_config('lock_timeout', '%d', true) FROM before),
		mine AS (UPDATE %s SET %s FROM bound WHERE %s RETURNING id)
		SELECT mine.id IS NOT NULL, set_config('lock_timeout', bound.was, true) FROM bound LEFT JOIN mine ON true`,
		o.LockWait.Milliseconds(), d.table, set, where)
	var was string
	if err := run(ctx, d.Rebind(query), args, &delivered, &was); err != nil {
		return false, fmt.Errorf("mark a result in a transaction, journal schema %s: %w", o.Schema, err)
	}
	return delivered, nil
}
