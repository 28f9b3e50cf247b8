// Package input reads files of rows: CSV, TSV and NDJSON, in several encodings, packed or not.
package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// RowBytesMax bounds one row of the input, as the client bounds one request.
const RowBytesMax = 10 << 20

// Row is one operation of a batch.
type Row struct {
	// Number is the row's place, from 1: among the rows below the header of a
	// CSV file, or the line of an NDJSON file.
	Number int
	// Line is the row's first line in the file, from 1.
	Line int
	// Body is the body to send.
	Body []byte
	// Fields are the values of the key's fields, in the key template's order.
	Fields []string
	// Cells is true if the fields are cells of a CSV file, and no values of JSON.
	Cells bool
	// Total is the cell calling the row a sum of others; "": there is no such cell. See Look.
	Total string
	// NamesTotal is the cell that begins or ends with a word for such a sum, as "Subtotal ACME" does; "": there is none.
	NamesTotal string
	// Amount and Currency are the cells of two fields. See Look.
	Amount, Currency string
	// Rest is a hash of the row without one field. See Look.
	Rest [16]byte
}

// RowReader returns a file's rows in order, io.EOF after the last. Any other error is an *RowError. Nothing follows it unless its More
// is set.
type RowReader interface {
	Next() (Row, error)
}

// RowNeeds are the needs of every row.
type RowNeeds struct {
	Fields    []string      // must be there and not empty: those of the key, then others
	flags     []string      // that name the fields, beside those of the key; see Index
	OfKey     int           // number of those of the key
	Numbers   []string      // CSV columns to write as JSON numbers
	Body      *bodyTemplate // of CSV rows; nil: an object of the columns
	Form      bool          // rows are sent as forms
	Look      Look
	Spelling  Spelling // of numbers in CSV rows; nil: as JSON spells them
	Delimiter rune     // between the columns; 0: as the header shows, see DelimiterOf
	CSVFault  error    // in the flags, if the rows are CSV; nil: none
}

// Spelling reads the numbers of cells.
type Spelling interface {
	// Mark returns the character before the decimals; "": as JSON spells them.
	Mark() string
	// Number returns the cell's number as JSON spells it.
	Number(cell string) (string, error)
	// Minor returns the cell's amount in the smallest unit of its currency, a whole number.
	Minor(cell, currency string) (string, error)
}

// why returns the reason why a row needs the field with this index, such as "the key needs it", for an error about an empty or missing field. The first OfKey
// fields are those of the key.
func (n *RowNeeds) why(field int) string {
	if field < n.OfKey {
		return "the key needs it"
	}
	return n.flag(field) + " needs it"
}

// flag returns the flag that asked for the field with this index, such as --sum, for errors. A field without a note of its flag is one of --key.
func (n *RowNeeds) flag(field int) string {
	if field < len(n.flags) && n.flags[field] != "" {
		return n.flags[field]
	}
	return "--key"
}

// csvOnly returns the name of a given flag that has a meaning for CSV only, such as --body; "" if there is none. NDJSON lines are sent as they are.
func (n *RowNeeds) csvOnly() string {
	switch {
	case n.Body != nil:
		return "--body"
	case len(n.Numbers) > 0:
		return "--number"
	case n.Spelling != nil && n.Spelling.Mark() != "":
		return "--decimal"
	}
	return ""
}

// RowError is a fault in an input, with its place.
type RowError struct {
	File   string
	Row    int    // 0: of no single row
	Line   int    // 0: the same as row
	Column string // "": of no single column
	Err    error
	More   bool // the rows behind it can be read all the same
}

// Error names the file, the row, the line and the column, as far as they are known, and the fault.
func (e *RowError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	sep := ": "
	if e.Row > 0 {
		fmt.Fprintf(&b, "%srow %d", sep, e.Row)
		if e.Line > 0 && e.Line != e.Row {
			fmt.Fprintf(&b, " (line %d)", e.Line)
		}
		sep = ", "
	}
	if e.Column != "" {
		fmt.Fprintf(&b, "%scolumn %q", sep, e.Column)
	}
	return b.String() + ": " + e.Err.Error()
}

// Unwrap returns the fault of the row, without its line number.
func (e *RowError) Unwrap() error { return e.Err }

// NewRows reads r as CSV or TSV with a header row. If the first character after blanks is a "{", it reads r as NDJSON. file is its name
// in errors. A byte order mark is skipped.
func NewRows(file string, r io.Reader, needs RowNeeds) (RowReader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	first, err := FirstOf(file, in)
	if err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) (RowReader, error) {
		return nil, &RowError{File: file, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case first[0] == '[':
		return fail("is a JSON array; want CSV with a header row, or one JSON object a line")
	case first[0] == '{' && needs.csvOnly() != "":
		return fail("is NDJSON, whose lines are sent as they are; %s is for CSV", needs.csvOnly())
	case first[0] == '{':
		if err := words.CheckPointers(needs.Fields); err != nil {
			return fail("%w", err)
		}
		return &NDJSONRows{File: file, In: in, needs: needs}, nil
	}
	if needs.CSVFault != nil {
		return fail("%w", needs.CSVFault)
	}
	if needs.Delimiter == 0 {
		needs.Delimiter = DelimiterOf(first)
	}
	return newCSVRows(file, in, needs)
}

// FirstOf returns the beginning of a text, from the first character after blanks. A byte order mark is taken off. Blanks alone, an empty
// input, and bytes that are no text are errors.
func FirstOf(file string, in *bufio.Reader) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, &RowError{File: file, Err: err} }
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	head, err := in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fail(words.Pathless(err))
	}
	if len(head) == 0 {
		return fail(errors.New("is empty"))
	}
	if err := checkHead(head[:min(len(head), textBytes)]); err != nil { // a later fault is reported with its row
		return fail(err)
	}
	first := bytes.TrimLeft(head, " \t\r\n")
	if len(first) == 0 {
		return fail(errors.New("holds nothing but blanks"))
	}
	return first, nil
}

// trimCutRune returns b without the first bytes of a character that the end of b cuts off, so that the rest can be checked as UTF-8.
func trimCutRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// CheckText returns an error for a text with a NUL byte or invalid UTF-8: no text file holds them.
func CheckText(s string) error {
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return errors.New("holds a NUL byte")
	case !utf8.ValidString(s):
		return errors.New("is not UTF-8 text")
	}
	return nil
}

var errRowTooLong = fmt.Errorf("is longer than %d bytes", RowBytesMax)

// Index returns the index of a field among the fields that each row must have. It adds a new field, with the flag that needs it, for errors.
func (n *RowNeeds) Index(field, flag string) int {
	i := slices.Index(n.Fields, field)
	if i < 0 {
		i = len(n.Fields)
		n.Fields = append(n.Fields, field)
		n.flags = append(n.flags, make([]string, i+1-len(n.flags))...) // no flag is noted for the fields of the key
		n.flags[i] = flag
	}
	return i
}

const BodyFileBytesMax = 1 << 20
