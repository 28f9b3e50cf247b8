package postgres

import (
	"database/sql"
	"encoding/binary"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// arrays collects the parameters of a statement for several rows, in PostgreSQL's binary form. The bytes of all rows
// are one array with a row for each column, and so are the numbers. The driver's own encoding asks reflection about
// every single value, and costs more than all else of a statement.
type arrays struct {
	buf  []byte
	ends []int // of each parameter in buf
}

// A buffer for arrays is used again, unless it is larger than keptArrays.
const keptArrays = 64 << 10

var arraysPool = sync.Pool{New: func() any { return new(arrays) }}

// newArrays returns an empty buffer for the parameters of a statement, an array for many rows each. The caller calls free after its last use of them and their
// parameters.
func newArrays() *arrays { return arraysPool.Get().(*arrays) }

// free gives the buffer back for the next statement. A very large one (over keptArrays) is left to the garbage collector.
func (a *arrays) free() {
	if cap(a.buf) <= keptArrays {
		a.buf, a.ends = a.buf[:0], a.ends[:0]
		arraysPool.Put(a)
	}
}

// text adds a single value, no array, as a parameter: a text in binary form is its bytes.
func (a *arrays) text(s string) {
	a.buf = append(a.buf, s...)
	a.end()
}

// add adds the values of the rows as two parameters, in PostgreSQL's binary form of arrays: one array of all bytes columns, and one of all number
// columns. An array has its values column by column. fields returns pointers to a row's values.
func (a *arrays) add(columns []sqljournal.Column, rows []*sqljournal.Row, fields func(*sqljournal.Row) []any) {
	all := make([][]any, len(rows))
	for i, row := range rows {
		all[i] = fields(row)
	}
	for _, kind := range []struct {
		letter byte
		oid    uint32
	}{{'b', pgtype.ByteaOID}, {'i', pgtype.Int8OID}} {
		var of []int // the columns of the kind
		for i, c := range columns {
			if c.Type == kind.letter {
				of = append(of, i)
			}
		}
		a.begin(kind.oid, len(of), len(rows))
		for _, i := range of {
			for _, row := range all {
				a.field(row[i])
			}
		}
		a.end()
	}
}

// begin writes the head of an array of rows × columns elements of the type element, an OID. The form is that of PostgreSQL's array_recv: the number of
// dimensions (0 for an empty array), 1 if there may be NULLs, the type, and for each dimension its length and first index.
func (a *arrays) begin(element uint32, columns, rows int) {
	if rows == 0 {
		a.number32(0, 0, int(element))
		return
	}
	a.number32(2, 1, int(element), columns, 1, rows, 1)
}

// field adds one value as an element of the array: its length, then its bytes. NULL has the length -1 and no bytes. pointer is a *[]byte, *int64 or
// *sql.NullInt64 with the value; a pointer of another type adds nothing.
func (a *arrays) field(pointer any) {
	switch v := pointer.(type) {
	case *[]byte:
		if *v == nil {
			a.number32(-1)
			return
		}
		a.number32(len(*v))
		a.buf = append(a.buf, *v...)
	case *int64:
		a.number32(8)
		a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(*v))
	case *sql.NullInt64:
		if v.Valid {
			a.field(&v.Int64)
		} else {
			a.number32(-1)
		}
	}
}

// number32 adds each number as four bytes, highest first.
func (a *arrays) number32(numbers ...int) {
	for _, n := range numbers {
		a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(n))
	}
}

// end ends the parameter of which the bytes were added last.
func (a *arrays) end() { a.ends = append(a.ends, len(a.buf)) }

// parameters returns all parameters added so far. They share the memory of the buffer: no caller may use them after free.
func (a *arrays) parameters() [][]byte {
	parameters, from := make([][]byte, len(a.ends)), 0
	for i, to := range a.ends {
		parameters[i], from = a.buf[from:to:to], to
	}
	return parameters
}
