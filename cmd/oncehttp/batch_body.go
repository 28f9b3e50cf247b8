package main

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
)

// The body of a CSV row: a JSON object of its columns, what --body makes of them, or
// a form of them.

const typeForm = "application/x-www-form-urlencoded"

// setBody checks the flags that say what a row's body is, and the Content-Type.
func (f *batchFlags) setBody(needs *rowNeeds, header http.Header) error {
	switch {
	case f.form && f.template:
		return errors.New("--form and --body are two ways to spell a row; say one")
	case f.form && len(f.numbers) > 0:
		return errors.New("--number: a form has text only; leave it out with --form")
	case f.template && len(f.numbers) > 0:
		return errors.New("--number is for rows without --body; there write {" + clip(f.numbers[0]) + ":number}")
	}
	needs.form = f.form
	if f.template {
		var err error
		if needs.body, err = readBodyTemplate(f.body); err != nil {
			return err
		}
	}
	return f.setType(header)
}

// setType says what the body is, and refuses a header that says otherwise.
func (f *batchFlags) setType(header http.Header) error {
	given := header.Get("Content-Type")
	kind, _, _ := mime.ParseMediaType(given)
	switch {
	case given == "" && f.form:
		header.Set("Content-Type", typeForm)
	case given == "":
		header.Set("Content-Type", "application/json")
	case f.form && kind != typeForm:
		return fmt.Errorf("--form: the Content-Type header says %s", clip(given))
	case !f.form && kind == typeForm:
		return errors.New("the Content-Type header says that rows are forms, and they are JSON; add --form")
	}
	return nil
}

// spell makes the row's body. Where a cell does not do, the error is of column.
func (c *csvRows) spell(record []string) (body []byte, column int, err error) {
	switch {
	case c.needs.form:
		return c.form(record), 0, nil
	case c.needs.body != nil:
		body, column, err = c.needs.body.fill(func(i int) string { return record[c.ofBody[i]] })
		if err != nil {
			column = c.ofBody[column]
		}
		return body, column, err
	}
	return c.object(record), 0, nil
}

// form spells the record as application/x-www-form-urlencoded, in the order of the
// columns.
func (c *csvRows) form(record []string) []byte {
	var b bytes.Buffer
	for i, value := range record {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(c.names[i]))
		b.WriteByte('=')
		b.WriteString(url.QueryEscape(value))
	}
	return b.Bytes()
}
