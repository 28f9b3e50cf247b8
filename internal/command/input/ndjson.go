package input

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// NDJSONRows reads the lines of an NDJSON file. They are sent byte for byte, without the line's end (LF or CR LF), or as forms. Blank
// lines are skipped and counted.
type NDJSONRows struct {
	File  string
	In    *bufio.Reader
	needs RowNeeds
	line  int
}

// Next returns the next row; io.EOF at the end. It passes over empty lines.
func (n *NDJSONRows) Next() (Row, error) {
	for {
		line, err := n.readLine()
		if errors.Is(err, io.EOF) {
			return Row{}, io.EOF
		}
		n.line++
		if err != nil {
			return Row{}, &RowError{File: n.File, Row: n.line, Err: err}
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r := Row{Number: n.line, Line: n.line, Body: line}
		var column string
		r.Fields, column, err = n.parse(line)
		if err == nil && n.needs.Form {
			r.Body, err = formOfJSON(line)
		}
		if err != nil {
			return Row{}, &RowError{File: n.File, Row: n.line, Column: column, Err: err, More: true}
		}
		n.lookAtLine(&r, line)
		return r, nil
	}
}

// readLine reads one line without its end; io.EOF after the last.
func (n *NDJSONRows) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := n.In.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > RowBytesMax+2: // 2 for CR LF
			return nil, errRowTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, words.Pathless(err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) > RowBytesMax {
			return nil, errRowTooLong
		}
		return line, nil
	}
}

// parse checks that the line is one JSON object, and returns the texts of the fields that the caller needs, in their order. If a field is at fault, column is its
// name; "" if the whole line is.
func (n *NDJSONRows) parse(line []byte) (fields []string, column string, err error) {
	if err := CheckText(string(line)); err != nil {
		return nil, "", err
	}
	if !json.Valid(line) {
		return nil, "", jsonFault(line)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if open, _ := dec.Token(); open != json.Delim('{') {
		return nil, "", errors.New("is not a JSON object")
	}
	fields = make([]string, len(n.needs.Fields))
	seen := make([]bool, len(fields))
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, "", fmt.Errorf("is not JSON: %w", err)
		}
		i := slices.Index(n.needs.Fields, name.(string))
		if i < 0 || words.IsPointer(n.needs.Fields[i]) { // pointers are followed below, also if a member has such a name
			continue
		}
		if seen[i] {
			return nil, n.needs.Fields[i], errTwice
		}
		seen[i] = true
		if fields[i], err = fieldText(value, n.needs.why(i)); err != nil {
			return nil, n.needs.Fields[i], err
		}
	}
	for i, name := range n.needs.Fields {
		if words.IsPointer(name) {
			if seen[i], err = n.pointed(line, i, &fields[i]); err != nil {
				return nil, name, err
			}
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		return nil, n.needs.Fields[i], errors.New("is not there, and " + n.needs.why(i))
	}
	return fields, "", nil
}

// pointed puts the value at a JSON pointer into text, and reports whether it exists. field is the index of the needed field, whose name is the pointer.
func (n *NDJSONRows) pointed(line []byte, field int, text *string) (bool, error) {
	value, err := follow(line, n.needs.Fields[field])
	if value == nil || err != nil {
		return false, err
	}
	*text, err = fieldText(value, n.needs.why(field))
	return true, err
}

// fieldText returns a field's value as it stands in a key or URL: a string, or the text of a number as it is written. why names the use
// of the field.
func fieldText(value json.RawMessage, why string) (string, error) {
	switch value[0] {
	case '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return "", fmt.Errorf("is not JSON: %w", err)
		}
		if s == "" {
			return "", errors.New("is empty, and " + why)
		}
		return s, nil
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return string(value), nil
	case 'n':
		return "", errors.New("is null, and " + why)
	}
	return "", errors.New("is neither a string nor a number, and " + why)
}

// jsonFault returns an error with the position of the first fault in a line. It must be called only for a line that is not JSON.
func jsonFault(line []byte) error {
	var v any
	err := json.Unmarshal(line, &v)
	if se := (*json.SyntaxError)(nil); errors.As(err, &se) {
		return fmt.Errorf("is not JSON: byte %d: %w", se.Offset, err)
	}
	return fmt.Errorf("is not JSON: %w", err)
}
