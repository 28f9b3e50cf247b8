package sqljournal

import (
	"context"
	"database/sql"
)

// Size returns the bytes of the journal's tables with their indexes, as the server counts them: free space of deleted rows included. A
// server may count now and then only, and MariaDB does. It reads no row. Errors: ErrClosed, the context's, or the server's.
func (j *Journal) Size(ctx context.Context) (bytes int64, err error) {
	if j == nil {
		return 0, errNotOpened
	}
	err = j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, j.d.Size()).Scan(&bytes)
	})
	return bytes, err
}
