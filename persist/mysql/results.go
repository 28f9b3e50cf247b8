package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// Owed implements sqljournal.Dialect: it returns the condition for records whose end or hold still has to be handed to Config.OnResult. The server has no
// partial indexes, so there is a computed column; rows that owe nothing have NULL there.
func (d *dialect) Owed() string { return "owed = 1" }

// MarkDelivered marks a result as delivered, inside a transaction of the caller's own, in a journal with the default options, as [Options.MarkDelivered]
// does. If delivered is false, the result is not owed any more: the caller rolls back.
func MarkDelivered(ctx context.Context, tx *sql.Tx, id persist.ID, revision uint64) (delivered bool, err error) {
	return Options{}.MarkDelivered(ctx, tx, id, revision)
}

// MarkDelivered marks the result given to oncehttp.Config.OnResult as delivered, inside a transaction of the caller's
// own. The mark and the caller's business row are committed together, or neither is: the row is written exactly once.
// id and revision are those of the record given to OnResult. Over a sealed journal, id is the StoredID of seal.Sealer.
// The tables must be in Options.Database, or in the database used by the transaction.
//
// MarkDelivered comes before the business row. It reports false if the result is not owed any more at this revision:
// another process has delivered it, or the record has changed since. Then the caller rolls back, and OnResult returns
// nil; a changed result is delivered by itself. MarkDelivered waits for another open transaction with this record, for
// Options.LockWait at most. Until the transaction ends, nobody else can change the record: end it within seconds.
//
// After an error, also one of the commit, OnResult returns the error, and is called again if the result is still owed.
// Errors: ErrOptions, persist.ErrInvalid for an empty key or a revision of zero, and those of the server. These can be
// found by errors.As as *mysql.MySQLError. After number 1213 (deadlock) the server has rolled the transaction back,
// after 1205 (LockWait is over) it has undone the statement alone.
func (o Options) MarkDelivered(ctx context.Context, tx *sql.Tx, id persist.ID, revision uint64) (delivered bool, err error) {
	if o, err = o.checked(); err != nil {
		return false, err
	}
	set, where, args, err := sqljournal.Delivered(id, revision)
	if err != nil {
		return false, err
	}
	d := o.dialect()
	res, err := tx.ExecContext(ctx, lockWait(o.LockWait)+"UPDATE "+d.Records()+" SET "+set+" WHERE "+where, args...)
	if err != nil {
		return false, fmt.Errorf("mark a result in a transaction, journal tables %soncehttp_record: %w", o.prefix(), err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}
