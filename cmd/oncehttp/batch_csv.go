package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// csvRows turns the records of a CSV file into bodies, the same record always into
// the same bytes: JSON objects with a string per column, in the order of the
// columns, or what the needs say.
type csvRows struct {
	file    string
	in      *csv.Reader
	limit   *recordLimit
	names   []string // the columns as in the header
	quoted  []string // the same as JSON strings
	numbers []bool   // by column
	fields  []int    // columns of the fields that are needed
	ofBody  []int    // columns of needs.body, as it names them
	needs   rowNeeds
	number  int
}

func newCSVRows(file string, r io.Reader, needs rowNeeds) (*csvRows, error) {
	limit := &recordLimit{r: r, left: rowBytesMax}
	c := &csvRows{file: file, in: csv.NewReader(limit), limit: limit}
	c.in.ReuseRecord = true
	c.in.Comma = needs.delimiter
	c.needs = needs
	header, err := c.in.Read()
	if err != nil {
		return nil, &inputError{file: file, err: fmt.Errorf("header: %w", csvCause(err))}
	}
	if err := c.setColumns(header); err != nil {
		return nil, &inputError{file: file, err: fmt.Errorf("header: %w", err)}
	}
	for _, name := range needs.fields {
		i := slices.Index(c.names, name)
		if i < 0 {
			return nil, c.noColumn(needs.flag(len(c.fields)), name)
		}
		c.fields = append(c.fields, i)
	}
	for _, name := range needs.numbers {
		i := slices.Index(c.names, name)
		if i < 0 {
			return nil, c.noColumn("--number", name)
		}
		c.numbers[i] = true
	}
	return c, c.bindBody()
}

// bindBody finds the columns of --body.
func (c *csvRows) bindBody() error {
	if c.needs.body == nil {
		return nil
	}
	for _, name := range c.needs.body.columns {
		i := slices.Index(c.names, name)
		base, _, _ := strings.Cut(name, ":")
		switch {
		case i < 0 && slices.Contains(c.names, base):
			return &inputError{file: c.file, column: base, err: fmt.Errorf("--body has \"{%s}\" in quotes, where it is text: leave the quotes out, or the %q", clip(name), clip(name[len(base):]))}
		case i < 0:
			return c.noColumn("--body", name)
		}
		c.ofBody = append(c.ofBody, i)
	}
	return nil
}

func (c *csvRows) setColumns(header []string) error {
	for i, name := range header {
		if err := checkText(name); err != nil {
			return fmt.Errorf("column %d %w", i+1, err)
		}
		switch {
		case name == "":
			return fmt.Errorf("column %d has no name", i+1)
		case slices.Contains(c.names, name):
			return fmt.Errorf("two columns are named %q", name)
		}
		c.names = append(c.names, strings.Clone(name))
		c.quoted = append(c.quoted, jsonString(name))
	}
	c.numbers = make([]bool, len(c.names))
	return nil
}

func (c *csvRows) noColumn(flag, name string) error {
	known := make([]string, len(c.names))
	for i, n := range c.names {
		known[i] = fmt.Sprintf("%q", n)
	}
	hint := ""
	if isPointer(name) {
		hint = " (a JSON pointer is for NDJSON)"
	}
	return &inputError{file: c.file, column: name, err: fmt.Errorf("named by %s, is not there%s; the columns are %s", flag, hint, strings.Join(known, ", "))}
}

func (c *csvRows) next() (row, error) {
	c.limit.left = rowBytesMax
	record, err := c.in.Read()
	if errors.Is(err, io.EOF) {
		return row{}, io.EOF
	}
	c.number++
	if err != nil {
		return row{}, &inputError{file: c.file, row: c.number, line: csvLine(err), err: csvCause(err), more: errors.Is(err, csv.ErrFieldCount)}
	}
	line, _ := c.in.FieldPos(0)
	fail := func(column int, err error) (row, error) {
		name := ""
		if column >= 0 {
			name = c.names[column]
		}
		return row{}, &inputError{file: c.file, row: c.number, line: line, column: name, err: err, more: true}
	}
	for i, value := range record {
		if err := checkText(value); err != nil {
			return fail(i, err)
		}
		if c.numbers[i] && !isNumber(value) {
			return fail(i, notANumber(value))
		}
	}
	r := row{number: c.number, line: line, fields: make([]string, len(c.fields))}
	for i, column := range c.fields {
		if record[column] == "" {
			return fail(column, errors.New("is empty, and "+c.needs.why(i)))
		}
		r.fields[i] = strings.Clone(record[column])
	}
	var column int
	if r.body, column, err = c.spell(record); err != nil {
		return fail(column, err)
	}
	if len(r.body) > rowBytesMax {
		return row{}, &inputError{file: c.file, row: c.number, line: line, err: errRowTooLong, more: true}
	}
	return r, nil
}

// object spells the record. Numbers keep their text.
func (c *csvRows) object(record []string) []byte {
	b := make([]byte, 0, 256)
	for i, value := range record {
		b = append(b, "{,"[min(i, 1)])
		b = append(b, c.quoted[i]...)
		b = append(b, ':')
		if c.numbers[i] {
			b = append(b, value...)
		} else {
			b = appendJSON(b, value)
		}
	}
	return append(b, '}')
}

// jsonString spells s as a JSON string, "<" and the like as they are.
func jsonString(s string) string { return string(appendJSON(nil, s)) }

// appendJSON appends jsonString(s).
func appendJSON(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, needsEscape) {
		return append(append(append(b, '"'), s...), '"')
	}
	var escaped bytes.Buffer
	enc := json.NewEncoder(&escaped)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string into memory: nothing can fail
	return append(b, bytes.TrimSuffix(escaped.Bytes(), []byte("\n"))...)
}

// needsEscape reports whether a character may stand otherwise in a JSON string than as
// it is. It leaves all but plain ASCII to package json.
func needsEscape(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

// isNumber reports whether s is one number as JSON spells it, and nothing else.
func isNumber(s string) bool {
	if s == "" || (s[0] != '-' && (s[0] < '0' || s[0] > '9')) {
		return false
	}
	last := s[len(s)-1]
	return last >= '0' && last <= '9' && json.Valid([]byte(s))
}

func notANumber(cell string) error { return fmt.Errorf("%q is not a JSON number", clip(cell)) }

// clip shortens a value for an error line.
func clip(s string) string {
	const runesMax = 40
	s = passwordOf.ReplaceAllString(s, "$1@")
	if r := []rune(s); len(r) > runesMax {
		return string(r[:runesMax]) + "…"
	}
	return s
}

func csvLine(err error) int {
	if pe := (*csv.ParseError)(nil); errors.As(err, &pe) {
		return pe.StartLine
	}
	return 0
}

// csvCause is what is wrong, in words of ours where encoding/csv's are short.
func csvCause(err error) error {
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
	return pathless(err)
}

// recordLimit keeps one record from growing without bound: csv.Reader itself
// reads on for as long as a quote is open.
type recordLimit struct {
	r    io.Reader
	left int
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errRowTooLong
	}
	n, err := l.r.Read(p)
	l.left -= n
	return n, err
}
