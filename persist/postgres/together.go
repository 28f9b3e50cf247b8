package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// togetherWait bounds how long a statement for several rows waits for another transaction. A call not served then
// goes on alone, and waits for LockWait.
const togetherWait = 100 * time.Millisecond

// together returns the statement that calls the function of the schema for several records. Unless AllowVolatile is set, it has the guard of all writes in
// it (a query that fails if the server would lose commits): the guard's row is joined to those of the function, so that it is not left out.
func (o Options) together() string {
	call := o.Schema + ".write_records($1, $2, $3, $4, $5)"
	if !o.checks() {
		return "SELECT written, numbered FROM " + call
	}
	return "WITH guard AS MATERIALIZED (" + guard + ") SELECT w.written, w.numbered FROM guard, " + call + " w"
}

// togetherTypes are the types of its parameters.
var togetherTypes = []uint32{pgtype.TextOID, pgtype.ByteaArrayOID, pgtype.Int8ArrayOID, pgtype.ByteaArrayOID, pgtype.Int8ArrayOID}

// WriteAll implements sqljournal.Together: one statement inserts the rows of begins, and updates those of changes. It returns the tokens of the rows
// that were written, with their numbers (null for changes). A row that does not fit what is stored is left as it is.
func (d *dialect) WriteAll(ctx context.Context, conn *sql.Conn, begins, changes []*sqljournal.Row) (numbers map[string]sql.NullInt64, err error) {
	a := newArrays()
	defer a.free()
	a.text(d.togetherWait)
	a.add(sqljournal.Columns(), begins, (*sqljournal.Row).Fields)
	a.add(sqljournal.ChangeColumns(), changes, (*sqljournal.Row).ChangeFields)
	err = conn.Raw(func(driverConn any) error {
		pg := connOf(driverConn).PgConn()
		if pg.IsClosed() {
			return driver.ErrBadConn
		}
		numbers, err = written(pg.ExecParams(ctx, d.together, a.parameters(), togetherTypes, binaryForm, binaryForm))
		return told(err)
	})
	return numbers, err
}

// binaryForm is the form of all parameters and results.
var binaryForm = []int16{pgtype.BinaryFormatCode}

// written reads the result of the statement of WriteAll to its end, in binary form: the token and the number (eight bytes, or null) of each row that was
// written.
func written(result *pgconn.ResultReader) (numbers map[string]sql.NullInt64, err error) {
	numbers = map[string]sql.NullInt64{}
	for result.NextRow() {
		row := result.Values()
		var number sql.NullInt64
		if len(row[1]) == 8 {
			number = sql.NullInt64{Int64: int64(binary.BigEndian.Uint64(row[1])), Valid: true}
		}
		numbers[string(row[0])] = number
	}
	_, err = result.Close()
	return numbers, err
}
