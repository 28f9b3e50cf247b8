package input

import (
	"fmt"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// The body of a CSV row is a JSON object of its columns, the filled template of --body, or a form of either. The body of an NDJSON line
// is the line, or a form of it.

// spell returns the body of a record's request: a form, a JSON object, or the filled template of --body. If a cell does not fit, the error is about the column with the
// index column; -1 is none.
func (c *csvRows) spell(record []string) (body []byte, column int, err error) {
	switch {
	case c.needs.Body == nil && c.needs.Form:
		return c.form(record), 0, nil
	case c.needs.Body == nil:
		return c.object(record), 0, nil
	}
	body, column, err = c.needs.Body.fill(func(i int) string { return record[c.ofBody[i]] })
	switch {
	case err != nil:
		return nil, c.ofBody[column], err
	case c.needs.Form:
		if body, err = formOfJSON(body); err != nil {
			return nil, -1, fmt.Errorf("--body: %w", err)
		}
	}
	return body, 0, nil
}

// form spells the record as application/x-www-form-urlencoded, in the order of the
// columns.
func (c *csvRows) form(record []string) []byte {
	var f formBuffer
	for i, value := range record {
		f.add(c.names[i], value)
	}
	return f.Bytes()
}

// object returns the record as a JSON object. A value of a --number column is written as a number, any other as a text.
func (c *csvRows) object(record []string) []byte {
	b := make([]byte, 0, 256)
	for i, value := range record {
		b = append(b, "{,"[min(i, 1)]) // "{" before the first member, "," before each further one
		b = append(b, c.quoted[i]...)
		b = append(b, ':')
		if c.numbers[i] {
			b = append(b, c.spelled[i]...)
		} else {
			b = words.AppendJSON(b, value)
		}
	}
	return append(b, '}')
}
