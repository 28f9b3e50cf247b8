package sign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// part is a piece of a template: a literal text, or the name of a placeholder.
type part struct {
	text, name string // one of them is empty
}

// template is a text with placeholders such as {timestamp}, in pieces; no two literal texts follow each other.
type template []part

// parse splits a text into a template: fixed texts and placeholders in braces. A brace that does not begin one of the known placeholders is an error.
func parse(text string, known []string) (template, error) {
	var t template
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			t = append(t, part{text: before})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !slices.Contains(known, name) {
			return nil, fmt.Errorf("no placeholder begins with {%.20s; there are {%s}", name, strings.Join(known, "}, {"))
		}
		t = append(t, part{name: name})
		text = after
	}
	return t, nil
}

// has reports whether the placeholder is in the template.
func (t template) has(name string) bool {
	return slices.ContainsFunc(t, func(p part) bool { return p.name == name })
}

// fill returns the text of the template with these values in the places of its placeholders. A missing value is empty.
func (t template) fill(values map[string]string) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
		if p.name != "" {
			b.WriteString(values[p.name])
		}
	}
	return b.String()
}

// readable returns an error if a filled-in template could not be split into its values again, since two placeholders follow each other.
func (t template) readable() error {
	for i, p := range t {
		if i > 0 && p.name != "" && t[i-1].name != "" {
			return fmt.Errorf("nothing stands between {%s} and {%s}", t[i-1].name, p.name)
		}
	}
	return nil
}

// read splits a filled template into values, and adds them. The template must be readable. A text of another form, and a value
// that differs from an existing one, are errors; some values may then have been added.
func (t template) read(text string, values map[string]string) error {
	errForm := errors.New("it has another form")
	for i, p := range t {
		if p.name == "" {
			rest, found := strings.CutPrefix(text, p.text)
			if !found {
				return errForm
			}
			text = rest
			continue
		}
		end := len(text)
		if i+1 < len(t) {
			if end = strings.Index(text, t[i+1].text); end < 0 {
				return errForm
			}
		}
		value := text[:end]
		if before, known := values[p.name]; known && before != value {
			return fmt.Errorf("{%s} is there with two values", p.name)
		}
		values[p.name], text = value, text[end:]
	}
	if text != "" {
		return errForm
	}
	return nil
}
