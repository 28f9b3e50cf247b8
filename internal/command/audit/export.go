package audit

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// exportPlace is the place of a row in its file.
type exportPlace struct{ row, line int }

// exportRows returns the rows of an export by column, io.EOF after the last.
type exportRows struct {
	next    func() (map[string]string, exportPlace, error)
	file    string
	columns []string // of a CSV file
}

// check returns an error with all columns that flags name and a CSV export lacks. Of NDJSON each line is checked by itself, when it is read.
func (e *exportRows) check(f *auditFlags) error {
	if e.columns == nil {
		return nil // each NDJSON line is checked by itself
	}
	var missing []string
	for _, flag := range f.columns() {
		if !slices.Contains(e.columns, flag.column) {
			missing = append(missing, fmt.Sprintf("%q (%s)", flag.column, flag.flag))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &input.RowError{File: e.file, Err: fmt.Errorf("there is no column %s; the columns are %s", strings.Join(missing, ", "), strings.Join(words.Quoted(e.columns), ", "))}
}

// openExport begins to read an export, CSV or NDJSON; its first character decides. name is for messages. comma separates the columns of CSV; with 0, the header
// decides.
func openExport(name string, in io.Reader, comma rune) (*exportRows, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	first, err := input.FirstOf(name, r) // an empty export is an error
	switch {
	case err != nil:
		return nil, err
	case first[0] == '{':
		return &exportRows{file: name, next: ndjsonExport(name, r)}, nil
	case comma == 0:
		comma = input.DelimiterOf(first)
	}
	return csvExport(name, r, comma)
}

// ndjsonExport returns a function that returns the next row of an NDJSON file by its columns, and its place (row and line); io.EOF at the end. name is the name for
// messages. An error with More set is of one line, and the lines behind it can be read.
func ndjsonExport(name string, in *bufio.Reader) func() (map[string]string, exportPlace, error) {
	lines := &input.NDJSONRows{File: name, In: in}
	return func() (map[string]string, exportPlace, error) {
		r, err := lines.Next()
		at := exportPlace{r.Number, r.Line}
		if err != nil {
			return nil, at, err
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(r.Body, &members); err != nil {
			return nil, at, &input.RowError{File: name, Row: r.Number, Err: err, More: true}
		}
		row := make(map[string]string, len(members))
		for column, value := range members {
			var text string
			if json.Unmarshal(value, &text) != nil {
				text = string(value) // a number, as it is spelled
			}
			row[column] = text
		}
		return row, at, nil
	}
}

// csvExport reads the header of a CSV file, and returns a reader of its rows. name is the name for messages; comma is the character between two
// fields. An error with More set is of one row (a wrong number of fields), and the rows behind it can be read.
func csvExport(name string, in *bufio.Reader, comma rune) (*exportRows, error) {
	limit := &input.RecordLimit{R: in, Left: input.RowBytesMax}
	c := csv.NewReader(limit)
	c.Comma = comma
	header, err := c.Read()
	if err != nil {
		return nil, &input.RowError{File: name, Err: fmt.Errorf("header: %w", input.CSVCause(err))}
	}
	header, number := slices.Clone(header), 0
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
		if header[i] != "" && slices.Contains(header[:i], header[i]) {
			return nil, &input.RowError{File: name, Err: fmt.Errorf("header: two columns are named %q", header[i])}
		}
	}
	c.ReuseRecord = true
	return &exportRows{file: name, columns: header, next: func() (map[string]string, exportPlace, error) {
		limit.Left = input.RowBytesMax // for each row anew
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil, exportPlace{}, io.EOF
		}
		number++
		at := exportPlace{row: number}
		if err != nil {
			at.line = input.CSVLine(err)
			return nil, at, &input.RowError{File: name, Row: number, Line: at.line, Err: input.CSVCause(err), More: errors.Is(err, csv.ErrFieldCount)}
		}
		at.line, _ = c.FieldPos(0)
		row := make(map[string]string, len(header))
		for i, column := range header {
			row[column] = record[i]
		}
		return row, at, nil
	}}, nil
}

// parseExportTime reads the time of a row: with its zone, or seconds since 1970. A time without a zone is an error: it could move the row over --since or --until.
func parseExportTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST"} {
		t, err := time.Parse(layout, text) // takes an unknown name of a zone, such as CET, for one with offset 0
		if name, offset := t.Zone(); err == nil && (layout != "2006-01-02 15:04:05 MST" || name == "UTC" || offset != 0) {
			return t, nil
		}
	}
	var s int64
	if n, err := fmt.Sscanf(text, "%d", &s); err == nil && n == 1 && fmt.Sprint(s) == text {
		return time.Unix(s, 0), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time with a zone, such as 2026-01-31T10:00:00Z, nor seconds since 1970", words.Clip(text))
}
