package mysql

import (
	"context"
	"database/sql"
	"sync/atomic"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// packetName is the server's setting that bounds the packets of a connection, from when it is made.
const packetName = "max_allowed_packet"

// serverPacket is how errors call it.
const serverPacket = "the server's " + packetName

// readPacket reads it.
const readPacket = "CAST(@@" + packetName + " AS SIGNED)"

// most is max_allowed_packet, as the latest connection has it; 0 before the first.
type most = atomic.Int64

// packetLeast is the least packet that is asked for: a server's net_buffer_length, of which each is a multiple.
const packetLeast = 16 << 10

// inPacket is the QueryRow for a row in a transaction of the caller's own. One that might not fit into a packet is compared with
// what the server says, and sent as the parameters of a prepared statement: the caller's driver may spell it out as text
// otherwise, and the server ends a connection that brings too much.
// Error: persist.ErrTooLarge.
func inPacket(ctx context.Context, tx *sql.Tx, row *sqljournal.Row) (sqljournal.QueryRow, error) {
	run := sqljournal.OnTx(tx)
	if 2*row.Bytes() <= packetLeast { // also with each byte escaped
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

// prepared is the QueryRow of a transaction with statements that are prepared.
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
