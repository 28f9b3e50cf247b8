package input

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// csvRows turns the records of a CSV file into bodies, the same record always into the same bytes. A body is a JSON object with a string
// per column, in the order of the columns, or has the form set by the needs.
type csvRows struct {
	file    string
	in      *csv.Reader
	limit   *RecordLimit
	names   []string // the columns as in the header
	quoted  []string // the same as JSON strings
	numbers []bool   // by column
	spelled []string // the numbers of the record, by column
	fields  []int    // columns of the needed fields
	ofBody  []int    // columns of needs.Body, in the order of its names
	needs   RowNeeds
	number  int
}

// newCSVRows returns a reader of the rows of r. It reads the header, and returns an error if a column named in needs is missing there. file is the name for
// messages. c.fields has the places of the needed columns in a record, in the order of needs.Fields; c.numbers tells of each column if it is sent as a number.
func newCSVRows(file string, r io.Reader, needs RowNeeds) (*csvRows, error) {
	limit := &RecordLimit{R: r, Left: RowBytesMax}
	c := &csvRows{file: file, in: csv.NewReader(limit), limit: limit}
	c.in.ReuseRecord = true
	c.in.Comma = needs.Delimiter
	c.needs = needs
	header, err := c.in.Read()
	if err != nil {
		return nil, &RowError{File: file, Err: fmt.Errorf("header: %w", CSVCause(err))}
	}
	if err := c.setColumns(header); err != nil {
		return nil, &RowError{File: file, Err: fmt.Errorf("header: %w", err)}
	}
	for _, name := range needs.Fields {
		i := slices.Index(c.names, name)
		if i < 0 {
			return nil, c.noColumn(needs.flag(len(c.fields)), name)
		}
		c.fields = append(c.fields, i)
	}
	for _, name := range needs.Numbers {
		i := slices.Index(c.names, name)
		if i < 0 {
			return nil, c.noColumn("--number", name)
		}
		c.numbers[i] = true
	}
	return c, c.bindBody()
}

// bindBody finds the columns used by the template of --body. It is called once, after the header was read. A column missing in the header is an error.
func (c *csvRows) bindBody() error {
	if c.needs.Body == nil {
		return nil
	}
	for _, name := range c.needs.Body.columns {
		i := slices.Index(c.names, name)
		base, _, _ := strings.Cut(name, ":")
		switch {
		case i < 0 && slices.Contains(c.names, base):
			return &RowError{File: c.file, Column: base, Err: fmt.Errorf("--body has \"{%s}\" in quotes, where it is text: leave the quotes out, or the %q", words.Clip(name), words.Clip(name[len(base):]))}
		case i < 0:
			return c.noColumn("--body", name)
		}
		c.ofBody = append(c.ofBody, i)
	}
	return nil
}

// setColumns sets the names of the columns from the header. A name that is empty, twice there or no text is an error.
func (c *csvRows) setColumns(header []string) error {
	for i, name := range header {
		if err := CheckText(name); err != nil {
			return fmt.Errorf("column %d %w", i+1, err)
		}
		switch {
		case name == "" && i > 0 && strings.HasPrefix(strings.ToLower(header[0]), "sep="):
			return fmt.Errorf("is the line %q, by which a spreadsheet says how columns are parted: take it out, the next line is the header", words.Clip(header[0]))
		case name == "":
			return fmt.Errorf("column %d has no name", i+1)
		case slices.Contains(c.names, name):
			return fmt.Errorf("two columns are named %q", name)
		}
		c.names = append(c.names, strings.Clone(name))
		c.quoted = append(c.quoted, words.JSONString(name))
	}
	c.numbers, c.spelled = make([]bool, len(c.names)), make([]string, len(c.names))
	return nil
}

// noColumn returns the error for a column that a flag names and the header lacks, with the columns that are there and the one probably meant.
func (c *csvRows) noColumn(flag, name string) error {
	known := make([]string, len(c.names))
	for i, n := range c.names {
		known[i] = fmt.Sprintf("%q", n)
	}
	hint := ""
	if near := words.Nearest(name, c.names); words.IsPointer(name) {
		hint = " (a JSON pointer is for NDJSON)"
	} else if near != "" {
		hint = fmt.Sprintf(" (is it %q?)", near)
	}
	return &RowError{File: c.file, Column: name, Err: fmt.Errorf("named by %s, is not there%s; the columns are %s", flag, hint, strings.Join(known, ", "))}
}

