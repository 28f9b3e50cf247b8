package postgres

import (
	"database/sql"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// arrays collects the parameters of a statement that takes an array of each column, in PostgreSQL's binary form. The
// driver's own encoding asks reflection about every single value, and costs more than all else of a statement.
type arrays struct {
	buf  []byte
	ends []int // of each parameter in buf
	oids []uint32
}

// text adds a parameter that is no array.
func (a *arrays) text(s string) {
	a.buf = append(a.buf, s...)
	a.end(pgtype.TextOID)
}

// add adds an array of each column, in their order, with the values of these rows.
func (a *arrays) add(columns []sqljournal.Column, rows []*sqljournal.Row, values func(*sqljournal.Row) []any) {
	all, size := make([][]any, len(rows)), 32*len(columns)
	for i, row := range rows {
		all[i] = values(row)
		for _, value := range all[i] {
			b, _ := value.([]byte)
			size += 12 + len(b)
		}
	}
	a.buf = slices.Grow(a.buf, size)
	for i, c := range columns {
		element, array := uint32(pgtype.ByteaOID), uint32(pgtype.ByteaArrayOID)
		if c.Type == 'i' {
			element, array = pgtype.Int8OID, pgtype.Int8ArrayOID
		}
		a.begin(element, len(rows))
		for _, row := range all {
			a.value(row[i])
		}
		a.end(array)
	}
}

// begin begins an array of n elements of this type. Its form is that of PostgreSQL's array_recv: the number of
// dimensions, whether there may be NULLs, the type, and of each dimension the length and the first index.
func (a *arrays) begin(element uint32, n int) {
	dimensions := min(n, 1)
	a.number32(dimensions)
	a.number32(1)
	a.buf = binary.BigEndian.AppendUint32(a.buf, element)
	if n > 0 {
		a.number32(n)
		a.number32(1)
	}
}

// value adds an element: its length and its bytes; the length of NULL is -1.
func (a *arrays) value(value any) {
	switch v := value.(type) {
	case []byte:
		if v == nil {
			a.number32(-1)
			return
		}
		a.number32(len(v))
		a.buf = append(a.buf, v...)
	case int64:
		a.number32(8)
		a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(v))
	case sql.NullInt64:
		if v.Valid {
			a.value(v.Int64)
		} else {
			a.number32(-1)
		}
	}
}

func (a *arrays) number32(n int) { a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(n)) }

// end ends a parameter.
func (a *arrays) end(oid uint32) {
	a.ends, a.oids = append(a.ends, len(a.buf)), append(a.oids, oid)
}

// parameters are all that were added.
func (a *arrays) parameters() [][]byte {
	parameters, from := make([][]byte, len(a.ends)), 0
	for i, to := range a.ends {
		parameters[i], from = a.buf[from:to:to], to
	}
	return parameters
}
