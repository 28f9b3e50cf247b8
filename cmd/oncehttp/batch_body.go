package main

import (
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/oncehttp/oncehttp/profile"
)

// The body of a row: of a CSV row a JSON object of its columns, what --body makes of
// them, or a form of them; of an NDJSON line the line, or a form of it.

const typeForm = "application/x-www-form-urlencoded"

// setBody checks the flags that say what a row's body is, and the Content-Type. Rows
// are forms where --form says so, or else the profile.
func (f *batchFlags) setBody(needs *rowNeeds, header http.Header, p *profile.Profile) error {
	if !f.formSaid {
		f.form = p.Body.Default() == profile.FormBody
	}
	switch {
	case f.form && len(f.numbers) > 0 && !f.formSaid:
		return fmt.Errorf("--number: the API of --profile %s takes forms, which have text only; leave it out", p.Name)
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
	return f.setType(header, p)
}

// setType says what the body is, and refuses a header that says otherwise.
func (f *batchFlags) setType(header http.Header, p *profile.Profile) error {
	given := header.Get("Content-Type")
	kind, _, _ := mime.ParseMediaType(given)
	switch {
	case given == "" && f.form:
		header.Set("Content-Type", typeForm)
	case given == "":
		header.Set("Content-Type", "application/json")
	case f.form && kind != typeForm && !f.formSaid:
		return fmt.Errorf("the Content-Type header says %s, and the API of --profile %s takes forms; leave the header out, or say --form=false", clip(given), p.Name)
	case f.form && kind != typeForm:
		return fmt.Errorf("--form: the Content-Type header says %s", clip(given))
	case !f.form && kind == typeForm:
		return errors.New("the Content-Type header says that rows are forms, and they are JSON; add --form")
	}
	return nil
}

// spell makes the row's body. Where a cell does not do, the error is of column; -1 is
// none.
func (c *csvRows) spell(record []string) (body []byte, column int, err error) {
	switch {
	case c.needs.body == nil && c.needs.form:
		return c.form(record), 0, nil
	case c.needs.body == nil:
		return c.object(record), 0, nil
	}
	body, column, err = c.needs.body.fill(func(i int) string { return record[c.ofBody[i]] })
	switch {
	case err != nil:
		return nil, c.ofBody[column], err
	case c.needs.form:
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
