package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ndjsonRows gives the lines of an NDJSON file, which are sent byte for byte,
// the line's end (LF or CR LF) left out, or as forms. Blank lines are skipped and
// counted.
type ndjsonRows struct {
	file  string
	in    *bufio.Reader
	needs rowNeeds
	line  int
}

func (n *ndjsonRows) next() (row, error) {
	for {
		line, err := n.readLine()
		if errors.Is(err, io.EOF) {
			return row{}, io.EOF
		}
		n.line++
		if err != nil {
			return row{}, &inputError{file: n.file, row: n.line, err: err}
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r := row{number: n.line, line: n.line, body: line}
		var column string
		r.fields, column, err = n.parse(line)
		if err == nil && n.needs.form {
			r.body, err = formOfJSON(line)
		}
		if err != nil {
			return row{}, &inputError{file: n.file, row: n.line, column: column, err: err, more: true}
		}
		return r, nil
	}
}

// readLine reads one line without its end; io.EOF after the last.
func (n *ndjsonRows) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := n.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > rowBytesMax+2:
			return nil, errRowTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, pathless(err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) > rowBytesMax {
			return nil, errRowTooLong
		}
		return line, nil
	}
}

// parse checks that the line is one JSON object and takes out the key's fields.
// column names the field at fault, if it is one.
func (n *ndjsonRows) parse(line []byte) (fields []string, column string, err error) {
	if err := checkText(string(line)); err != nil {
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
	fields = make([]string, len(n.needs.fields))
	seen := make([]bool, len(fields))
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, "", fmt.Errorf("is not JSON: %w", err)
		}
		i := slices.Index(n.needs.fields, name.(string))
		if i < 0 || isPointer(n.needs.fields[i]) {
			continue
		}
		if seen[i] {
			return nil, n.needs.fields[i], errTwice
		}
		seen[i] = true
		if fields[i], err = fieldText(value, n.needs.why(i)); err != nil {
			return nil, n.needs.fields[i], err
		}
	}
	for i, name := range n.needs.fields {
		if isPointer(name) {
			if seen[i], err = n.pointed(line, i, &fields[i]); err != nil {
				return nil, name, err
			}
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		return nil, n.needs.fields[i], errors.New("is not there, and " + n.needs.why(i))
	}
	return fields, "", nil
}

// pointed reads the field with this index, which is a pointer, and reports whether it
// leads to something.
func (n *ndjsonRows) pointed(line []byte, field int, text *string) (bool, error) {
	value, err := follow(line, n.needs.fields[field])
	if value == nil || err != nil {
		return false, err
	}
	*text, err = fieldText(value, n.needs.why(field))
	return true, err
}

// fieldText is a field's value as it stands in a key or URL: a string, or the text
// of a number as it is written. why says what needs it.
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

// jsonFault says where the line stops being JSON.
func jsonFault(line []byte) error {
	var v any
	err := json.Unmarshal(line, &v)
	if se := (*json.SyntaxError)(nil); errors.As(err, &se) {
		return fmt.Errorf("is not JSON: byte %d: %w", se.Offset, err)
	}
	return fmt.Errorf("is not JSON: %w", err)
}