// Next returns the next row; io.EOF at the end. An error for one row has More set if further rows can be read.
func (c *csvRows) Next() (Row, error) {
	c.limit.Left = RowBytesMax
	record, err := c.in.Read()
	if errors.Is(err, io.EOF) {
		return Row{}, io.EOF
	}
	c.number++
	if err != nil {
		return Row{}, &RowError{File: c.file, Row: c.number, Line: CSVLine(err), Err: CSVCause(err), More: errors.Is(err, csv.ErrFieldCount)}
	}
	line, _ := c.in.FieldPos(0)
	fail := func(column int, err error) (Row, error) {
		name := ""
		if column >= 0 {
			name = c.names[column]
		}
		return Row{}, &RowError{File: c.file, Row: c.number, Line: line, Column: name, Err: err, More: true}
	}
	for i, value := range record {
		if err := CheckText(value); err != nil {
			return fail(i, err)
		}
		if c.numbers[i] {
			if c.spelled[i], err = spellNumber(c.needs.Spelling, value); err != nil {
				return fail(i, err)
			}
		}
	}
	r := Row{Number: c.number, Line: line, Fields: make([]string, len(c.fields)), Cells: true}
	for i, column := range c.fields {
		if record[column] == "" {
			return fail(column, errors.New("is empty, and "+c.needs.why(i)+c.saysTotal(record)))
		}
		r.Fields[i] = strings.Clone(record[column]) // the reader overwrites the record at the next row
	}
	var column int
	if r.Body, column, err = c.spell(record); err != nil {
		return fail(column, err)
	}
	if len(r.Body) > RowBytesMax {
		return Row{}, &RowError{File: c.file, Row: c.number, Line: line, Err: errRowTooLong, More: true}
	}
	c.lookAtRecord(&r, record)
	return r, nil
}

// saysTotal returns a text for the end of an error about a record, if one of its cells is a word such as "Total": the row may be a sum of others, and no payment. Else
// it returns "".
func (c *csvRows) saysTotal(record []string) string {
	if i := slices.IndexFunc(record, isTotal); i >= 0 && c.needs.Look.Totals {
		return fmt.Sprintf("; the row says %q: it may be the total of others", strings.TrimSpace(record[i]))
	}
	return ""
}

// isNumber reports whether s is one number as JSON spells it, and nothing else. json.Valid alone would take blanks around it, and other values.
func isNumber(s string) bool {
	if s == "" || (s[0] != '-' && (s[0] < '0' || s[0] > '9')) {
		return false
	}
	last := s[len(s)-1]
	return last >= '0' && last <= '9' && json.Valid([]byte(s))
}

// spellNumber returns the number in a cell as JSON spells it. numbers reads the decimal mark of --decimal; nil takes JSON numbers only.
func spellNumber(numbers Spelling, cell string) (string, error) {
	text := cell
	if numbers != nil {
		var err error
		if text, err = numbers.Number(cell); err != nil {
			return "", fmt.Errorf("%q %w", words.Clip(cell), err)
		}
	}
	if !isNumber(text) {
		return "", notANumber(cell)
	}
	return text, nil
}

// notANumber returns the error for a cell that is no JSON number. If --decimal would read it, the error says so.
func notANumber(cell string) error {
	hint := ""
	if digits := strings.Trim(cell, "0123456789.,'’- \u00a0\u202f"); digits == "" && strings.ContainsAny(cell, "0123456789") && strings.TrimSpace(cell) == cell {
		switch {
		case strings.Contains(cell, ",") && strings.LastIndex(cell, ",") > strings.LastIndex(cell, "."):
			hint = "; --decimal , reads 1.234,50 and 1 234,50"
		case strings.ContainsAny(cell, ",'’ \u00a0\u202f"):
			hint = "; --decimal . reads 1,234.50, 1'234.50 and 1 234.50"
		}
	}
	return fmt.Errorf("%q is not a JSON number%s", words.Clip(cell), hint)
}

// CSVLine returns the line at which the row of a CSV error starts; 0 for any other error.
func CSVLine(err error) int {
	if pe := (*csv.ParseError)(nil); errors.As(err, &pe) {
		return pe.StartLine
	}
	return 0
}

// CSVCause returns the cause of an error from encoding/csv in words for the user, without the position, which RowError has.
func CSVCause(err error) error {
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return errors.New("has another number of fields than the header")
	case errors.Is(err, csv.ErrQuote):
		return errors.New(`a quote is not closed, or something follows it; inside quotes write " as ""`)
	case errors.Is(err, csv.ErrBareQuote):
		return errors.New(`a " stands in a field that is not quoted`)
	case errors.Is(err, errRowTooLong):
		return errRowTooLong
	}
	return words.Pathless(err)
}

// RecordLimit keeps one record from growing without bound: csv.Reader itself
// reads on for as long as a quote is open.
type RecordLimit struct {
	R    io.Reader
	Left int
}

// Read implements io.Reader. It fails once about Left bytes were read: a CSV record without an end would fill the memory. The caller sets Left before each record.
func (l *RecordLimit) Read(p []byte) (int, error) {
	if l.Left <= 0 {
		return 0, errRowTooLong
	}
	n, err := l.R.Read(p)
	l.Left -= n
	return n, err
}
