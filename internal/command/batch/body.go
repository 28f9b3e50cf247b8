package batch

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
)

// setBody checks the flags for the body of a row, puts the body's template and the spelling of numbers into needs, and sets the Content-Type. Rows are sent as forms or
// as JSON: --form decides, and without it (formSaid is false) the profile of the API. f.template is true if --body was given.
func (f *batchFlags) setBody(needs *input.RowNeeds, header http.Header, p *profile.Profile) error {
	if !f.formSaid {
		f.form = p.Body.Default() == profile.FormBody
	}
	switch {
	case f.form && len(f.numbers) > 0 && !f.formSaid:
		return fmt.Errorf("--number: the API of --profile %s takes forms, which have text only; leave it out", p.Name)
	case f.form && len(f.numbers) > 0:
		return errors.New("--number: a form has text only; leave it out with --form")
	case f.template && len(f.numbers) > 0:
		return errors.New("--number is for rows without --body; there write {" + words.Clip(f.numbers[0]) + ":number}")
	}
	if err := results.DecimalMark(f.sums.decimal); err != nil {
		return err
	}
	needs.Form, needs.Spelling = f.form, results.Numbers(f.sums.decimal)
	if f.template {
		var err error
		if needs.Body, err = input.ReadBodyTemplate(f.body); err != nil {
			return err
		}
		if err := needs.Body.Use(needs.Spelling, f.sums.currency); err != nil {
			return err
		}
	}
	return f.setType(header, p)
}

// sayDoubled warns of a name in two braces in --body, such as {{name}}. Other tools put a value there; here it is sent as the text {name}.
func sayDoubled(needs *input.RowNeeds, stderr io.Writer) {
	if needs.Body == nil {
		return
	}
	for _, name := range needs.Body.Doubled() {
		name = words.Clip(name)
		terminal.Say(stderr, "warning: --body has \"{{%s}}\", which is sent as the text {%s}; the cell of a column %s is \"{%s}\"", name, name, name, name)
	}
}

// setType sets the Content-Type of the rows if the user has given none. A type that does not fit the rows (JSON or a form) is an error.
func (f *batchFlags) setType(header http.Header, p *profile.Profile) error {
	given := header.Get("Content-Type")
	kind, _, _ := mime.ParseMediaType(given)
	switch {
	case given == "" && f.form:
		header.Set("Content-Type", input.TypeForm)
	case given == "":
		header.Set("Content-Type", "application/json")
	case f.form && kind != input.TypeForm && !f.formSaid:
		return fmt.Errorf("the Content-Type header says %s, and the API of --profile %s takes forms; leave the header out, or say --form=false", words.Clip(given), p.Name)
	case f.form && kind != input.TypeForm:
		return fmt.Errorf("--form: the Content-Type header says %s", words.Clip(given))
	case !f.form && kind == input.TypeForm:
		return errors.New("the Content-Type header says that rows are forms, and they are JSON; add --form")
	}
	return nil
}
