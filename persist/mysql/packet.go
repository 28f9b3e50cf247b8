package mysql

import (
	"context"
	"database/sql"
	"sync/atomic"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// packetName is the name of the server's bound on the packets of a connection, fixed when the connection is made.
const packetName = "max_allowed_packet"

// serverPacket is its name in errors.
const serverPacket = "the server's " + packetName

// readPacket reads it.
const readPacket = "CAST(@@" + packetName + " AS SIGNED)"

// most is max_allowed_packet of the latest connection; 0 before the first.
type most = atomic.Int64

// packetLeast is the largest size without a look at the server's bound: a server's net_buffer_length. Each
// max_allowed_packet is a multiple of it.
const packetLeast = 16 << 10

// inPacket returns the function that writes a row in a transaction of the caller's own. A row possibly too large for a packet (the unit in which the server
// takes a statement) is compared with the server's bound, and sent as the parameters of a prepared statement. Otherwise the caller's driver may write it as
// text, and the server ends a connection with a too large packet. Error: persist.ErrTooLarge.
func inPacket(ctx context.Context, tx *sql.Tx, row *sqljournal.Row) (sqljournal.QueryRow, error) {
	run := sqljournal.OnTx(tx)
	if 2*row.Bytes() <= packetLeast { // within the bound of every server, also with each byte escaped as text
		return run, nil
	}
	var most int64
	if err := run(ctx, "SELECT "+readPacket, nil, &most); err != nil {
		return nil, err
	}
	if int64(row.Bytes()) > most {
		return nil, sqljournal.TooLarge(row, "it", row.Bytes(), most, serverPacket)
	}
	return prepared(tx), nil
}

// prepared returns a QueryRow, a function that reads one row, for a transaction: it sends the parameters beside a prepared statement, and not in its text.
func prepared(tx *sql.Tx) sqljournal.QueryRow {
	return func(ctx context.Context, query string, args []any, dest ...any) error {
		stmt, err := tx.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		defer func() { _ = stmt.Close() }()
		return stmt.QueryRowContext(ctx, args...).Scan(dest...)
	}
}
