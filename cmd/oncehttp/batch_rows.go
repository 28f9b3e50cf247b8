package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// rowBytesMax bounds one row of the input, as the client bounds one request.
const rowBytesMax = 10 << 20

// row is one operation of a batch.
type row struct {
	// number is the row's place, from 1: among the rows below the header of a
	// CSV file, or the line of an NDJSON file.
	number int
	// line is where the row begins in the file, from 1.
	line int
	// body is what is sent.
	body []byte
	// fields are the values of the key's fields, in the key template's order.
	fields []string
}

// rowReader gives a file's rows in order, io.EOF after the last. Any other error
// is an *inputError, and the last thing it gives unless its more is set.
type rowReader interface {
	next() (row, error)
}

// rowNeeds is what is asked of every row.
type rowNeeds struct {
	fields    []string      // must be there and not empty: those of the key, then others
	ofKey     int           // how many of them the key needs
	numbers   []string      // CSV columns that become JSON numbers
	body      *bodyTemplate // of CSV rows; nil: an object of the columns
	form      bool          // rows are sent as forms
	delimiter rune          // between the columns; 0: as the header shows, see delimiterOf
}

// why says what needs the field with this index.
func (n *rowNeeds) why(field int) string {
	if field < n.ofKey {
		return "the key needs it"
	}
	return "--url, --ordered-by, --sum or --currency needs it"
}

// flag is the flag that names the field with this index.
func (n *rowNeeds) flag(field int) string {
	if field < n.ofKey {
		return "--key"
	}
	return "--url, --ordered-by, --sum or --currency"
}

// csvOnly is a flag that means nothing for NDJSON; "" if there is none.
func (n *rowNeeds) csvOnly() string {
	switch {
	case n.body != nil:
		return "--body"
	case len(n.numbers) > 0:
		return "--number"
	}
	return ""
}

// inputError says what is wrong with an input, and where.
type inputError struct {
	file   string
	row    int    // 0: of no single row
	line   int    // 0: the same as row
	column string // "": of no single column
	err    error
	more   bool // the rows behind it can be read all the same
}

func (e *inputError) Error() string {
	var b strings.Builder
	b.WriteString(e.file)
	sep := ": "
	if e.row > 0 {
		fmt.Fprintf(&b, "%srow %d", sep, e.row)
		if e.line > 0 && e.line != e.row {
			fmt.Fprintf(&b, " (line %d)", e.line)
		}
		sep = ", "
	}
	if e.column != "" {
		fmt.Fprintf(&b, "%scolumn %q", sep, e.column)
	}
	return b.String() + ": " + e.err.Error()
}

func (e *inputError) Unwrap() error { return e.err }

// newRows reads r as CSV or TSV with a header row or, where the first character that is
// not blank is a "{", as NDJSON. file is its name in errors. A byte order mark
// is skipped.
func newRows(file string, r io.Reader, needs rowNeeds) (rowReader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	first, err := firstOf(file, in)
	if err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) (rowReader, error) {
		return nil, &inputError{file: file, err: fmt.Errorf(format, args...)}
	}
	switch {
	case first[0] == '[':
		return fail("is a JSON array; want CSV with a header row, or one JSON object a line")
	case first[0] == '{' && needs.csvOnly() != "":
		return fail("is NDJSON, whose lines are sent as they are; %s is for CSV", needs.csvOnly())
	case first[0] == '{':
		if err := checkPointers(needs.fields); err != nil {
			return fail("%w", err)
		}
		return &ndjsonRows{file: file, in: in, needs: needs}, nil
	}
	if needs.delimiter == 0 {
		needs.delimiter = delimiterOf(first)
	}
	return newCSVRows(file, in, needs)
}

// firstOf is the beginning of a text, from the first character that is not blank. A byte order mark is taken off. A text
// without any, and what is no text, is an error.
func firstOf(file string, in *bufio.Reader) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, &inputError{file: file, err: err} }
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	head, err := in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fail(pathless(err))
	}
	if len(head) == 0 {
		return fail(errors.New("is empty"))
	}
	if err := checkHead(head[:min(len(head), textBytes)]); err != nil { // what comes later is said with its row
		return fail(err)
	}
	first := bytes.TrimLeft(head, " \t\r\n")
	if len(first) == 0 {
		return fail(errors.New("holds nothing but blanks"))
	}
	return first, nil
}

// trimCutRune drops the start of a character that the end of b may have cut.
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

// checkText refuses what no text file holds.
func checkText(s string) error {
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return errors.New("holds a NUL byte")
	case !utf8.ValidString(s):
		return errors.New("is not UTF-8 text")
	}
	return nil
}

var errRowTooLong = fmt.Errorf("is longer than %d bytes", rowBytesMax)
